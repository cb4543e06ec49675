// A model split over several GGUF files, as llama.cpp's gguf-split does it: name-00001-of-00003.gguf and so on. The
// first part has the model's metadata; every part says with split.no (from 0) and split.count which one it is.
#ifndef PANDO_SRC_GGUF_SPLIT_H_
#define PANDO_SRC_GGUF_SPLIT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pando/status.h"
#include "src/base/mapped_file.h"
#include "src/gguf/parse.h"

namespace pando {

struct SplitInfo {
  uint64_t part = 0;  // from 0
  uint64_t num_parts = 1;
  std::optional<uint64_t> num_tensors;  // of all parts together
};

// What a file says of itself; part 0 of 1 where it says nothing.
Result<SplitInfo> SplitInfoOf(const GgufContents& contents, const std::string& path);

// The path of part `wanted` (from 0), from that of `part`; nothing where that path is not named like a part.
std::optional<std::string> PartPath(const std::string& path, uint64_t part, uint64_t num_parts, uint64_t wanted);

// `contents` is of `files[0]`. If it is the first of several parts, opens the others and adds their tensors. If it is
// another part, or one is missing or of another model, fails and says which file it was about.
Status OpenOtherParts(GgufContents& contents, std::vector<MappedFile>& files);

}  // namespace pando

#endif  // PANDO_SRC_GGUF_SPLIT_H_
