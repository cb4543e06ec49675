#include "src/gguf/gguf_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/errors.h"
#include "src/base/printable.h"
#include "src/gguf/split.h"

namespace pando {
namespace {

// The item of this name among `items`, whose positions `order` has by name; nullptr if there is none.
template <typename Item, typename Name>
const Item* FindByName(std::span<const Item> items, const std::vector<size_t>& order, std::string_view wanted,
                       Name name) {
  const auto found = std::lower_bound(order.begin(), order.end(), wanted,
                                      [&](size_t i, std::string_view text) { return name(items[i]) < text; });
  return found != order.end() && name(items[*found]) == wanted ? &items[*found] : nullptr;
}

template <typename T>
Result<T> Converted(const GgufFile& file, std::string_view key, std::string_view wanted,
                    std::optional<T> (*convert)(const GgufValue&)) {
  const GgufValue* value = file.Find(key);
  if (value == nullptr) {
    return InvalidArgument("{}: has no key '{}', which this model needs", file.path(), Printable(key));
  }
  std::optional<T> converted = convert(*value);
  if (converted.has_value()) return std::move(*converted);
  const std::string number = value->AsInt().has_value() ? fmt::format(" {}", *value->AsInt()) : "";
  return InvalidArgument("{}: key '{}' is {}{}: it must be {}", file.path(), Printable(key), value->TypeName(), number,
                         wanted);
}

}  // namespace

Result<GgufFile> GgufFile::Open(const std::string& path) {
  Result<MappedFile> first = MappedFile::Open(path);
  if (!first.ok()) return first.status();
  PANDO_ASSIGN_OR_RETURN(GgufContents contents, ParseGguf(first->bytes(), path));
  std::vector<MappedFile> files;
  files.push_back(std::move(*first));
  PANDO_RETURN_IF_ERROR(OpenOtherParts(contents, files));
  std::vector<std::span<const std::byte>> parts;
  parts.reserve(files.size());
  for (const MappedFile& file : files) parts.push_back(file.bytes());
  return GgufFile(path, std::move(contents), std::move(files), std::move(parts));
}

Result<GgufFile> GgufFile::FromBytes(std::span<const std::byte> bytes, const std::string& name) {
  Result<GgufContents> contents = ParseGguf(bytes, name);
  if (!contents.ok()) return contents.status();
  PANDO_ASSIGN_OR_RETURN(const SplitInfo split, SplitInfoOf(*contents, name));
  if (split.num_parts > 1) return InvalidArgument("{}: part of a split model, which is opened by its path", name);
  return GgufFile(name, std::move(*contents), {}, {bytes});
}

GgufFile::GgufFile(std::string path, GgufContents contents, std::vector<MappedFile> files,
                   std::vector<std::span<const std::byte>> parts)
    : path_(std::move(path)),
      contents_(std::move(contents)),
      files_(std::move(files)),
      parts_(std::move(parts)),
      metadata_by_name_(OrderByName(metadata())),
      tensors_by_name_(OrderByName(tensors())) {
  for (const std::span<const std::byte> part : parts_) file_bytes_ += part.size();
}

const GgufTensor* GgufFile::FindTensor(std::string_view name) const {
  return FindByName(tensors(), tensors_by_name_, name,
                    [](const GgufTensor& tensor) -> std::string_view { return tensor.name; });
}

const GgufValue* GgufFile::Find(std::string_view key) const {
  const GgufKeyValue* pair =
      FindByName(metadata(), metadata_by_name_, key, [](const GgufKeyValue& one) { return one.key; });
  return pair == nullptr ? nullptr : &pair->value;
}

Result<uint64_t> GgufFile::GetUint(std::string_view key) const {
  return Converted<uint64_t>(*this, key, "an integer of at least 0", [](const GgufValue& v) { return v.AsUint(); });
}

Result<int64_t> GgufFile::GetInt(std::string_view key) const {
  return Converted<int64_t>(*this, key, "an integer below 2^63", [](const GgufValue& v) { return v.AsInt(); });
}

Result<double> GgufFile::GetFloat(std::string_view key) const {
  return Converted<double>(*this, key, "a number", [](const GgufValue& v) { return v.AsFloat(); });
}

Result<bool> GgufFile::GetBool(std::string_view key) const {
  return Converted<bool>(*this, key, "a bool", [](const GgufValue& v) { return v.AsBool(); });
}

Result<std::string_view> GgufFile::GetString(std::string_view key) const {
  return Converted<std::string_view>(*this, key, "a string", [](const GgufValue& v) { return v.AsString(); });
}

Result<std::vector<std::string_view>> GgufFile::GetStrings(std::string_view key) const {
  return Converted<std::vector<std::string_view>>(*this, key, "an array of strings",
                                                  [](const GgufValue& v) { return v.AsStrings(); });
}

Result<std::vector<float>> GgufFile::GetFloats(std::string_view key) const {
  return Converted<std::vector<float>>(*this, key, "an array of floats",
                                       [](const GgufValue& v) { return v.AsFloats(); });
}

Result<std::vector<int64_t>> GgufFile::GetInts(std::string_view key) const {
  return Converted<std::vector<int64_t>>(*this, key, "an array of integers below 2^63",
                                         [](const GgufValue& v) { return v.AsInts(); });
}

Result<uint64_t> GgufFile::GetUintOr(std::string_view key, uint64_t otherwise) const {
  return Find(key) == nullptr ? otherwise : GetUint(key);
}

Result<int64_t> GgufFile::GetIntOr(std::string_view key, int64_t otherwise) const {
  return Find(key) == nullptr ? otherwise : GetInt(key);
}

Result<double> GgufFile::GetFloatOr(std::string_view key, double otherwise) const {
  return Find(key) == nullptr ? otherwise : GetFloat(key);
}

Result<bool> GgufFile::GetBoolOr(std::string_view key, bool otherwise) const {
  return Find(key) == nullptr ? otherwise : GetBool(key);
}

Result<std::string_view> GgufFile::GetStringOr(std::string_view key, std::string_view otherwise) const {
  return Find(key) == nullptr ? otherwise : GetString(key);
}

}  // namespace pando
