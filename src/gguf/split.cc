#include "src/gguf/split.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "src/base/errors.h"
#include "src/base/printable.h"

namespace pando {
namespace {

// What five digits can name.
constexpr uint64_t kMaxParts = 99999;

Result<std::optional<uint64_t>> FindUint(const GgufContents& contents, const std::string& path, std::string_view key) {
  const auto found = std::find_if(contents.metadata.begin(), contents.metadata.end(),
                                  [key](const GgufKeyValue& pair) { return pair.key == key; });
  if (found == contents.metadata.end()) return std::optional<uint64_t>();
  const std::optional<uint64_t> number = found->value.AsUint();
  if (number.has_value()) return number;
  return InvalidArgument("{}: key '{}' is not an integer of at least 0", path, key);
}

std::string PartSuffix(uint64_t part, uint64_t num_parts) {
  return fmt::format("-{:05}-of-{:05}.gguf", part + 1, num_parts);
}

Status CheckSamePlace(const SplitInfo& found, uint64_t part, const SplitInfo& first, const std::string& path) {
  if (found.part == part && found.num_parts == first.num_parts) return Status();
  return InvalidArgument(
      "{}: says that it is part {} of {}, and its name that it is part {} of {}: give the files of one model", path,
      found.part + 1, found.num_parts, part + 1, first.num_parts);
}

// Part `part` of the model: its tensors are added to `contents`.
Status AddPart(const std::string& path, uint64_t part, const SplitInfo& first, GgufContents& contents,
               std::vector<MappedFile>& files) {
  Result<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) {
    return {file.status().code(), fmt::format("part {} of {} of the model is missing: {}", part + 1, first.num_parts,
                                              file.status().message())};
  }
  PANDO_ASSIGN_OR_RETURN(GgufContents more, ParseGguf(file->bytes(), path));
  PANDO_ASSIGN_OR_RETURN(SplitInfo info, SplitInfoOf(more, path));
  PANDO_RETURN_IF_ERROR(CheckSamePlace(info, part, first, path));
  std::move(more.tensors.begin(), more.tensors.end(), std::back_inserter(contents.tensors));
  files.push_back(std::move(*file));
  return Status();
}

Status CheckTensors(const std::string& path, const SplitInfo& split, const GgufContents& contents) {
  if (split.num_tensors.has_value() && *split.num_tensors != contents.tensors.size()) {
    return InvalidArgument("{}: the model has {} tensors and its {} files have {}: give the files of one model", path,
                           *split.num_tensors, split.num_parts, contents.tensors.size());
  }
  const std::vector<size_t> order = OrderByName(contents.tensors);
  const auto twin = std::adjacent_find(order.begin(), order.end(), [&](size_t a, size_t b) {
    return contents.tensors[a].name == contents.tensors[b].name;
  });
  if (twin == order.end()) return Status();
  return InvalidArgument("{}: two of the model's files have tensor '{}': give the files of one model", path,
                         Printable(contents.tensors[*twin].name));
}

}  // namespace

Result<SplitInfo> SplitInfoOf(const GgufContents& contents, const std::string& path) {
  Result<std::optional<uint64_t>> part = FindUint(contents, path, "split.no");
  if (!part.ok()) return part.status();
  PANDO_ASSIGN_OR_RETURN(std::optional<uint64_t> num_parts, FindUint(contents, path, "split.count"));
  PANDO_ASSIGN_OR_RETURN(std::optional<uint64_t> num_tensors, FindUint(contents, path, "split.tensors.count"));
  const SplitInfo info{part->value_or(0), std::max<uint64_t>(num_parts.value_or(1), 1), num_tensors};
  if (info.part < info.num_parts && info.num_parts <= kMaxParts) return info;
  return InvalidArgument("{}: says that it is part {} (from 0) of {}: there must be 1 to {} parts", path, info.part,
                         info.num_parts, kMaxParts);
}

std::optional<std::string> PartPath(const std::string& path, uint64_t part, uint64_t num_parts, uint64_t wanted) {
  const std::string suffix = PartSuffix(part, num_parts);
  if (!path.ends_with(suffix)) return std::nullopt;
  return path.substr(0, path.size() - suffix.size()) + PartSuffix(wanted, num_parts);
}

Status OpenOtherParts(GgufContents& contents, std::vector<MappedFile>& files) {
  const std::string path = files[0].path();
  PANDO_ASSIGN_OR_RETURN(SplitInfo split, SplitInfoOf(contents, path));
  if (split.num_parts == 1) return Status();
  const std::optional<std::string> first = PartPath(path, split.part, split.num_parts, 0);
  if (!first.has_value()) {
    return InvalidArgument("{}: is part {} of {} of a split model: give it the name it had, which ends in {}", path,
                           split.part + 1, split.num_parts, PartSuffix(split.part, split.num_parts));
  }
  if (split.part != 0) {
    return InvalidArgument("{}: is part {} of {} of a split model: open the first, {}", path, split.part + 1,
                           split.num_parts, *first);
  }
  for (uint64_t part = 1; part < split.num_parts; ++part) {
    const std::string other = *PartPath(path, 0, split.num_parts, part);
    PANDO_RETURN_IF_ERROR(AddPart(other, part, split, contents, files));
  }
  return CheckTensors(path, split, contents);
}

}  // namespace pando
