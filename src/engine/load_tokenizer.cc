#include "src/engine/load_tokenizer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/errors.h"
#include "src/base/printable.h"

namespace pando {
namespace {

// Reads keys into plain data; the first that is of another type than expected ends it.
class MetadataReader {
 public:
  explicit MetadataReader(const GgufFile& file) : file_(file) {}

  const Status& status() const { return status_; }

  void Read(std::string_view key, std::string& value) {
    if (!IsThere(key)) return;
    if (const auto read = Take(file_.GetString(key))) value = *read;
  }
  void Read(std::string_view key, std::optional<bool>& value) {
    if (IsThere(key)) value = Take(file_.GetBool(key));
  }
  void Read(std::string_view key, std::optional<uint64_t>& value) {
    if (IsThere(key)) value = Take(file_.GetUint(key));
  }
  void Read(std::string_view key, std::vector<std::string>& values) {
    if (!IsThere(key)) return;
    if (const auto read = Take(file_.GetStrings(key))) values.assign(read->begin(), read->end());
  }
  void Read(std::string_view key, std::vector<int32_t>& values) {
    if (!IsThere(key)) return;
    const auto read = Take(file_.GetInts(key));
    if (!read.has_value()) return;
    values.reserve(read->size());
    for (const int64_t value : *read) {
      // What does not fit is no type of a token either.
      values.push_back(value == static_cast<int32_t>(value) ? static_cast<int32_t>(value) : 0);
    }
  }
  void ReadScores(std::string_view key, std::vector<float>& values) {
    if (!IsThere(key)) return;
    if (const auto whole = file_.Find(key)->AsInts()) {  // some files have whole numbers
      values.assign(whole->begin(), whole->end());
    } else if (auto read = Take(file_.GetFloats(key))) {
      values = std::move(*read);
    }
  }

 private:
  bool IsThere(std::string_view key) const { return status_.ok() && file_.Find(key) != nullptr; }

  template <typename T>
  std::optional<T> Take(Result<T> result) {
    if (result.ok()) return std::move(result).value();
    status_ = result.status();
    return std::nullopt;
  }

  const GgufFile& file_;
  Status status_;
};

}  // namespace

Result<TokenizerData> ReadTokenizerData(const GgufFile& file) {
  TokenizerData data;
  MetadataReader reader(file);
  reader.Read("tokenizer.ggml.model", data.model);
  reader.Read("tokenizer.ggml.pre", data.pre_tokenizer);
  reader.Read("tokenizer.ggml.tokens", data.tokens);
  reader.Read("tokenizer.ggml.token_type", data.token_types);
  reader.ReadScores("tokenizer.ggml.scores", data.scores);
  reader.Read("tokenizer.ggml.merges", data.merges);
  reader.Read("tokenizer.ggml.bos_token_id", data.special_ids.bos);
  reader.Read("tokenizer.ggml.eos_token_id", data.special_ids.eos);
  reader.Read("tokenizer.ggml.eot_token_id", data.special_ids.eot);
  reader.Read("tokenizer.ggml.eom_token_id", data.special_ids.eom);
  reader.Read("tokenizer.ggml.unknown_token_id", data.special_ids.unknown);
  reader.Read("tokenizer.ggml.fim_pad_token_id", data.special_ids.fim_pad);
  reader.Read("tokenizer.ggml.fim_rep_token_id", data.special_ids.fim_rep);
  reader.Read("tokenizer.ggml.fim_sep_token_id", data.special_ids.fim_sep);
  reader.Read("tokenizer.ggml.add_bos_token", data.add_bos);
  reader.Read("tokenizer.ggml.add_eos_token", data.add_eos);
  reader.Read("tokenizer.ggml.add_space_prefix", data.add_space_prefix);
  reader.Read("tokenizer.chat_template", data.chat_template);
  if (!reader.status().ok()) return reader.status();
  return data;
}

Result<Tokenizer> LoadTokenizer(const GgufFile& file) {
  const std::string path = Printable(file.path());
  if (file.Find("tokenizer.ggml.model") == nullptr || file.Find("tokenizer.ggml.tokens") == nullptr) {
    return InvalidArgument("{} has no vocabulary (tokenizer.ggml.model and .tokens): use a file that has one", path);
  }
  Result<TokenizerData> data = ReadTokenizerData(file);
  if (!data.ok()) return data.status();
  if (data->model == "gpt2" && file.Find("tokenizer.ggml.merges") == nullptr) {
    return InvalidArgument("{} has a vocabulary and no merges (tokenizer.ggml.merges): convert the model anew", path);
  }
  Result<Tokenizer> tokenizer = Tokenizer::Create(std::move(*data));
  if (tokenizer.ok()) return tokenizer;
  return Status(tokenizer.status().code(), fmt::format("{}: {}", path, tokenizer.status().message()));
}

}  // namespace pando
