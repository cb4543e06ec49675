// One metadata value of a GGUF file: a number, a bool, a string, or an array of these. It is a view: the bytes are the
// file's, and were checked when the file was read.
//
//   if (std::optional<uint64_t> layers = value.AsUint()) ...      // any integer type, where the number fits
//   std::vector<std::string_view> tokens = *value.AsStrings();
#ifndef PANDO_SRC_GGUF_VALUE_H_
#define PANDO_SRC_GGUF_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pando {

// GGUF's own numbers.
enum class GgufValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// "uint32"; empty if there is no such type.
std::string_view NameOf(GgufValueType type);

// Bytes of a number or bool; 0 for strings and arrays (and for what is no type), whose size is their own.
size_t BytesOf(GgufValueType type);

bool IsInteger(GgufValueType type);

class GgufValue {
 public:
  // `bytes` is the number itself, the characters of a string, or an array's `size` elements as the file has them:
  // strings with their lengths before them. Whoever makes a value has checked that they are whole.
  GgufValue(GgufValueType type, std::span<const std::byte> bytes) : type_(type), bytes_(bytes) {}
  GgufValue(GgufValueType element_type, size_t size, std::span<const std::byte> bytes)
      : type_(GgufValueType::kArray), element_type_(element_type), size_(size), bytes_(bytes) {}

  GgufValueType type() const { return type_; }
  bool is_array() const { return type_ == GgufValueType::kArray; }
  GgufValueType element_type() const { return element_type_; }  // of an array
  size_t size() const { return size_; }                         // of an array, in elements

  // "uint32", "array of 49152 strings".
  std::string TypeName() const;

  // Nothing where the value is of another type, or does not fit.
  std::optional<uint64_t> AsUint() const;
  std::optional<int64_t> AsInt() const;
  std::optional<double> AsFloat() const;  // integers too
  std::optional<bool> AsBool() const;
  std::optional<std::string_view> AsString() const;

  // The first `max_size` elements of an array.
  static constexpr size_t kAll = std::numeric_limits<size_t>::max();
  std::optional<std::vector<std::string_view>> AsStrings(size_t max_size = kAll) const;
  std::optional<std::vector<float>> AsFloats(size_t max_size = kAll) const;  // of float32 and float64
  std::optional<std::vector<int64_t>> AsInts(size_t max_size = kAll) const;  // of any integers that fit, and bools

 private:
  GgufValueType type_;
  GgufValueType element_type_ = GgufValueType::kUint8;
  size_t size_ = 0;
  std::span<const std::byte> bytes_;
};

}  // namespace pando

#endif  // PANDO_SRC_GGUF_VALUE_H_
