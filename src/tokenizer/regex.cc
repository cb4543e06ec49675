#include "src/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 32
#include <pcre2.h>

#include <limits>
#include <new>
#include <utility>

#include "src/base/check.h"
#include "src/base/errors.h"

namespace pando {
namespace {

// What Unicode 15.0 and 15.1 added to the tables of PCRE2 10.42 (Unicode 14). Newer ones have them twice.
constexpr std::string_view kLetters =
    R"(\p{L}\x{1123F}-\x{11240}\x{11F02}\x{11F04}-\x{11F10}\x{11F12}-\x{11F33}\x{1342F}\x{13441}-\x{13446}\x{1B132})"
    R"(\x{1B155}\x{1DF25}-\x{1DF2A}\x{1E030}-\x{1E06D}\x{1E4D0}-\x{1E4EB}\x{2B739}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})";
constexpr std::string_view kNumbers = R"(\p{N}\x{11F50}-\x{11F59}\x{1D2C0}-\x{1D2D3}\x{1E4F0}-\x{1E4F9})";
constexpr std::string_view kPunctuation = R"(\p{P}\x{11B00}-\x{11B09}\x{11F43}-\x{11F4F})";
// Written out: PCRE2's \s has U+180E too, which has not been white space since Unicode 6.3.
constexpr std::string_view kSpaces =
    R"(\x09-\x0D\x20\x85\xA0\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

std::string_view ClassOf(char name) {
  switch (name) {
    case 'L':
      return kLetters;
    case 'N':
      return kNumbers;
    case 'P':
      return kPunctuation;
    default:
      return kSpaces;
  }
}

std::vector<uint32_t> Expand(std::string_view pattern) {
  std::vector<uint32_t> expanded;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const bool is_class = pattern[i] == '%' && i + 1 < pattern.size();
    const std::string_view part = is_class ? ClassOf(pattern[++i]) : pattern.substr(i, 1);
    for (const char c : part) expanded.push_back(static_cast<unsigned char>(c));
  }
  return expanded;
}

}  // namespace

struct Regex::Compiled {
  struct FreeCode {
    void operator()(pcre2_code* owned) const { pcre2_code_free(owned); }
  };
  struct FreeMatchContext {
    void operator()(pcre2_match_context* owned) const { pcre2_match_context_free(owned); }
  };

  std::unique_ptr<pcre2_code, FreeCode> code;
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context;
};

Result<Regex> Regex::Compile(std::string_view pattern) {
  const std::vector<uint32_t> expanded = Expand(pattern);
  auto compiled = std::make_shared<Compiled>();
  int error = 0;
  PCRE2_SIZE offset = 0;
  // Not PCRE2_UTF: then any 32 bits are a character, and nothing has to be checked for validity.
  compiled->code.reset(pcre2_compile(expanded.data(), expanded.size(), PCRE2_UCP, &error, &offset, nullptr));
  compiled->context.reset(pcre2_match_context_create(nullptr));
  if (compiled->code == nullptr || compiled->context == nullptr) {
    return Failed("PCRE2 refused the pattern {} of a pre-tokenizer (its error {})", pattern, error);
  }
  // Where the system allows no code made at run time, PCRE2 interprets the pattern instead.
  pcre2_jit_compile(compiled->code.get(), PCRE2_JIT_COMPLETE);
  // The limits are for patterns from strangers: a long run of spaces would reach them.
  pcre2_set_match_limit(compiled->context.get(), std::numeric_limits<uint32_t>::max());
  pcre2_set_depth_limit(compiled->context.get(), std::numeric_limits<uint32_t>::max());
  pcre2_set_heap_limit(compiled->context.get(), std::numeric_limits<uint32_t>::max());
  return Regex(std::move(compiled));
}

struct Regex::Matcher {
  struct FreeMatchData {
    void operator()(pcre2_match_data* owned) const { pcre2_match_data_free(owned); }
  };

  const Compiled& compiled;
  std::unique_ptr<pcre2_match_data, FreeMatchData> match{pcre2_match_data_create(1, nullptr)};

  void CutPiece(std::span<const uint32_t> piece, std::vector<size_t>& lengths) {
    const PCRE2_SIZE* const bounds = pcre2_get_ovector_pointer(match.get());
    size_t end = 0;
    while (end < piece.size()) {
      const int result =
          pcre2_match(compiled.code.get(), piece.data(), piece.size(), end, 0, match.get(), compiled.context.get());
      if (result == PCRE2_ERROR_NOMATCH) break;
      PANDO_CHECK(result >= 0 && bounds[0] >= end && bounds[1] > bounds[0]);
      if (bounds[0] > end) lengths.push_back(bounds[0] - end);
      lengths.push_back(bounds[1] - bounds[0]);
      end = bounds[1];
    }
    if (end < piece.size()) lengths.push_back(piece.size() - end);
  }
};

std::vector<size_t> Regex::Cut(std::span<const uint32_t> text, const std::vector<size_t>& pieces) const {
  Matcher matcher = {*compiled_};
  if (matcher.match == nullptr) throw std::bad_alloc();
  std::vector<size_t> lengths;
  lengths.reserve(pieces.size());
  size_t begin = 0;
  for (const size_t length : pieces) {
    matcher.CutPiece(text.subspan(begin, length), lengths);
    begin += length;
  }
  return lengths;
}

}  // namespace pando
