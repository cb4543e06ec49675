#include "src/tokenizer/tokenizer.h"

#include <utility>
#include <variant>

#include "src/base/check.h"
#include "src/base/errors.h"
#include "src/base/printable.h"
#include "src/tokenizer/bpe_encoder.h"
#include "src/tokenizer/sentencepiece_encoder.h"
#include "src/tokenizer/special_tokens.h"
#include "src/tokenizer/stream_decoder.h"
#include "src/tokenizer/utf8.h"

namespace pando {
namespace {

Result<TokenizerKind> KindOf(const std::string& model) {
  if (model == "gpt2") return TokenizerKind::kByteLevelBpe;
  if (model == "llama") return TokenizerKind::kSentencePiece;
  return InvalidArgument(
      "the model file's tokenizer (tokenizer.ggml.model) is \"{}\": the known ones are gpt2 and llama",
      Printable(model, /*max_bytes=*/60));
}

// Appends `text` with "▁" for every space.
void AppendWithSpaceMarks(std::string_view text, std::string& marked) {
  for (const char c : text) {
    if (c == ' ') {
      marked += "\xE2\x96\x81";
    } else {
      marked.push_back(c);
    }
  }
}

}  // namespace

struct Tokenizer::State {
  explicit State(Vocabulary the_vocabulary) : vocabulary(std::move(the_vocabulary)), special_tokens(vocabulary) {}

  Status TakeOptions(const TokenizerData& data, bool adds_bos_by_kind);
  void EncodeFragment(std::string_view text, InvalidUtf8 invalid_utf8, std::vector<int32_t>& tokens) const;
  std::vector<int32_t> Encode(std::string_view text, std::span<const TextRange> trusted,
                              const EncodeOptions& options) const;

  Vocabulary vocabulary;
  SpecialTokens special_tokens;
  std::optional<BpeEncoder> bpe;  // one of the two
  std::optional<SentencePieceEncoder> sentencepiece;
  bool adds_bos = false;
  bool adds_eos = false;
  bool adds_space_prefix = false;
  std::string chat_template;
};

Status Tokenizer::State::TakeOptions(const TokenizerData& data, bool adds_bos_by_kind) {
  adds_bos = data.add_bos.value_or(adds_bos_by_kind);
  adds_eos = data.add_eos.value_or(false);
  adds_space_prefix = sentencepiece.has_value() && data.add_space_prefix.value_or(true);
  chat_template = data.chat_template;
  if (adds_bos && !vocabulary.bos().has_value()) {
    return InvalidArgument(
        "texts of this model begin with a BOS token, and the model file does not say which that is "
        "(tokenizer.ggml.bos_token_id)");
  }
  if (adds_eos && !vocabulary.eos().has_value()) {
    return InvalidArgument(
        "texts of this model end with an EOS token, and the model file does not say which that is "
        "(tokenizer.ggml.eos_token_id)");
  }
  return Status();
}

Result<Tokenizer> Tokenizer::Create(TokenizerData data) {
  const Result<TokenizerKind> kind = KindOf(data.model);
  if (!kind.ok()) return kind.status();
  Result<Vocabulary> vocabulary = Vocabulary::Create(*kind, data);
  if (!vocabulary.ok()) return vocabulary.status();
  auto state = std::make_unique<State>(std::move(*vocabulary));
  bool adds_bos = true;
  if (*kind == TokenizerKind::kByteLevelBpe) {
    Result<PreTokenizer> pre = PreTokenizer::Create(data.pre_tokenizer.empty() ? "default" : data.pre_tokenizer);
    if (!pre.ok()) return pre.status();
    adds_bos = pre->adds_bos();
    Result<BpeEncoder> encoder = BpeEncoder::Create(state->vocabulary, data.merges, std::move(*pre));
    if (!encoder.ok()) return encoder.status();
    state->bpe = std::move(*encoder);
  } else {
    Result<SentencePieceEncoder> encoder = SentencePieceEncoder::Create(state->vocabulary, data.scores);
    if (!encoder.ok()) return encoder.status();
    state->sentencepiece = std::move(*encoder);
  }
  if (Status status = state->TakeOptions(data, adds_bos); !status.ok()) return status;
  return Tokenizer(std::move(state));
}

Tokenizer::Tokenizer(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

void Tokenizer::State::EncodeFragment(std::string_view text, InvalidUtf8 invalid_utf8,
                                      std::vector<int32_t>& tokens) const {
  if (text.empty()) return;
  if (sentencepiece.has_value()) {
    std::string marked;
    marked.reserve(text.size() + text.size() / 4);
    // Between two special tokens as at the beginning of the text.
    if (adds_space_prefix) AppendWithSpaceMarks(" ", marked);
    AppendWithSpaceMarks(text, marked);
    return sentencepiece->Encode(marked, invalid_utf8 == InvalidUtf8::kKeep, tokens);
  }
  if (invalid_utf8 == InvalidUtf8::kKeep || SurvivesLenientDecoding(text)) return bpe->Encode(text, tokens);
  bpe->Encode(ReencodeLenient(text), tokens);
}

std::vector<int32_t> Tokenizer::State::Encode(std::string_view text, std::span<const TextRange> trusted,
                                              const EncodeOptions& options) const {
  PANDO_CHECK(text.size() <= kMaxTextBytes);
  std::vector<int32_t> tokens;
  if (options.add_special && adds_bos) tokens.push_back(*vocabulary.bos());
  size_t begin = 0;
  special_tokens.Find(text, trusted, [&](const SpecialTokens::Match& match) {
    EncodeFragment(text.substr(begin, match.range.begin - begin), options.invalid_utf8, tokens);
    tokens.push_back(match.id);
    begin = match.range.end;
  });
  EncodeFragment(text.substr(begin), options.invalid_utf8, tokens);
  if (options.add_special && adds_eos) tokens.push_back(*vocabulary.eos());
  return tokens;
}

std::vector<int32_t> Tokenizer::Encode(std::string_view text, const EncodeOptions& options) const {
  const TextRange all = {0, text.size()};
  return state_->Encode(text, {&all, options.parse_special ? size_t{1} : size_t{0}}, options);
}

std::vector<int32_t> Tokenizer::EncodePieces(std::span<const TextPiece> pieces, const EncodeOptions& options) const {
  std::string text;
  std::vector<TextRange> trusted;
  for (const TextPiece& piece : pieces) {
    const TextRange range = {text.size(), text.size() + piece.text.size()};
    text += piece.text;
    if (!piece.is_trusted) continue;
    if (!trusted.empty() && trusted.back().end == range.begin) {
      trusted.back().end = range.end;
    } else {
      trusted.push_back(range);
    }
  }
  std::vector<int32_t> tokens = state_->Encode(text, trusted, options);
  const bool is_doubled = options.add_special && adds_bos() && tokens.size() > 1 && tokens[1] == vocabulary().bos();
  if (is_doubled && !pieces.empty() && pieces.front().is_trusted) tokens.erase(tokens.begin());
  return tokens;
}

std::string Tokenizer::Decode(std::span<const int32_t> tokens, bool special) const {
  std::string text;
  PieceDecoder decoder(*this, {.special = special});
  for (const int32_t token : tokens) text += decoder.Push(token);
  return text;
}

const Vocabulary& Tokenizer::vocabulary() const { return state_->vocabulary; }
bool Tokenizer::adds_bos() const { return state_->adds_bos; }
bool Tokenizer::adds_eos() const { return state_->adds_eos; }
bool Tokenizer::adds_space_prefix() const { return state_->adds_space_prefix; }
const std::string& Tokenizer::chat_template() const { return state_->chat_template; }

}  // namespace pando
