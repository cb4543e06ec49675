// Model: a Llama-family model file, mapped and checked. Immutable but for copies of its columns, which any thread may
// ask for; all ranks of a process share one, and the processes of a machine share its pages.
//
//   Result<std::shared_ptr<const Model>> model = Model::Load("model.gguf", {});
#ifndef PANDO_SRC_MODEL_MODEL_H_
#define PANDO_SRC_MODEL_MODEL_H_

#include <memory>
#include <string>
#include <vector>

#include "pando/status.h"
#include "src/gguf/gguf_file.h"
#include "src/kernels/matmul.h"
#include "src/model/column_copies.h"
#include "src/model/model_config.h"

namespace pando {

// One layer:
//   x += o(attention(rope(norm(q(h))), rope(norm(k(h))), v(h)))     h = rms_norm(x, attention_norm)
//   x += down(silu(gate(h)) * up(h))                                h = rms_norm(x, ffn_norm)
// Biases and head norms are empty where the model has none. Matrices lie in the file; vectors are copies.
struct LayerWeights {
  std::vector<float> attention_norm;  // [hidden]
  WeightMatrix q;                     // [num_heads * head_dim][hidden]
  WeightMatrix k;                     // [num_kv_heads * head_dim][hidden]
  WeightMatrix v;
  std::vector<float> qkv_bias;  // q's, k's and v's, or empty
  std::vector<float> q_norm;    // [head_dim] or empty
  std::vector<float> k_norm;
  WeightMatrix o;  // [hidden][num_heads * head_dim]
  std::vector<float> o_bias;
  std::vector<float> ffn_norm;  // [hidden]
  WeightMatrix gate;            // [ffn][hidden]
  WeightMatrix up;
  WeightMatrix down;  // [hidden][ffn]
};

struct ModelWeights {
  WeightMatrix embedding;  // [vocabulary][hidden]
  std::vector<LayerWeights> layers;
  std::vector<float> output_norm;
  WeightMatrix output;  // [vocabulary][hidden]; the embedding where the file has no other
};

// Finds and checks every tensor. A tensor that the model would not use is an error too: leaving it out would change
// what the model says.
Result<ModelWeights> FindWeights(const GgufFile& file, const ModelConfig& config);

class Model {
 public:
  static Result<std::shared_ptr<const Model>> Load(const std::string& path, const RopeOverrides& overrides);

  const GgufFile& file() const { return file_; }
  const ModelConfig& config() const { return config_; }
  const ModelWeights& weights() const { return weights_; }
  // Read for every token: all matrices but the embedding, of which a token reads a row.
  size_t bytes_per_token() const;
  ColumnCopies& column_copies() const { return *column_copies_; }

 private:
  Model(GgufFile file, ModelConfig config, ModelWeights weights);

  GgufFile file_;
  ModelConfig config_;
  ModelWeights weights_;
  std::unique_ptr<ColumnCopies> column_copies_ = std::make_unique<ColumnCopies>();
};

}  // namespace pando

#endif  // PANDO_SRC_MODEL_MODEL_H_
