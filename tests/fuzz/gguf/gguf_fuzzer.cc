// Any bytes as a GGUF file, and as the model and the vocabulary that may be in it: what libFuzzer runs. A crash, a
// sanitizer's finding or a broken promise (touch_all.h) ends it.
//
//   gguf_fuzzer FOLDER tests/fuzz/gguf/corpus      new inputs that reach new code go to FOLDER
//   gguf_fuzzer FILE                               runs one input again
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/engine/load_tokenizer.h"
#include "src/gguf/gguf_file.h"
#include "src/gguf/testing/touch_all.h"
#include "src/model/model_config.h"

namespace {

template <typename T>
void CheckResult(const pando::Result<T>& result) {
  if (!result.ok()) pando::test_support::CheckRefusal(result.status());
}

void ReadVocabulary(const pando::GgufFile& file) {
  const pando::Result<pando::Tokenizer> tokenizer = pando::LoadTokenizer(file);
  CheckResult(tokenizer);
  if (tokenizer.ok()) tokenizer->Decode(tokenizer->Encode("a <s>b\xff he\n"), /*special=*/true);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const pando::Result<pando::GgufFile> file = pando::GgufFile::FromBytes(std::as_bytes(std::span(data, size)), "input");
  CheckResult(file);
  if (!file.ok()) return 0;
  pando::test_support::TouchAll(*file);
  CheckResult(pando::ReadModelConfig(*file, {}));
  ReadVocabulary(*file);
  return 0;
}
