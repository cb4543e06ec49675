// TokenizerData: what a model file says about its tokenizer, as plain data that a test can write down.
//
//   TokenizerData data = {.model = "gpt2", .pre_tokenizer = "smollm", .tokens = {"a", "b", "ab"}, .merges = {"a b"}};
//   Result<Tokenizer> tokenizer = Tokenizer::Create(std::move(data));
//
// Nothing here is trusted: Tokenizer::Create checks it. The names in comments are the keys of a GGUF file.
#ifndef PANDO_SRC_TOKENIZER_TOKENIZER_DATA_H_
#define PANDO_SRC_TOKENIZER_TOKENIZER_DATA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pando {

// Values of tokenizer.ggml.token_type.
enum class TokenType : int32_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,      // stands for what the vocabulary cannot say
  kControl = 3,      // special: begins and ends texts, turns of a chat and the like
  kUserDefined = 4,  // added to the vocabulary as it is: found in any text before everything else
  kUnused = 5,
  kByte = 6,  // "<0xE2>": one byte of what no other token covers
};

// Values of the ids that a file gives for tokens with a meaning. No value: the file says nothing.
struct SpecialTokenIds {
  std::optional<uint64_t> bos;      // tokenizer.ggml.bos_token_id: begins a text
  std::optional<uint64_t> eos;      // tokenizer.ggml.eos_token_id: ends one
  std::optional<uint64_t> eot;      // tokenizer.ggml.eot_token_id: ends a turn
  std::optional<uint64_t> eom;      // tokenizer.ggml.eom_token_id: ends a message
  std::optional<uint64_t> unknown;  // tokenizer.ggml.unknown_token_id
  std::optional<uint64_t> fim_pad;  // tokenizer.ggml.fim_pad_token_id, and the next two: they end a text too
  std::optional<uint64_t> fim_rep;
  std::optional<uint64_t> fim_sep;
};

struct TokenizerData {
  std::string model;          // tokenizer.ggml.model: "gpt2" (byte-level BPE) or "llama" (as SentencePiece)
  std::string pre_tokenizer;  // tokenizer.ggml.pre; empty is "default". Only gpt2 has one.

  std::vector<std::string> tokens;   // tokenizer.ggml.tokens; a token's id is its index
  std::vector<int32_t> token_types;  // tokenizer.ggml.token_type, TokenType of each; empty: all are normal
  std::vector<float> scores;         // tokenizer.ggml.scores: what llama merges by
  std::vector<std::string> merges;   // tokenizer.ggml.merges: what gpt2 merges by, "left right", the first first

  SpecialTokenIds special_ids;
  std::optional<bool> add_bos;           // tokenizer.ggml.add_bos_token; no value: as the model's kind has it
  std::optional<bool> add_eos;           // tokenizer.ggml.add_eos_token
  std::optional<bool> add_space_prefix;  // tokenizer.ggml.add_space_prefix; only llama has one

  std::string chat_template;  // tokenizer.chat_template, in Jinja; empty: none
};

}  // namespace pando

#endif  // PANDO_SRC_TOKENIZER_TOKENIZER_DATA_H_
