// Vocabulary: the tokens of a model, checked: their texts, what they print, which are special and which end a text.
//
//   Result<Vocabulary> vocabulary = Vocabulary::Create(kind, data);
//   std::optional<int32_t> id = vocabulary->Find("Ġhello");
#ifndef PANDO_SRC_TOKENIZER_VOCABULARY_H_
#define PANDO_SRC_TOKENIZER_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pando/status.h"
#include "src/tokenizer/tokenizer_data.h"

namespace pando {

enum class TokenizerKind {
  kByteLevelBpe,   // tokens are written in the byte alphabet (byte_alphabet.h)
  kSentencePiece,  // tokens are UTF-8 with "▁" for a space; bytes that no token covers have tokens of their own
};

class Vocabulary {
 public:
  // Fails where tokens are missing or twice, types are too few, or an id that the file names is no token.
  static Result<Vocabulary> Create(TokenizerKind kind, TokenizerData& data);

  int32_t size() const { return static_cast<int32_t>(texts_.size()); }
  bool Contains(int64_t id) const { return id >= 0 && id < size(); }

  // As the file has it. `id` is contained, here and below.
  const std::string& Text(int32_t id) const { return texts_[id]; }

  // The bytes that the token stands for.
  std::string_view Piece(int32_t id) const {
    return std::string_view{pieces_}.substr(piece_begins_[id], piece_begins_[id + 1] - piece_begins_[id]);
  }

  // The token whose text is exactly this. Empty tokens are never found.
  std::optional<int32_t> Find(std::string_view text) const;

  // Control and unknown tokens: no text of their own, found in a text only where it is trusted, hidden when printed.
  bool IsSpecial(int32_t id) const { return (flags_[id] & (kControlFlag | kUnknownFlag)) != 0; }
  // Found in any text.
  bool IsUserDefined(int32_t id) const { return (flags_[id] & kUserDefinedFlag) != 0 && !IsSpecial(id); }

  bool IsEndOfGeneration(int32_t id) const { return (flags_[id] & kEndFlag) != 0; }

  std::optional<int32_t> bos() const { return bos_; }
  std::optional<int32_t> eos() const { return eos_; }
  std::optional<int32_t> unknown() const { return unknown_; }

 private:
  enum Flag : uint8_t {
    kNormalFlag = 1,
    kControlFlag = 2,
    kUnknownFlag = 4,
    kUserDefinedFlag = 8,
    kByteFlag = 16,
    kEndFlag = 32,
  };

  Vocabulary() = default;
  Status TakeTokens(TokenizerData& data);
  Status TakeTypes(const std::vector<int32_t>& types);
  Status TakeSpecialIds(TokenizerKind kind, const SpecialTokenIds& ids);
  Result<std::optional<int32_t>> CheckedId(const char* key, std::optional<uint64_t> id) const;
  // The first of the names that is a token, which becomes a control token.
  std::optional<int32_t> MarkFirstOf(std::span<const std::string_view> names);
  void MakePieces(TokenizerKind kind);
  std::string MakePiece(TokenizerKind kind, int32_t id) const;

  std::vector<std::string> texts_;
  std::unordered_map<std::string_view, int32_t> ids_;  // keys point into texts_
  std::vector<uint8_t> flags_;
  std::string pieces_;  // one after the other
  std::vector<size_t> piece_begins_;
  std::optional<int32_t> bos_;
  std::optional<int32_t> eos_;
  std::optional<int32_t> unknown_;
};

// "<0x0A>" for 10: the name of a byte's token in a vocabulary as SentencePiece's.
std::string ByteTokenText(unsigned char byte);

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_VOCABULARY_H_
