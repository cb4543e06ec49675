#include "src/gguf/parse.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "src/base/errors.h"
#include "src/base/printable.h"
#include "src/gguf/byte_cursor.h"
#include "src/gguf/parse_tensors.h"

namespace pando {
namespace {

constexpr uint64_t kDefaultAlignment = 32;
// GGUF's own limit.
constexpr uint64_t kMaxKeyBytes = 65535;
// The least that a key with its value, and a tensor's description, take in a file: what a count is held against.
constexpr uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 4 + 8;

struct Header {
  uint32_t version = 0;
  uint64_t num_tensors = 0;
  uint64_t num_keys = 0;
};

Status CheckVersion(const ByteCursor& cursor, uint32_t version) {
  if (version == 2 || version == 3) return Status();
  if (version == 1) {
    return InvalidArgument("{}: GGUF version 1, which was given up in 2023: convert the model again, to version 3",
                           cursor.path());
  }
  if ((version & 0xFFFF) == 0 && version != 0) {
    return InvalidArgument("{}: a big-endian GGUF file: convert the model for little-endian machines", cursor.path());
  }
  return InvalidArgument("{}: GGUF version {}: this program reads versions 2 and 3", cursor.path(), version);
}

// `count` items of at least `min_bytes_each` must still fit. `what` is as in "says that it has 7 keys".
Status CheckRoom(const ByteCursor& cursor, const std::string& what, uint64_t count, uint64_t min_bytes_each) {
  if (count <= cursor.num_left() / min_bytes_each) return Status();
  const bool is_absurd = count > std::numeric_limits<uint64_t>::max() / min_bytes_each;
  const std::string missing =
      is_absurd ? "" : fmt::format(", so at least {} are missing", count * min_bytes_each - cursor.num_left());
  return InvalidArgument(
      "{}: {}, and from byte {} on there are only {} bytes{}: it is truncated or damaged; fetch it again",
      cursor.path(), what, cursor.offset(), cursor.num_left(), missing);
}

Result<Header> ReadHeader(ByteCursor& cursor) {
  if (cursor.num_left() == 0) return InvalidArgument("{}: the file is empty", cursor.path());
  const std::span<const std::byte> magic = cursor.Bytes(std::min<uint64_t>(4, cursor.num_left()), "the magic number");
  const std::string_view characters(reinterpret_cast<const char*>(magic.data()), magic.size());
  if (characters != "GGUF") {
    return InvalidArgument("{}: not a GGUF file: it begins with '{}' and not with 'GGUF'", cursor.path(),
                           Printable(characters));
  }
  Header header;
  header.version = cursor.Number<uint32_t>("the version");
  if (!cursor.ok()) return cursor.status();
  PANDO_RETURN_IF_ERROR(CheckVersion(cursor, header.version));
  header.num_tensors = cursor.Number<uint64_t>("the number of tensors");
  header.num_keys = cursor.Number<uint64_t>("the number of keys");
  if (!cursor.ok()) return cursor.status();
  const std::string keys = fmt::format("says that it has {} keys", header.num_keys);
  PANDO_RETURN_IF_ERROR(CheckRoom(cursor, keys, header.num_keys, kMinKeyBytes));
  const std::string tensors = fmt::format("says that it has {} tensors", header.num_tensors);
  PANDO_RETURN_IF_ERROR(CheckRoom(cursor, tensors, header.num_tensors, kMinTensorBytes));
  return header;
}

// Bools are bytes that are 0 or 1; anything else is a sign that the file is not what it seems.
Status CheckBools(const ByteCursor& cursor, std::string_view key, std::span<const std::byte> bytes) {
  const auto wrong = std::find_if(bytes.begin(), bytes.end(), [](std::byte byte) { return byte > std::byte{1}; });
  if (wrong == bytes.end()) return Status();
  return InvalidArgument("{}: key '{}' has a bool that is {}: it must be 0 or 1", cursor.path(), Shown(key),
                         static_cast<int>(*wrong));
}

Result<GgufValue> ReadArray(ByteCursor& cursor, std::string_view key, const std::string& what) {
  const auto type = static_cast<GgufValueType>(cursor.Number<uint32_t>(what));
  const auto size = cursor.Number<uint64_t>(what);
  if (!cursor.ok()) return cursor.status();
  if (type == GgufValueType::kArray) {
    return InvalidArgument("{}: key '{}' is an array of arrays, which no model needs and this program does not read",
                           cursor.path(), Shown(key));
  }
  if (NameOf(type).empty()) {
    return InvalidArgument(
        "{}: key '{}' is an array of values of type {}, which GGUF does not know: the file is damaged", cursor.path(),
        Shown(key), static_cast<uint32_t>(type));
  }
  const bool is_strings = type == GgufValueType::kString;
  const uint64_t min_bytes_each = is_strings ? sizeof(uint64_t) : BytesOf(type);
  const std::string array = fmt::format("key '{}' is an array of {} {}s", Shown(key), size, NameOf(type));
  PANDO_RETURN_IF_ERROR(CheckRoom(cursor, array, size, min_bytes_each));
  if (!is_strings) {
    const std::span<const std::byte> bytes = cursor.Bytes(size * min_bytes_each, what);
    if (type == GgufValueType::kBool) {
      PANDO_RETURN_IF_ERROR(CheckBools(cursor, key, bytes));
    }
    return GgufValue(type, static_cast<size_t>(size), bytes);
  }
  ByteCursor begin = cursor;
  for (uint64_t i = 0; i < size && cursor.ok(); ++i) cursor.String(what);
  if (!cursor.ok()) return cursor.status();
  return GgufValue(type, static_cast<size_t>(size), begin.Bytes(cursor.offset() - begin.offset(), what));
}

Result<GgufValue> ReadValue(ByteCursor& cursor, std::string_view key) {
  const std::string what = fmt::format("the value of key '{}'", Shown(key));
  const auto type = static_cast<GgufValueType>(cursor.Number<uint32_t>(what));
  if (!cursor.ok()) return cursor.status();
  if (NameOf(type).empty()) {
    return InvalidArgument("{}: key '{}' has a value of type {}, which GGUF does not know: the file is damaged",
                           cursor.path(), Shown(key), static_cast<uint32_t>(type));
  }
  if (type == GgufValueType::kArray) return ReadArray(cursor, key, what);
  if (type == GgufValueType::kString) {
    const std::string_view string = cursor.String(what);
    if (!cursor.ok()) return cursor.status();
    return GgufValue(type, std::as_bytes(std::span(string)));
  }
  const std::span<const std::byte> bytes = cursor.Bytes(BytesOf(type), what);
  if (!cursor.ok()) return cursor.status();
  if (type == GgufValueType::kBool) {
    PANDO_RETURN_IF_ERROR(CheckBools(cursor, key, bytes));
  }
  return GgufValue(type, bytes);
}

Result<GgufKeyValue> ReadKeyValue(ByteCursor& cursor, uint64_t number) {
  const uint64_t offset = cursor.offset();
  const std::string_view key = cursor.String(fmt::format("key {}", number));
  if (!cursor.ok()) return cursor.status();
  if (key.empty() || key.size() > kMaxKeyBytes) {
    return InvalidArgument("{}: key {} at byte {} has {} characters: it must have 1 to {}", cursor.path(), number,
                           offset, key.size(), kMaxKeyBytes);
  }
  PANDO_ASSIGN_OR_RETURN(GgufValue value, ReadValue(cursor, key));
  return GgufKeyValue{key, value};
}

Status CheckKeysDiffer(const std::string& path, std::span<const GgufKeyValue> metadata) {
  const std::vector<size_t> order = OrderByName(metadata);
  const auto twin = std::adjacent_find(order.begin(), order.end(),
                                       [&](size_t a, size_t b) { return metadata[a].key == metadata[b].key; });
  if (twin == order.end()) return Status();
  return InvalidArgument("{}: has key '{}' twice: the file is damaged", path, Shown(metadata[*twin].key));
}

Result<uint64_t> AlignmentOf(const std::string& path, std::span<const GgufKeyValue> metadata) {
  const auto found = std::find_if(metadata.begin(), metadata.end(),
                                  [](const GgufKeyValue& pair) { return pair.key == "general.alignment"; });
  if (found == metadata.end()) return kDefaultAlignment;
  const std::optional<uint64_t> alignment = found->value.AsUint();
  if (alignment.has_value() && std::has_single_bit(*alignment) && *alignment <= (uint64_t{1} << 31)) return *alignment;
  return InvalidArgument("{}: general.alignment is {}: it must be a power of two up to 2^31", path,
                         alignment.has_value() ? std::to_string(*alignment) : found->value.TypeName());
}

template <typename Item, typename Name>
std::vector<size_t> Order(std::span<const Item> items, Name name) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return name(items[a]) < name(items[b]); });
  return order;
}

}  // namespace

Result<GgufContents> ParseGguf(std::span<const std::byte> bytes, const std::string& path) {
  ByteCursor cursor(bytes, path);
  PANDO_ASSIGN_OR_RETURN(Header header, ReadHeader(cursor));
  GgufContents contents;
  contents.version = header.version;
  for (uint64_t i = 0; i < header.num_keys; ++i) {
    PANDO_ASSIGN_OR_RETURN(GgufKeyValue pair, ReadKeyValue(cursor, i));
    contents.metadata.push_back(pair);
  }
  PANDO_RETURN_IF_ERROR(CheckKeysDiffer(path, contents.metadata));
  Result<uint64_t> alignment = AlignmentOf(path, contents.metadata);
  if (!alignment.ok()) return alignment.status();
  contents.alignment = *alignment;
  Result<std::vector<GgufTensor>> tensors = ReadTensors(cursor, header.num_tensors, contents.alignment, bytes);
  if (!tensors.ok()) return tensors.status();
  contents.tensors = std::move(*tensors);
  return contents;
}

std::vector<size_t> OrderByName(std::span<const GgufTensor> tensors) {
  return Order(tensors, [](const GgufTensor& tensor) -> std::string_view { return tensor.name; });
}

std::vector<size_t> OrderByName(std::span<const GgufKeyValue> metadata) {
  return Order(metadata, [](const GgufKeyValue& pair) { return pair.key; });
}

uint64_t GgufTensor::num_values() const {
  return std::accumulate(shape.begin(), shape.end(), uint64_t{1}, std::multiplies<>());
}

}  // namespace pando
