// StreamDecoder: the text of tokens as they come, in whole characters.
//
//   StreamDecoder decoder(tokenizer, {.is_continuation = true});
//   while (...) Print(decoder.Push(Sample()));
//   Print(decoder.Finish());
//
// A character whose bytes are spread over several tokens is held back until it is whole, at most three bytes. Bytes
// that can no longer become a character come out as U+FFFD: whatever the tokens are, every part is UTF-8, and all of
// them together are ReplaceInvalidUtf8 (utf8.h) of what Tokenizer::Decode gives.
#ifndef PANDO_SRC_TOKENIZER_STREAM_DECODER_H_
#define PANDO_SRC_TOKENIZER_STREAM_DECODER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "src/tokenizer/tokenizer.h"

namespace pando {

struct StreamDecoderOptions {
  bool special = false;  // show control tokens
  // The tokens follow others that are text: a space at their beginning is theirs, and was not put there by encoding.
  bool is_continuation = false;
};

// The bytes of tokens as they come, characters or not.
class PieceDecoder {
 public:
  // `tokenizer` outlives the decoder.
  explicit PieceDecoder(const Tokenizer& tokenizer, const StreamDecoderOptions& options = {});

  // A token that is not in the vocabulary has no bytes. Of the tokenizer's memory.
  std::string_view Push(int32_t token);

 private:
  const Tokenizer* tokenizer_;
  StreamDecoderOptions options_;
  bool drops_space_;  // the next text begins with a space that encoding put there
};

class StreamDecoder {
 public:
  // `tokenizer` outlives the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer, const StreamDecoderOptions& options = {});

  // What can be printed now.
  std::string Push(int32_t token);

  // For what was held back: the beginning of a character that never was completed. Nothing comes after it.
  std::string Finish();

 private:
  PieceDecoder pieces_;
  std::string held_;
};

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_STREAM_DECODER_H_
