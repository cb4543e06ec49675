// Any bytes as a GGUF file: what libFuzzer runs. A crash, a sanitizer's finding or a broken promise (touch_all.h) ends
// it.
//
//   gguf_fuzzer FOLDER tests/fuzz/gguf/corpus      new inputs that reach new code go to FOLDER
//   gguf_fuzzer FILE                               runs one input again
#include <cstddef>
#include <cstdint>
#include <span>

#include "src/gguf/gguf_file.h"
#include "src/gguf/testing/touch_all.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const pando::Result<pando::GgufFile> file = pando::GgufFile::FromBytes(std::as_bytes(std::span(data, size)), "input");
  if (file.ok()) {
    pando::test_support::TouchAll(*file);
  } else {
    pando::test_support::CheckRefusal(file.status());
  }
  return 0;
}
