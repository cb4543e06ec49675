#include "src/tokenizer/stream_decoder.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include "src/tokenizer/utf8.h"

namespace pando {

PieceDecoder::PieceDecoder(const Tokenizer& tokenizer, const StreamDecoderOptions& options)
    : tokenizer_(&tokenizer),
      options_(options),
      drops_space_(tokenizer.adds_space_prefix() && !options.is_continuation) {}

std::string_view PieceDecoder::Push(int32_t token) {
  const Vocabulary& vocabulary = tokenizer_->vocabulary();
  if (!vocabulary.Contains(token)) return {};
  const bool is_special = vocabulary.IsSpecial(token);
  std::string_view piece = vocabulary.Piece(token);
  if (is_special || vocabulary.IsUserDefined(token)) {
    drops_space_ = tokenizer_->adds_space_prefix();
    if (is_special && !options_.special) piece = {};
  } else if (std::exchange(drops_space_, false) && piece.starts_with(' ')) {
    piece.remove_prefix(1);
  }
  return piece;
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, const StreamDecoderOptions& options)
    : pieces_(tokenizer, options) {}

std::string StreamDecoder::Push(int32_t token) {
  held_ += pieces_.Push(token);
  const size_t complete = CompletePrefix(held_);
  std::string text = ReplaceInvalidUtf8({held_.data(), complete});
  held_.erase(0, complete);
  return text;
}

std::string StreamDecoder::Finish() { return ReplaceInvalidUtf8(std::exchange(held_, {})); }

}  // namespace pando
