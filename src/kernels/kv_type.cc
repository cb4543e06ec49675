#include "pando/kv_type.h"

#include <array>
#include <utility>

#include "src/base/errors.h"

namespace pando {
namespace {

constexpr std::array<std::pair<KvType, std::string_view>, 4> kNames = {{
    {KvType::kF32, "f32"},
    {KvType::kF16, "f16"},
    {KvType::kBF16, "bf16"},
    {KvType::kQ8_0, "q8_0"},
}};

}  // namespace

std::string_view KvTypeName(KvType type) { return kNames[static_cast<size_t>(type)].second; }

Result<KvType> ParseKvType(std::string_view name) {
  for (const auto& [type, known] : kNames) {
    if (name == known) return type;
  }
  return InvalidArgument("unknown KV type '{}': use f32, f16, bf16 or q8_0", name);
}

}  // namespace pando
