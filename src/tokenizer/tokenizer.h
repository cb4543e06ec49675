// Tokenizer: text to tokens and back, as the model's makers meant it; the same tokens as llama.cpp's.
//
//   Result<Tokenizer> tokenizer = Tokenizer::Create(std::move(data));
//   std::vector<int32_t> tokens = tokenizer->Encode("The quick brown fox");
//   std::string text = tokenizer->Decode(tokens);
//
// A tokenizer is not changed by use: any number of threads may share one. Encoding takes time in proportion to the text
// (times the logarithm of its longest word), whatever the text and the vocabulary are.
#ifndef PANDO_SRC_TOKENIZER_TOKENIZER_H_
#define PANDO_SRC_TOKENIZER_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pando/status.h"
#include "src/tokenizer/tokenizer_data.h"
#include "src/tokenizer/vocabulary.h"

namespace pando {

// What becomes of bytes that are not UTF-8.
enum class InvalidUtf8 {
  // As in llama.cpp. Byte-level BPE replaces each by U+FFFD. SentencePiece's tokens for bytes keep them, but the first
  // byte of a broken character takes what follows with it, a space as "▁".
  kReplace,
  // Decoding gives back every byte that has a token, and every text that has no "▁" where that is a space.
  kKeep,
};

struct EncodeOptions {
  bool add_special = true;    // begin with BOS and end with EOS, where the model wants them
  bool parse_special = true;  // "<|im_end|>" in the text is the control token; otherwise it is text like any other
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kReplace;
};

// Part of a text that is put together from what we write and what a user wrote.
struct TextPiece {
  std::string text;
  bool is_trusted;  // control tokens are looked for in here, and not elsewhere
};

class Tokenizer {
 public:
  // Texts up to this length can be encoded.
  static constexpr size_t kMaxTextBytes = size_t{1} << 30;

  // Fails where the data does not fit together, and where the model or its pre-tokenizer is not known.
  static Result<Tokenizer> Create(TokenizerData data);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // At most kMaxTextBytes.
  std::vector<int32_t> Encode(std::string_view text, const EncodeOptions& options = {}) const;

  // All pieces as one text: tokens may reach across their borders, but for control tokens, which lie in trusted pieces.
  // `options.parse_special` is not looked at, and BOS is not added where the first piece begins with it.
  std::vector<int32_t> EncodePieces(std::span<const TextPiece> pieces, const EncodeOptions& options = {}) const;

  // What the tokens stand for. `special`: show control tokens too. Tokens that are not in the vocabulary are left out.
  // A space that encoding put before a text is taken off again.
  std::string Decode(std::span<const int32_t> tokens, bool special = false) const;

  const Vocabulary& vocabulary() const;
  int32_t vocabulary_size() const { return vocabulary().size(); }
  bool IsEndOfGeneration(int32_t token) const {
    return vocabulary().Contains(token) && vocabulary().IsEndOfGeneration(token);
  }
  bool adds_bos() const;  // whether add_special begins a text with BOS
  bool adds_eos() const;
  bool adds_space_prefix() const;  // whether a text begins with a space that is not its own

  // The model's template of a chat, in Jinja (chat_template.h); empty: none.
  const std::string& chat_template() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<const State> state);

  std::unique_ptr<const State> state_;
};

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_TOKENIZER_H_
