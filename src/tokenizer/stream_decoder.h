// StreamDecoder: the text of tokens as they come, in whole characters.
//
//   StreamDecoder decoder(tokenizer, {.is_continuation = true});
//   while (...) Print(decoder.Push(Sample()));
//   Print(decoder.Finish());
//
// A character whose bytes are spread over several tokens is held back until it is whole, at most three bytes. Bytes
// that can no longer become a character are given out as they are, at once: all that comes out, put together, is what
// Tokenizer::Decode gives. ReplaceInvalidUtf8 (utf8.h) makes valid UTF-8 of it where that matters.
#ifndef PANDO_SRC_TOKENIZER_STREAM_DECODER_H_
#define PANDO_SRC_TOKENIZER_STREAM_DECODER_H_

#include <cstdint>
#include <string>

#include "src/tokenizer/tokenizer.h"

namespace pando {

struct StreamDecoderOptions {
  bool special = false;  // show control tokens
  // The tokens follow others that are text: a space at their beginning is theirs, and was not put there by encoding.
  bool is_continuation = false;
};

class StreamDecoder {
 public:
  // `tokenizer` outlives the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer, const StreamDecoderOptions& options = {});

  // What can be printed now. A token that is not in the vocabulary prints nothing.
  std::string Push(int32_t token);

  // What was held back: the beginning of a character that never was completed. The decoder begins anew.
  std::string Finish();

 private:
  const Tokenizer* tokenizer_;
  StreamDecoderOptions options_;
  bool drops_space_;  // the next text begins with a space that encoding put there
  std::string held_;
};

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_STREAM_DECODER_H_
