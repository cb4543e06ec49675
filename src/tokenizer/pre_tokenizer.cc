#include "src/tokenizer/pre_tokenizer.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/errors.h"
#include "src/base/printable.h"
#include "src/tokenizer/utf8.h"

namespace pando {
namespace {

// A space belongs to the word after it. Of several spaces all but the last are a word.
constexpr const char* kGpt2Words = R"('s|'t|'re|'ve|'m|'ll|'d| ?[%L]++| ?[%N]++| ?[^%S%L%N]++|[%S]+(?![^%S])|[%S]+)";

// Numbers in groups of one to three digits, any one character may begin a word, lines end words.
constexpr const char* kLlama3Words =
    R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n%L%N]?[%L]++|[%N]{1,3}+)"
    R"(| ?[^%S%L%N]++[\r\n]*+|[%S]*[\r\n]+|[%S]+(?![^%S])|[%S]+)";

// The same with single digits.
constexpr const char* kQwen2Words = R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n%L%N]?[%L]++|[%N])"
                                    R"(| ?[^%S%L%N]++[\r\n]*+|[%S]*[\r\n]+|[%S]+(?![^%S])|[%S]+)";

// Which of the patterns above, and in what order: each cuts what the one before left.
using Patterns = std::array<const char*, 4>;
constexpr Patterns kGpt2 = {kGpt2Words};
constexpr Patterns kSmollm = {"[%N]", kGpt2Words};
constexpr Patterns kLlama3 = {kLlama3Words};
constexpr Patterns kQwen2 = {kQwen2Words};
constexpr Patterns kDefault = {R"([%P$+<=>^~|]++)", kGpt2Words, "[%N]++", "[0-9][0-9][0-9]"};

struct Entry {
  std::string_view name;
  const Patterns& patterns;
  bool whole_words_first = false;
  bool adds_bos = false;
};

// First the names that models of the supported architectures have, then others that mean exactly the same.
constexpr Entry kEntries[] = {
    {"smollm", kSmollm},
    {"llama-bpe", kLlama3, true, true},
    {"gpt-2", kGpt2},
    {"qwen2", kQwen2},
    {"default", kDefault},
    {"llama3", kLlama3, true, true},
    {"llama-v3", kLlama3, true, true},
    {"falcon3", kLlama3, true, true},
    {"pixtral", kLlama3, true, true},
    {"smaug-bpe", kLlama3},
    {"dbrx", kLlama3},
    {"starcoder", kSmollm},
    {"refact", kSmollm},
    {"command-r", kSmollm},
    {"codeshell", kSmollm},
    {"minerva-7b", kSmollm},
    {"phi-2", kGpt2},
    {"mpt", kGpt2},
    {"olmo", kGpt2},
    {"jais", kGpt2},
    {"deepseek-r1-qwen", kQwen2},
    {"stablelm2", kQwen2},
    {"megrez", kQwen2},
};

const Entry* FindEntry(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace

std::string PreTokenizerNames() {
  std::string names;
  for (const Entry& entry : kEntries) {
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  return names;
}

Result<PreTokenizer> PreTokenizer::Create(std::string_view name) {
  const Entry* entry = FindEntry(name);
  if (entry == nullptr) {
    return InvalidArgument("the model file's pre-tokenizer (tokenizer.ggml.pre) is \"{}\": the known ones are {}",
                           Printable(name, /*max_bytes=*/60), PreTokenizerNames());
  }
  std::vector<Regex> regexes;
  for (const char* pattern : entry->patterns) {
    if (pattern == nullptr) break;
    Result<Regex> regex = Regex::Compile(pattern);
    if (!regex.ok()) return regex.status();
    regexes.push_back(*regex);
  }
  return PreTokenizer(std::move(regexes), entry->whole_words_first, entry->adds_bos);
}

std::vector<std::string_view> PreTokenizer::Split(std::string_view text) const {
  std::vector<uint32_t> code_points;
  std::vector<uint8_t> num_bytes;  // of each of them
  code_points.reserve(text.size());
  num_bytes.reserve(text.size());
  for (size_t offset = 0; offset < text.size(); offset += num_bytes.back()) {
    const Utf8Character character = DecodeLenient(text, offset);
    code_points.push_back(character.code_point);
    num_bytes.push_back(static_cast<uint8_t>(character.num_bytes));
  }
  std::vector<size_t> lengths = {code_points.size()};
  for (const Regex& regex : regexes_) lengths = regex.Cut(code_points, lengths);

  std::vector<std::string_view> words;
  words.reserve(lengths.size());
  size_t character = 0;
  size_t begin = 0;
  for (const size_t length : lengths) {
    size_t end = begin;
    for (size_t i = 0; i < length; ++i) end += num_bytes[character++];
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

}  // namespace pando
