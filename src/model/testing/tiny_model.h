// TinyModel: a model of the Llama family with random weights, small enough to run in milliseconds, as the keys and
// tensors of its file: a test may change them before the file is written.
//
//   TinyModel tiny = MakeTinyModel({.architecture = "qwen3", .type = WeightType::kQ4_0});
//   tiny.tensors.erase("output.weight");
//   Result<std::shared_ptr<const Model>> model = tiny.Load();
//
// Weights are scaled so that every product keeps the size of its input: nothing saturates, and a wrong bit anywhere
// shows in the logits.
#ifndef PANDO_SRC_MODEL_TESTING_TINY_MODEL_H_
#define PANDO_SRC_MODEL_TESTING_TINY_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "src/gguf/tensor_type.h"
#include "src/kernels/weight_type.h"
#include "src/model/model.h"

namespace pando::test_support {

struct TinyModelOptions {
  std::string architecture = "llama";
  uint32_t layers = 2;
  uint32_t hidden = 64;
  uint32_t ffn = 96;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t head_dim = 16;
  uint64_t vocabulary = 101;
  WeightType type = WeightType::kF32;  // of the layers' matrices
  WeightType embedding_type = WeightType::kF32;
  bool has_output = true;     // a matrix of its own for the logits
  bool has_biases = false;    // of q, k, v and the attention's output; qwen2 always has those of q, k and v
  uint32_t window = 0;        // 0: none
  bool has_divisors = false;  // Llama 3.1's rope_freqs
  uint64_t seed = 1;
};

struct TinyTensor {
  GgufTensorType type = GgufTensorType::kF32;
  std::vector<uint64_t> shape;  // columns first
  std::vector<std::byte> data;
};

struct TinyModel {
  using Value = std::variant<uint32_t, int32_t, uint64_t, float, double, bool, std::string, std::vector<uint32_t>>;

  // The keys of the architecture by their names without it ("block_count"); those with "general." as they are.
  std::map<std::string, Value> keys;
  std::map<std::string, TinyTensor> tensors;
  std::string architecture;

  void Write(const std::string& path) const;
  // Through a file that is gone afterwards.
  Result<std::shared_ptr<const Model>> Load(const RopeOverrides& overrides = {}) const;
};

TinyModel MakeTinyModel(const TinyModelOptions& options);

// A matrix of random weights of any type, with a root mean square of `size`.
TinyTensor RandomMatrix(WeightType type, size_t rows, size_t columns, double size, uint64_t seed);
TinyTensor FloatVector(const std::vector<float>& values);

// `count` tokens of a vocabulary.
std::vector<int32_t> RandomPrompt(size_t count, size_t vocabulary, uint64_t seed);

}  // namespace pando::test_support

#endif  // PANDO_SRC_MODEL_TESTING_TINY_MODEL_H_
