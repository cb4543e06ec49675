// KvType: how keys and values are stored. Attention states are float32 whatever the KV type.
#ifndef PANDO_KV_TYPE_H_
#define PANDO_KV_TYPE_H_

#include <string_view>

#include "pando/status.h"

namespace pando {

enum class KvType {
  kF32,
  kF16,   // IEEE binary16
  kBF16,  // the upper half of a float32
  kQ8_0,  // blocks of 32 signed bytes along the head dim with one float16 scale
};

// "f32", "f16", "bf16", "q8_0".
std::string_view KvTypeName(KvType type);
Result<KvType> ParseKvType(std::string_view name);

}  // namespace pando

#endif  // PANDO_KV_TYPE_H_
