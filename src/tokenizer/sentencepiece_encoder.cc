#include "src/tokenizer/sentencepiece_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>

#include "src/base/errors.h"
#include "src/tokenizer/utf8.h"

namespace pando {
namespace {

// The character that begins at `offset`: as many bytes as its first one promises, whatever they are, unless only whole
// ones will do.
std::string_view CharacterAt(std::string_view text, size_t offset, bool only_whole = false) {
  if (only_whole) return text.substr(offset, DecodeLenient(text, offset).num_bytes);
  return text.substr(offset, Utf8LengthFromLead(static_cast<unsigned char>(text[offset])));
}

// Its bytes, at most four.
uint64_t KeyOf(std::string_view character) {
  uint32_t key = 0;
  std::memcpy(&key, character.data(), character.size());
  return key;
}

uint64_t PairOf(std::string_view left, std::string_view right) { return KeyOf(left) << 32 | KeyOf(right); }

}  // namespace

Result<SentencePieceEncoder> SentencePieceEncoder::Create(const Vocabulary& vocabulary,
                                                          const std::vector<float>& scores) {
  if (scores.size() != static_cast<size_t>(vocabulary.size())) {
    return InvalidArgument(
        "the vocabulary has {} tokens and {} scores (tokenizer.ggml.scores): the model file is damaged",
        vocabulary.size(), scores.size());
  }
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) {
      return InvalidArgument("the score of token {} (tokenizer.ggml.scores) is not a number: the model file is damaged",
                             i);
    }
  }
  SentencePieceEncoder encoder(vocabulary);
  encoder.TakePriorities(scores);
  encoder.TakePairs();
  encoder.TakeBytes();
  return encoder;
}

// Equal scores are equal priorities: then the text decides, from left to right.
void SentencePieceEncoder::TakePriorities(const std::vector<float>& scores) {
  std::vector<float> best_first = scores;
  std::sort(best_first.begin(), best_first.end(), std::greater<>());
  best_first.erase(std::unique(best_first.begin(), best_first.end()), best_first.end());
  priorities_.reserve(scores.size());
  for (const float score : scores) {
    const auto place = std::lower_bound(best_first.begin(), best_first.end(), score, std::greater<>());
    priorities_.push_back(static_cast<uint32_t>(place - best_first.begin()));
  }
}

void SentencePieceEncoder::TakePairs() {
  for (int32_t id = 0; id < vocabulary_->size(); ++id) {
    const std::string_view text = vocabulary_->Text(id);
    for (size_t offset = 0; offset < text.size();) {
      const std::string_view character = CharacterAt(text, offset);
      offset += character.size();
      if (offset < text.size()) pairs_.insert(PairOf(character, CharacterAt(text, offset)));
    }
  }
}

void SentencePieceEncoder::TakeBytes() {
  for (int byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<unsigned char>(byte);
    std::optional<int32_t> token = vocabulary_->Find(ByteTokenText(value));
    if (!token.has_value()) token = vocabulary_->Find(std::string(1, static_cast<char>(value)));
    if (!token.has_value()) token = vocabulary_->unknown();
    byte_tokens_[value] = token.value_or(-1);
  }
}

// No token reaches across a place whose two characters are neighbours in no token, so the text falls into words there
// that can be looked at one by one. In most vocabularies a word ends before every "▁".
size_t SentencePieceEncoder::EndOfWord(std::string_view text, size_t begin, bool only_whole_characters) const {
  std::string_view character = CharacterAt(text, begin, only_whole_characters);
  size_t end = begin + character.size();
  while (end < text.size()) {
    const std::string_view next = CharacterAt(text, end, only_whole_characters);
    if (!pairs_.contains(PairOf(character, next))) break;
    character = next;
    end += next.size();
  }
  return end;
}

void SentencePieceEncoder::Encode(std::string_view text, bool only_whole_characters,
                                  std::vector<int32_t>& tokens) const {
  SymbolMerger merger;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = EndOfWord(text, begin, only_whole_characters);
    EncodeWord(text.substr(begin, end - begin), only_whole_characters, merger, tokens);
    begin = end;
  }
}

void SentencePieceEncoder::EncodeWord(std::string_view word, bool only_whole_characters, SymbolMerger& merger,
                                      std::vector<int32_t>& tokens) const {
  merger.Clear();
  for (size_t offset = 0; offset < word.size();) {
    const std::string_view character = CharacterAt(word, offset, only_whole_characters);
    merger.Add(static_cast<uint32_t>(character.size()), vocabulary_->Find(character).value_or(-1));
    offset += character.size();
  }
  merger.Run([&](const Symbol& left, const Symbol& right, uint32_t begin) -> std::optional<SymbolMerge> {
    const std::optional<int32_t> token = vocabulary_->Find(word.substr(begin, left.num_bytes + right.num_bytes));
    if (!token.has_value()) return std::nullopt;
    return SymbolMerge{priorities_[*token], *token};
  });
  merger.ForEach([&](const Symbol& symbol, uint32_t begin) {
    if (symbol.id >= 0) return tokens.push_back(symbol.id);
    AppendBytes(word.substr(begin, symbol.num_bytes), tokens);
  });
}

void SentencePieceEncoder::AppendBytes(std::string_view bytes, std::vector<int32_t>& tokens) const {
  for (const char byte : bytes) {
    const int32_t token = byte_tokens_[static_cast<unsigned char>(byte)];
    if (token >= 0) tokens.push_back(token);
  }
}

}  // namespace pando
