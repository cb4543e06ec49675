// ModelShape: what of a model decides how much memory it takes and how long a token does: its sizes, and the bytes of
// its weights.
//
//   Result<ModelShape> shape = FindModelShape("llama-3.1-8b", WeightType::kQ4_K);
//   double bytes = shape->weights.total();
//
// The shape of a model file comes from whoever reads files.
#ifndef PANDO_SRC_PLANNING_MODEL_SHAPE_H_
#define PANDO_SRC_PLANNING_MODEL_SHAPE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "pando/status.h"
#include "src/kernels/weight_type.h"

namespace pando {

// In bytes, those of a layer for all layers together.
struct WeightBytes {
  double qkv = 0;
  double o = 0;
  double gate_up = 0;
  double down = 0;
  double vectors = 0;  // norms and biases
  double embedding = 0;
  double output = 0;  // 0 where the embedding is the output matrix, too

  double layers() const { return qkv + o + gate_up + down + vectors; }
  double total() const { return layers() + embedding + output; }
  // The matrix that logits are made with.
  double read_for_logits() const { return output > 0 ? output : embedding; }
};

struct ModelShape {
  std::string name;
  int64_t num_layers = 0;
  int64_t hidden_size = 0;  // width of the residual stream
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn_size = 0;
  int64_t vocab_size = 0;
  int64_t context_length = 0;  // that it was trained for
  int64_t window = 0;          // tokens that a token sees, itself included; 0: all
  std::string weight_type;     // "f16"; what most weights are
  WeightBytes weights;

  int64_t q_rows() const { return num_heads * head_dim; }
  int64_t kv_rows() const { return num_kv_heads * head_dim; }
  int64_t qkv_rows() const { return q_rows() + 2 * kv_rows(); }
};

// The models that are known by name.
struct KnownModel {
  std::string_view name;
  int64_t num_layers;
  int64_t hidden_size;
  int64_t num_heads;
  int64_t num_kv_heads;
  int64_t head_dim;
  int64_t ffn_size;
  int64_t vocab_size;
  int64_t context_length;
  bool has_own_output;
};

std::span<const KnownModel> KnownModels();

// With all matrices in `weight_type`; norms are float32. The error lists the names.
Result<ModelShape> FindModelShape(std::string_view name, WeightType weight_type);

}  // namespace pando

#endif  // PANDO_SRC_PLANNING_MODEL_SHAPE_H_
