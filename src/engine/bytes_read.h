// What decoding reads from memory at the least: every weight and every visible key and value once. Beside the machine's
// read bandwidth it says how good a speed is.
#ifndef PANDO_SRC_ENGINE_BYTES_READ_H_
#define PANDO_SRC_ENGINE_BYTES_READ_H_

#include <cstdint>

#include "src/model/model_config.h"
#include "src/model/transformer.h"

namespace pando {

// Keys and values of one token in all layers, on all ranks together.
double KvBytesPerToken(const ModelConfig& config, const TransformerOptions& options);

// Bytes for each of `num_tokens` tokens that are decoded one by one after `depth` others, on average.
double BytesReadPerToken(const Model& model, const TransformerOptions& options, int64_t depth, int64_t num_tokens);

}  // namespace pando

#endif  // PANDO_SRC_ENGINE_BYTES_READ_H_
