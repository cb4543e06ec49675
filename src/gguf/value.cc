#include "src/gguf/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace pando {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read as the file has them");

using enum GgufValueType;

struct TypeInfo {
  std::string_view name;
  size_t bytes;
};

// By GGUF's number.
constexpr std::array<TypeInfo, 13> kValueTypes = {{{"uint8", 1},
                                                   {"int8", 1},
                                                   {"uint16", 2},
                                                   {"int16", 2},
                                                   {"uint32", 4},
                                                   {"int32", 4},
                                                   {"float32", 4},
                                                   {"bool", 1},
                                                   {"string", 0},
                                                   {"array", 0},
                                                   {"uint64", 8},
                                                   {"int64", 8},
                                                   {"float64", 8}}};

TypeInfo InfoOf(GgufValueType type) {
  const auto number = static_cast<size_t>(type);
  return number < kValueTypes.size() ? kValueTypes[number] : TypeInfo{"", 0};
}

template <typename T>
T Load(const std::byte* bytes) {
  T number;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}

template <typename Wanted, typename Stored>
std::optional<Wanted> Fitting(Stored number) {
  if (!std::in_range<Wanted>(number)) return std::nullopt;
  return static_cast<Wanted>(number);
}

template <typename Wanted>
std::optional<Wanted> LoadInteger(GgufValueType type, const std::byte* bytes) {
  switch (type) {
    case kUint8:
      return Fitting<Wanted>(Load<uint8_t>(bytes));
    case kInt8:
      return Fitting<Wanted>(Load<int8_t>(bytes));
    case kUint16:
      return Fitting<Wanted>(Load<uint16_t>(bytes));
    case kInt16:
      return Fitting<Wanted>(Load<int16_t>(bytes));
    case kUint32:
      return Fitting<Wanted>(Load<uint32_t>(bytes));
    case kInt32:
      return Fitting<Wanted>(Load<int32_t>(bytes));
    case kUint64:
      return Fitting<Wanted>(Load<uint64_t>(bytes));
    case kInt64:
      return Fitting<Wanted>(Load<int64_t>(bytes));
    default:
      return std::nullopt;
  }
}

std::optional<double> LoadFloat(GgufValueType type, const std::byte* bytes) {
  if (type == kFloat32) return static_cast<double>(Load<float>(bytes));
  if (type == kFloat64) return Load<double>(bytes);
  return std::nullopt;
}

}  // namespace

std::string_view NameOf(GgufValueType type) { return InfoOf(type).name; }

size_t BytesOf(GgufValueType type) { return InfoOf(type).bytes; }

bool IsInteger(GgufValueType type) {
  return BytesOf(type) > 0 && type != kFloat32 && type != kFloat64 && type != kBool;
}

std::string GgufValue::TypeName() const {
  if (!is_array()) return std::string(NameOf(type_));
  return fmt::format("array of {} {}s", size_, NameOf(element_type_));
}

std::optional<uint64_t> GgufValue::AsUint() const { return LoadInteger<uint64_t>(type_, bytes_.data()); }

std::optional<int64_t> GgufValue::AsInt() const { return LoadInteger<int64_t>(type_, bytes_.data()); }

std::optional<double> GgufValue::AsFloat() const {
  if (const std::optional<double> number = LoadFloat(type_, bytes_.data())) return number;
  if (const std::optional<int64_t> number = AsInt()) return static_cast<double>(*number);
  if (const std::optional<uint64_t> number = AsUint()) return static_cast<double>(*number);
  return std::nullopt;
}

std::optional<bool> GgufValue::AsBool() const {
  if (type_ != kBool) return std::nullopt;
  return Load<uint8_t>(bytes_.data()) != 0;
}

std::optional<std::string_view> GgufValue::AsString() const {
  if (type_ != kString) return std::nullopt;
  return std::string_view(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
}

std::optional<std::vector<std::string_view>> GgufValue::AsStrings(size_t max_size) const {
  if (!is_array() || element_type_ != kString) return std::nullopt;
  std::vector<std::string_view> strings(std::min(size_, max_size));
  const std::byte* next = bytes_.data();
  for (std::string_view& string : strings) {
    const auto length = static_cast<size_t>(Load<uint64_t>(next));
    string = {reinterpret_cast<const char*>(next + sizeof(uint64_t)), length};
    next += sizeof(uint64_t) + length;
  }
  return strings;
}

std::optional<std::vector<float>> GgufValue::AsFloats(size_t max_size) const {
  if (!is_array() || (element_type_ != kFloat32 && element_type_ != kFloat64)) return std::nullopt;
  std::vector<float> floats(std::min(size_, max_size));
  for (size_t i = 0; i < floats.size(); ++i) {
    floats[i] = static_cast<float>(*LoadFloat(element_type_, bytes_.data() + i * BytesOf(element_type_)));
  }
  return floats;
}

std::optional<std::vector<int64_t>> GgufValue::AsInts(size_t max_size) const {
  if (!is_array() || !(IsInteger(element_type_) || element_type_ == kBool)) return std::nullopt;
  const GgufValueType stored = element_type_ == kBool ? kUint8 : element_type_;
  std::vector<int64_t> integers(std::min(size_, max_size));
  for (size_t i = 0; i < integers.size(); ++i) {
    const std::optional<int64_t> integer = LoadInteger<int64_t>(stored, bytes_.data() + i * BytesOf(stored));
    if (!integer.has_value()) return std::nullopt;
    integers[i] = *integer;
  }
  return integers;
}

}  // namespace pando
