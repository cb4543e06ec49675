// Vocabularies small enough to be read, for tests.
#ifndef PANDO_SRC_TOKENIZER_TESTING_SMALL_VOCABULARIES_H_
#define PANDO_SRC_TOKENIZER_TESTING_SMALL_VOCABULARIES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/tokenizer/byte_alphabet.h"
#include "src/tokenizer/tokenizer_data.h"
#include "src/tokenizer/vocabulary.h"

namespace pando::test_support {

inline void AddToken(TokenizerData& data, const std::string& text, TokenType type, float score = 0) {
  data.tokens.push_back(text);
  data.token_types.push_back(static_cast<int32_t>(type));
  data.scores.push_back(score);
}

// Byte-level BPE: tokens 0 to 255 are the bytes, then what the merges make ("h e" makes "he"), then <|end|> (control),
// <|begin|> (control, BOS, not added), and <user> (user-defined).
inline TokenizerData ByteLevelData(const std::vector<std::string>& merges, const std::string& pre_tokenizer = "gpt-2") {
  TokenizerData data = {.model = "gpt2", .pre_tokenizer = pre_tokenizer, .merges = merges};
  for (int byte = 0; byte < 256; ++byte) {
    AddToken(data, std::string(CharacterOfByte(static_cast<unsigned char>(byte))), TokenType::kNormal);
  }
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ', 1);
    AddToken(data, merge.substr(0, space) + merge.substr(space + 1), TokenType::kNormal);
  }
  data.special_ids = {.bos = data.tokens.size() + 1, .eos = data.tokens.size()};
  data.add_bos = false;
  AddToken(data, "<|end|>", TokenType::kControl);
  AddToken(data, "<|begin|>", TokenType::kControl);
  AddToken(data, "<user>", TokenType::kUserDefined);
  return data;
}

// As SentencePiece: <unk>, <s>, </s>, the bytes <0x00> to <0xFF> (3 to 258), then the given tokens with their scores,
// then <user> (user-defined).
inline TokenizerData SentencePieceData(const std::vector<std::pair<std::string, float>>& tokens) {
  TokenizerData data = {.model = "llama"};
  AddToken(data, "<unk>", TokenType::kUnknown);
  AddToken(data, "<s>", TokenType::kControl);
  AddToken(data, "</s>", TokenType::kControl);
  for (int byte = 0; byte < 256; ++byte) {
    AddToken(data, ByteTokenText(static_cast<unsigned char>(byte)), TokenType::kByte);
  }
  for (const auto& [text, score] : tokens) AddToken(data, text, TokenType::kNormal, score);
  AddToken(data, "<user>", TokenType::kUserDefined);
  return data;
}

}  // namespace pando::test_support

#endif  // PANDO_SRC_TOKENIZER_TESTING_SMALL_VOCABULARIES_H_
