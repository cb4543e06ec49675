// Regex: a pattern of a pre-tokenizer (PCRE2), matched on code points.
//
//   Result<Regex> regex = Regex::Compile(" ?[%L]+| ?[%N]+|[^%S%L%N]+|[%S]+(?![^%S])|[%S]+");
//   std::vector<size_t> lengths = regex->Cut(code_points, {code_points.size()});     // " a1": {2, 1}
//
// Inside brackets %L, %N, %P and %S are letters, numbers, punctuation and white space. They are those of Unicode 15.1
// and White_Space as vocabularies of models were split by, where the installed PCRE2 has older tables or another idea.
#ifndef PANDO_SRC_TOKENIZER_REGEX_H_
#define PANDO_SRC_TOKENIZER_REGEX_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "pando/status.h"

namespace pando {

class Regex {
 public:
  // `pattern` is ASCII and ours. It must not match the empty text, nor backtrack but over single characters: then
  // matching takes no stack and time in proportion to the text.
  static Result<Regex> Compile(std::string_view pattern);

  // Cuts each piece of a text into its matches and what lies between them. Pieces are given by their lengths, here and
  // in what is returned; a match sees nothing beyond its piece. Any values are allowed in `text`, also ones that are no
  // code points. Safe to call from several threads.
  std::vector<size_t> Cut(std::span<const uint32_t> text, const std::vector<size_t>& pieces) const;

 private:
  struct Compiled;
  struct Matcher;
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_REGEX_H_
