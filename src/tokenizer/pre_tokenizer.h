// PreTokenizer: cuts a text into the words that byte-level BPE may not merge across.
//
//   Result<PreTokenizer> pre_tokenizer = PreTokenizer::Create("smollm");
//   for (std::string_view word : pre_tokenizer->Split("It's 2024"))    // It  's  " "  2  0  2  4
#ifndef PANDO_SRC_TOKENIZER_PRE_TOKENIZER_H_
#define PANDO_SRC_TOKENIZER_PRE_TOKENIZER_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pando/status.h"
#include "src/tokenizer/regex.h"

namespace pando {

class PreTokenizer {
 public:
  // By the name that model files use (tokenizer.ggml.pre); fails with a list of those known.
  static Result<PreTokenizer> Create(std::string_view name);

  // The words, in order, which together are the text. Bytes that are no UTF-8 are characters of their own. Safe to call
  // from several threads.
  std::vector<std::string_view> Split(std::string_view text) const;

  // A word that is a token as a whole is that token, whatever the merges say.
  bool whole_words_first() const { return whole_words_first_; }
  // What a file that does not say so means.
  bool adds_bos() const { return adds_bos_; }

 private:
  PreTokenizer(std::vector<Regex> regexes, bool whole_words_first, bool adds_bos)
      : regexes_(std::move(regexes)), whole_words_first_(whole_words_first), adds_bos_(adds_bos) {}

  std::vector<Regex> regexes_;  // each cuts the pieces that the ones before it left
  bool whole_words_first_;
  bool adds_bos_;
};

// "smollm, llama-bpe, ...": all names that Create knows.
std::string PreTokenizerNames();

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_PRE_TOKENIZER_H_
