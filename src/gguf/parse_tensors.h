// The part of ParseGguf (parse.h) that reads tensors: their descriptions, and where their bytes are.
#ifndef PANDO_SRC_GGUF_PARSE_TENSORS_H_
#define PANDO_SRC_GGUF_PARSE_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pando/status.h"
#include "src/gguf/byte_cursor.h"
#include "src/gguf/parse.h"

namespace pando {

// `cursor` stands before the first description; `file` is the whole file's bytes.
Result<std::vector<GgufTensor>> ReadTensors(ByteCursor& cursor, uint64_t num_tensors, uint64_t alignment,
                                            std::span<const std::byte> file);

}  // namespace pando

#endif  // PANDO_SRC_GGUF_PARSE_TENSORS_H_
