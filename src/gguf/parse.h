// One GGUF file's bytes, checked and made into typed views of them. No I/O: this is what the fuzzer runs.
//
// The format (little-endian; versions 2 and 3 differ only in that 3 also exists in big-endian, which is refused):
//
//   "GGUF"  version:u32  num_tensors:u64  num_keys:u64
//   num_keys times     key:string  type:u32  value        string = length:u64 bytes; array = type:u32 count:u64 values
//   num_tensors times  name:string  num_dims:u32  dims:u64[]  type:u32  offset:u64
//   zeros up to a multiple of the alignment (general.alignment, 32 if absent)
//   the tensors' bytes, each at its offset from here, offsets being multiples of the alignment
#ifndef PANDO_SRC_GGUF_PARSE_H_
#define PANDO_SRC_GGUF_PARSE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pando/status.h"
#include "src/gguf/tensor_type.h"
#include "src/gguf/value.h"

namespace pando {

struct GgufKeyValue {
  std::string_view key;
  GgufValue value;
};

struct GgufTensor {
  std::string name;
  GgufTensorType type = GgufTensorType::kF32;
  std::vector<uint64_t> shape;      // the fastest dimension first: columns, then rows. Up to 4, none of them 0.
  std::span<const std::byte> data;  // as it lies in the file; aligned as the file says, 32 bytes as a rule

  // 1 where the tensor has fewer dimensions.
  uint64_t columns() const { return shape.empty() ? 1 : shape[0]; }
  uint64_t rows() const { return shape.size() < 2 ? 1 : shape[1]; }
  uint64_t num_values() const;
};

struct GgufContents {
  uint32_t version = 0;
  uint64_t alignment = 0;
  std::vector<GgufKeyValue> metadata;  // in the file's order; no key twice
  std::vector<GgufTensor> tensors;     // in the file's order; no name twice, no byte in two of them
};

// Views of `bytes`, which must stay. What is wrong with them is one sentence that begins with `path`.
Result<GgufContents> ParseGguf(std::span<const std::byte> bytes, const std::string& path);

// The positions of `items` in the order of their names: for finding by name, and twins.
std::vector<size_t> OrderByName(std::span<const GgufTensor> tensors);
std::vector<size_t> OrderByName(std::span<const GgufKeyValue> metadata);

}  // namespace pando

#endif  // PANDO_SRC_GGUF_PARSE_H_
