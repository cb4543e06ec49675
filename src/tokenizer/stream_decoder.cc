#include "src/tokenizer/stream_decoder.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include "src/tokenizer/utf8.h"

namespace pando {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, const StreamDecoderOptions& options)
    : tokenizer_(&tokenizer),
      options_(options),
      drops_space_(tokenizer.adds_space_prefix() && !options.is_continuation) {}

std::string StreamDecoder::Push(int32_t token) {
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
  held_ += piece;
  const size_t complete = CompletePrefix(held_);
  std::string text = held_.substr(0, complete);
  held_.erase(0, complete);
  return text;
}

std::string StreamDecoder::Finish() {
  drops_space_ = tokenizer_->adds_space_prefix() && !options_.is_continuation;
  return std::exchange(held_, {});
}

}  // namespace pando
