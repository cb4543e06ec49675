#include "src/tokenizer/vocabulary.h"

#include <array>
#include <charconv>
#include <limits>

#include "src/base/errors.h"
#include "src/base/printable.h"
#include "src/tokenizer/byte_alphabet.h"

namespace pando {
namespace {

constexpr size_t kMaxShownBytes = 60;  // of a token in a message

// What converters write for "none".
constexpr uint64_t kNoId = std::numeric_limits<uint32_t>::max();

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// Files name one end of text and their models use several: for a text, a turn, a message. These are known by name.
constexpr std::string_view kEndNames[] = {"<|eot_id|>",
                                          "<|im_end|>",
                                          "<|end|>",
                                          "<|return|>",
                                          "<|call|>",
                                          "<|flush|>",
                                          "<|calls|>",
                                          "<end_of_turn>",
                                          "<|endoftext|>",
                                          "</s>",
                                          "<|eom_id|>",
                                          "<EOT>",
                                          "_<EOT>",
                                          "[EOT]",
                                          "[EOS]",
                                          "<eos>",
                                          "<|end_of_text|>",
                                          "<turn|>",
                                          "<|tool_response>",
                                          "[e~[",
                                          "<end_of_utterance>",
                                          "<｜end▁of▁sentence｜>"};
// The same for models of code, where a repository's or a file's end is one too.
constexpr std::string_view kPadNames[] = {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"};
constexpr std::string_view kRepositoryNames[] = {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"};
constexpr std::string_view kFileNames[] = {"<|file_sep|>"};

// Control tokens whose files may call them normal.
constexpr std::string_view kPrefixNames[] = {"<|fim_prefix|>", "<fim-prefix>",    "<fim_prefix>", "<PRE>",
                                             "▁<PRE>",         "<|code_prefix|>", "<|prefix|>",   "<｜fim▁begin｜>"};
constexpr std::string_view kSuffixNames[] = {"<|fim_suffix|>", "<fim-suffix>",    "<fim_suffix>", "<SUF>",
                                             "▁<SUF>",         "<|code_suffix|>", "<|suffix|>",   "<｜fim▁hole｜>"};
constexpr std::string_view kMiddleNames[] = {"<|fim_middle|>", "<fim-middle>",    "<fim_middle>", "<MID>",
                                             "▁<MID>",         "<|code_middle|>", "<|middle|>",   "<｜fim▁end｜>"};

std::string ReplaceSpaceMarks(const std::string& text) {
  std::string result;
  size_t begin = 0;
  for (size_t mark; (mark = text.find(kSpaceMark, begin)) != std::string::npos; begin = mark + kSpaceMark.size()) {
    result.append(text, begin, mark - begin).push_back(' ');
  }
  return result.append(text, begin);
}

// The byte of "<0xE2>".
std::optional<char> ByteOfText(const std::string& text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, value, 16);
  if (error != std::errc() || end != text.data() + 5) return std::nullopt;
  return static_cast<char>(value);
}

}  // namespace

std::string ByteTokenText(unsigned char byte) { return fmt::format("<0x{:02X}>", byte); }

Result<Vocabulary> Vocabulary::Create(TokenizerKind kind, TokenizerData& data) {
  Vocabulary vocabulary;
  if (Status status = vocabulary.TakeTokens(data); !status.ok()) return status;
  if (Status status = vocabulary.TakeTypes(data.token_types); !status.ok()) return status;
  if (Status status = vocabulary.TakeSpecialIds(kind, data.special_ids); !status.ok()) return status;
  vocabulary.MakePieces(kind);
  return vocabulary;
}

Status Vocabulary::TakeTokens(TokenizerData& data) {
  if (data.tokens.empty()) return InvalidArgument("the vocabulary (tokenizer.ggml.tokens) has no tokens");
  if (data.tokens.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return InvalidArgument("the vocabulary has {} tokens: ids have 31 bits", data.tokens.size());
  }
  texts_ = std::move(data.tokens);
  ids_.reserve(texts_.size());
  for (int32_t id = 0; id < size(); ++id) {
    if (texts_[id].empty()) continue;
    const auto [other, is_new] = ids_.emplace(texts_[id], id);
    if (!is_new) {
      return InvalidArgument("tokens {} and {} of the vocabulary are both \"{}\": the model file is damaged",
                             other->second, id, Printable(texts_[id], kMaxShownBytes));
    }
  }
  return Status();
}

Status Vocabulary::TakeTypes(const std::vector<int32_t>& types) {
  flags_.assign(texts_.size(), kNormalFlag);
  if (types.empty()) return Status();
  if (types.size() != texts_.size()) {
    return InvalidArgument(
        "the vocabulary has {} tokens and {} types (tokenizer.ggml.token_type): the model file is damaged",
        texts_.size(), types.size());
  }
  for (size_t i = 0; i < types.size(); ++i) {
    switch (static_cast<TokenType>(types[i])) {
      case TokenType::kNormal:
        break;
      case TokenType::kUnknown:
        flags_[i] = kUnknownFlag;
        break;
      case TokenType::kControl:
        flags_[i] = kControlFlag;
        break;
      case TokenType::kUserDefined:
        flags_[i] = kUserDefinedFlag;
        break;
      case TokenType::kByte:
        flags_[i] = kByteFlag;
        break;
      case TokenType::kUndefined:
      case TokenType::kUnused:
      default:  // types of later days, which print nothing
        flags_[i] = 0;
    }
  }
  return Status();
}

Result<std::optional<int32_t>> Vocabulary::CheckedId(const char* key, std::optional<uint64_t> id) const {
  if (!id.has_value() || *id == kNoId) return std::optional<int32_t>();
  if (*id >= texts_.size()) {
    return InvalidArgument("tokenizer.ggml.{} is {}, and the vocabulary has {} tokens: the model file is damaged", key,
                           *id, texts_.size());
  }
  return std::optional<int32_t>(static_cast<int32_t>(*id));
}

std::optional<int32_t> Vocabulary::Find(std::string_view text) const {
  const auto found = ids_.find(text);
  return found == ids_.end() ? std::nullopt : std::optional<int32_t>(found->second);
}

std::optional<int32_t> Vocabulary::MarkFirstOf(std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    if (const std::optional<int32_t> id = Find(name)) {
      flags_[*id] |= kControlFlag;
      return id;
    }
  }
  return std::nullopt;
}

Status Vocabulary::TakeSpecialIds(TokenizerKind kind, const SpecialTokenIds& ids) {
  struct Entry {
    const char* key;
    std::optional<uint64_t> id;
    std::optional<int32_t> checked;
  };
  enum { kBos, kEos, kEot, kEom, kUnknown, kPad, kRepository, kFile };
  std::array<Entry, 8> entries = {{{"bos_token_id", ids.bos},
                                   {"eos_token_id", ids.eos},
                                   {"eot_token_id", ids.eot},
                                   {"eom_token_id", ids.eom},
                                   {"unknown_token_id", ids.unknown},
                                   {"fim_pad_token_id", ids.fim_pad},
                                   {"fim_rep_token_id", ids.fim_rep},
                                   {"fim_sep_token_id", ids.fim_sep}}};
  if (kind == TokenizerKind::kSentencePiece) {  // SentencePiece's own ids
    if (!ids.unknown.has_value()) entries[kUnknown].id = 0;
    if (!ids.bos.has_value() && size() > 1) entries[kBos].id = 1;
    if (!ids.eos.has_value() && size() > 2) entries[kEos].id = 2;
  }
  for (Entry& entry : entries) {
    Result<std::optional<int32_t>> checked = CheckedId(entry.key, entry.id);
    if (!checked.ok()) return checked.status();
    entry.checked = *checked;
  }
  bos_ = entries[kBos].checked;
  eos_ = entries[kEos].checked;
  unknown_ = entries[kUnknown].checked;

  MarkFirstOf(kPrefixNames);
  MarkFirstOf(kSuffixNames);
  MarkFirstOf(kMiddleNames);
  if (!entries[kPad].checked.has_value()) entries[kPad].checked = MarkFirstOf(kPadNames);
  if (!entries[kRepository].checked.has_value()) entries[kRepository].checked = MarkFirstOf(kRepositoryNames);
  if (!entries[kFile].checked.has_value()) entries[kFile].checked = MarkFirstOf(kFileNames);
  for (const auto role : {kEos, kEot, kEom, kPad, kRepository, kFile}) {
    if (entries[role].checked.has_value()) flags_[*entries[role].checked] |= kEndFlag;
  }
  for (const std::string_view name : kEndNames) {
    if (const std::optional<int32_t> id = MarkFirstOf({&name, 1})) flags_[*id] |= kEndFlag;
  }
  return Status();
}

std::string Vocabulary::MakePiece(TokenizerKind kind, int32_t id) const {
  if ((flags_[id] & (kControlFlag | kUnknownFlag | kUserDefinedFlag)) != 0) return texts_[id];
  if ((flags_[id] & kNormalFlag) != 0) {
    return kind == TokenizerKind::kByteLevelBpe ? BytesOfByteAlphabet(texts_[id]) : ReplaceSpaceMarks(texts_[id]);
  }
  const std::optional<char> byte = (flags_[id] & kByteFlag) != 0 ? ByteOfText(texts_[id]) : std::nullopt;
  return byte.has_value() ? std::string(1, *byte) : std::string();
}

void Vocabulary::MakePieces(TokenizerKind kind) {
  piece_begins_.reserve(texts_.size() + 1);
  for (int32_t id = 0; id < size(); ++id) {
    piece_begins_.push_back(pieces_.size());
    pieces_ += MakePiece(kind, id);
  }
  piece_begins_.push_back(pieces_.size());
}

}  // namespace pando
