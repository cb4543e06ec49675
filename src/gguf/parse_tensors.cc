#include "src/gguf/parse_tensors.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "src/base/errors.h"

namespace pando {
namespace {

constexpr uint32_t kMaxDimensions = 4;
// Sizes and sums of them stay far below 2^64.
constexpr uint64_t kMaxBytes = std::numeric_limits<uint64_t>::max() / 4;

struct Placed {
  GgufTensor tensor;
  uint64_t offset = 0;  // from the first tensor's
  uint64_t num_bytes = 0;
};

Status CheckShape(const std::string& path, const GgufTensor& tensor) {
  const auto zero = std::find(tensor.shape.begin(), tensor.shape.end(), uint64_t{0});
  if (zero == tensor.shape.end()) return Status();
  return InvalidArgument("{}: tensor '{}': dimension {} is 0: the file is damaged", path, Shown(tensor.name),
                         zero - tensor.shape.begin());
}

// The bytes of a tensor whose shape has no zeros.
Result<uint64_t> SizeOf(const std::string& path, const GgufTensor& tensor) {
  const GgufTensorTypeInfo& info = InfoOf(tensor.type);
  if (tensor.columns() % info.block_values != 0) {
    return InvalidArgument("{}: tensor '{}' has {} columns, which is no multiple of the {} values of a block of {}",
                           path, Shown(tensor.name), tensor.columns(), info.block_values, info.name);
  }
  uint64_t num_bytes = tensor.columns() / info.block_values;
  const auto grow = [&num_bytes](uint64_t factor) {
    if (num_bytes > kMaxBytes / factor) return false;
    num_bytes *= factor;
    return true;
  };
  bool fits = grow(info.block_bytes);
  for (size_t i = 1; i < tensor.shape.size(); ++i) fits = fits && grow(tensor.shape[i]);
  if (!fits) {
    return InvalidArgument("{}: tensor '{}' has more than 2^62 bytes by its shape ({}): the file is damaged", path,
                           Shown(tensor.name), fmt::join(tensor.shape, " x "));
  }
  return num_bytes;
}

Result<Placed> ReadDescription(ByteCursor& cursor, uint64_t number, uint64_t alignment) {
  Placed placed;
  GgufTensor& tensor = placed.tensor;
  const std::string_view name = cursor.String(fmt::format("the name of tensor {}", number));
  const std::string what = fmt::format("the description of tensor '{}'", Shown(name));
  const auto num_dimensions = cursor.Number<uint32_t>(what);
  if (!cursor.ok()) return cursor.status();
  if (name.empty()) return InvalidArgument("{}: tensor {} has no name: the file is damaged", cursor.path(), number);
  if (num_dimensions > kMaxDimensions) {
    return InvalidArgument("{}: tensor '{}' has {} dimensions: GGUF knows up to {}", cursor.path(), Shown(name),
                           num_dimensions, kMaxDimensions);
  }
  tensor.name = name;
  for (uint32_t i = 0; i < num_dimensions; ++i) tensor.shape.push_back(cursor.Number<uint64_t>(what));
  const auto type = cursor.Number<uint32_t>(what);
  placed.offset = cursor.Number<uint64_t>(what);
  if (!cursor.ok()) return cursor.status();

  const GgufTensorTypeInfo* info = FindGgufTensorType(type);
  if (info == nullptr) {
    return InvalidArgument(
        "{}: tensor '{}' is of type {}, which this program does not know: the file is newer, or damaged", cursor.path(),
        Shown(name), type);
  }
  tensor.type = info->type;
  PANDO_RETURN_IF_ERROR(CheckShape(cursor.path(), tensor));
  Result<uint64_t> num_bytes = SizeOf(cursor.path(), tensor);
  if (!num_bytes.ok()) return num_bytes.status();
  placed.num_bytes = *num_bytes;
  if (placed.offset % alignment != 0 || placed.offset > kMaxBytes) {
    return InvalidArgument("{}: tensor '{}' is at offset {}, which is no multiple of the alignment {}, or absurd",
                           cursor.path(), Shown(name), placed.offset, alignment);
  }
  return placed;
}

Status CheckNamesDiffer(const std::string& path, std::span<const GgufTensor> tensors) {
  const std::vector<size_t> order = OrderByName(tensors);
  const auto twin = std::adjacent_find(order.begin(), order.end(),
                                       [&](size_t a, size_t b) { return tensors[a].name == tensors[b].name; });
  if (twin == order.end()) return Status();
  return InvalidArgument("{}: has tensor '{}' twice: the file is damaged", path, Shown(tensors[*twin].name));
}

Status CheckNoOverlap(const std::string& path, std::span<const Placed> placed) {
  std::vector<const Placed*> order;
  order.reserve(placed.size());
  for (const Placed& one : placed) order.push_back(&one);
  std::sort(order.begin(), order.end(), [](const Placed* a, const Placed* b) { return a->offset < b->offset; });
  const auto first = std::adjacent_find(order.begin(), order.end(), [](const Placed* a, const Placed* b) {
    return a->offset + a->num_bytes > b->offset;
  });
  if (first == order.end()) return Status();
  return InvalidArgument("{}: tensors '{}' and '{}' overlap: the file is damaged", path, Shown((*first)->tensor.name),
                         Shown((*(first + 1))->tensor.name));
}

// Where a tensor's bytes are in the file. The last of them says how long the file must be.
Status PlaceTensors(const std::string& path, uint64_t data_begin, std::span<const std::byte> file,
                    std::span<Placed> placed) {
  const auto last = std::max_element(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return a.offset + a.num_bytes < b.offset + b.num_bytes;
  });
  if (last == placed.end()) return Status();
  const uint64_t needed = data_begin + last->offset + last->num_bytes;
  if (needed > file.size()) {
    return InvalidArgument(
        "{}: has {} bytes and its tensors need {}, so {} are missing: it is truncated or damaged; fetch it again", path,
        file.size(), needed, needed - file.size());
  }
  for (Placed& one : placed) one.tensor.data = file.subspan(data_begin + one.offset, one.num_bytes);
  return Status();
}

}  // namespace

Result<std::vector<GgufTensor>> ReadTensors(ByteCursor& cursor, uint64_t num_tensors, uint64_t alignment,
                                            std::span<const std::byte> file) {
  std::vector<Placed> placed;
  for (uint64_t i = 0; i < num_tensors; ++i) {
    PANDO_ASSIGN_OR_RETURN(Placed one, ReadDescription(cursor, i, alignment));
    placed.push_back(std::move(one));
  }
  const uint64_t data_begin = (cursor.offset() + alignment - 1) / alignment * alignment;
  PANDO_RETURN_IF_ERROR(CheckNoOverlap(cursor.path(), placed));
  PANDO_RETURN_IF_ERROR(PlaceTensors(cursor.path(), data_begin, file, placed));
  std::vector<GgufTensor> tensors;
  tensors.reserve(placed.size());
  for (Placed& one : placed) tensors.push_back(std::move(one.tensor));
  PANDO_RETURN_IF_ERROR(CheckNamesDiffer(cursor.path(), tensors));
  return tensors;
}

}  // namespace pando
