#include "src/tokenizer/bpe_encoder.h"

#include <limits>
#include <optional>

#include "src/base/errors.h"
#include "src/base/printable.h"
#include "src/tokenizer/byte_alphabet.h"

namespace pando {
namespace {

// Words of a text, with their tokens. Most words of a long text were there before.
class WordCache {
 public:
  // The tokens of `word` as they were stored, or nullptr.
  const std::vector<int32_t>* Find(std::string_view word) const {
    const auto found = words_.find(word);
    return found == words_.end() ? nullptr : &found->second;
  }

  // `word` outlives the cache.
  void Store(std::string_view word, const std::vector<int32_t>& tokens, size_t first_token) {
    if (word.size() > kMaxWordBytes || words_.size() >= kMaxWords) return;
    words_.emplace(word, std::vector<int32_t>(tokens.begin() + static_cast<ptrdiff_t>(first_token), tokens.end()));
  }

 private:
  static constexpr size_t kMaxWordBytes = 64;
  static constexpr size_t kMaxWords = 1 << 16;

  std::unordered_map<std::string_view, std::vector<int32_t>> words_;
};

}  // namespace

Result<BpeEncoder> BpeEncoder::Create(const Vocabulary& vocabulary, const std::vector<std::string>& merges,
                                      PreTokenizer pre_tokenizer) {
  if (merges.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max() / 4)) {
    return InvalidArgument("the model file has {} merges (tokenizer.ggml.merges): the limit is {}", merges.size(),
                           std::numeric_limits<int32_t>::max() / 4);
  }
  BpeEncoder encoder(vocabulary, std::move(pre_tokenizer), merges.size());
  for (int byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<unsigned char>(byte);
    encoder.byte_symbols_[value] = encoder.SymbolOf(CharacterOfByte(value));
  }
  for (size_t i = 0; i < merges.size(); ++i) {
    if (Status status = encoder.AddMerge(merges[i], static_cast<uint32_t>(i)); !status.ok()) return status;
  }
  return encoder;
}

int32_t BpeEncoder::SymbolOf(std::string_view text) {
  if (const std::optional<int32_t> token = vocabulary_->Find(text)) return *token;
  const auto next = static_cast<int32_t>(vocabulary_->size() + other_symbols_.size());
  return other_symbols_.emplace(text, next).first->second;
}

Status BpeEncoder::AddMerge(std::string_view merge, uint32_t rank) {
  const size_t space = merge.find(' ', 1);  // the left one may begin with a space where a file is written carelessly
  if (space == std::string_view::npos || space + 1 == merge.size()) {
    return InvalidArgument(
        "merge {} of the model file (tokenizer.ggml.merges) is \"{}\": it must be two texts with a space "
        "between them",
        rank, Printable(merge, /*max_bytes=*/60));
  }
  const std::string_view left = merge.substr(0, space);
  const std::string_view right = merge.substr(space + 1);
  std::string both(left);
  both += right;
  merges_.Insert(SymbolOf(left), SymbolOf(right), {rank, SymbolOf(both)});
  return Status();
}

void BpeEncoder::Encode(std::string_view text, std::vector<int32_t>& tokens) const {
  const std::vector<std::string_view> words = pre_tokenizer_.Split(text);
  WordCache cache;
  SymbolMerger merger;
  for (const std::string_view word : words) {
    if (const std::vector<int32_t>* known = cache.Find(word)) {
      tokens.insert(tokens.end(), known->begin(), known->end());
      continue;
    }
    const size_t first_token = tokens.size();
    EncodeWord(word, merger, tokens);
    cache.Store(word, tokens, first_token);
  }
}

void BpeEncoder::EncodeWord(std::string_view word, SymbolMerger& merger, std::vector<int32_t>& tokens) const {
  if (pre_tokenizer_.whole_words_first()) {
    std::string text;
    WriteInByteAlphabet(word, text);
    if (const std::optional<int32_t> token = vocabulary_->Find(text)) return tokens.push_back(*token);
  }
  merger.Clear();
  for (const char byte : word) merger.Add(1, byte_symbols_[static_cast<unsigned char>(byte)]);
  merger.Run([this](const Symbol& left, const Symbol& right, uint32_t) -> std::optional<SymbolMerge> {
    const SymbolMerge* merge = merges_.Find(left.id, right.id);
    return merge == nullptr ? std::nullopt : std::optional<SymbolMerge>(*merge);
  });
  merger.ForEach([&](const Symbol& symbol, uint32_t begin) {
    if (vocabulary_->Contains(symbol.id)) return tokens.push_back(symbol.id);
    AppendBytes(word.substr(begin, symbol.num_bytes), tokens);
  });
}

void BpeEncoder::AppendBytes(std::string_view bytes, std::vector<int32_t>& tokens) const {
  for (const char byte : bytes) {
    const int32_t symbol = byte_symbols_[static_cast<unsigned char>(byte)];
    if (vocabulary_->Contains(symbol)) tokens.push_back(symbol);
  }
}

}  // namespace pando
