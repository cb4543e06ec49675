#include "src/engine/load_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "src/gguf/testing/gguf_writer.h"

namespace pando {
namespace {

using test_support::GgufWriter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> kTokens = {"a", "b", "ab", "<|end|>"};

GgufWriter ByteLevelFile() {
  GgufWriter writer;
  writer.Add("tokenizer.ggml.model", std::string("gpt2"));
  writer.Add("tokenizer.ggml.pre", std::string("smollm"));
  writer.Add("tokenizer.ggml.tokens", kTokens);
  writer.Add("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1, 1, 3});
  writer.Add("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  writer.Add("tokenizer.ggml.eos_token_id", uint32_t{3});
  writer.Add("tokenizer.chat_template", std::string("jinja"));
  return writer;
}

Result<Tokenizer> Load(GgufWriter& writer) {
  const std::vector<std::byte> bytes = writer.Bytes();
  return LoadTokenizer(GgufFile::FromBytes(bytes, "the-file").value());
}

std::string ErrorOf(GgufWriter& writer) {
  const Result<Tokenizer> tokenizer = Load(writer);
  EXPECT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(tokenizer.status().message(), HasSubstr("the-file"));
  return tokenizer.status().message();
}

TEST(LoadTokenizerTest, AVocabularyWithoutTensorsWillDo) {
  GgufWriter writer = ByteLevelFile();
  const Tokenizer tokenizer = Load(writer).value();
  EXPECT_THAT(tokenizer.Encode("abb<|end|>"), ElementsAre(2, 1, 3));
  EXPECT_TRUE(tokenizer.IsEndOfGeneration(3));
  EXPECT_FALSE(tokenizer.adds_bos());
  EXPECT_EQ(tokenizer.chat_template(), "jinja");
}

TEST(LoadTokenizerTest, ScoresMayBeWholeNumbers) {
  GgufWriter writer;
  writer.Add("tokenizer.ggml.model", std::string("llama"));
  writer.Add("tokenizer.ggml.tokens", kTokens);
  writer.Add("tokenizer.ggml.scores", std::vector<int32_t>{-3, -2, -1, 0});
  writer.Add("tokenizer.ggml.add_bos_token", false);
  writer.Add("tokenizer.ggml.add_space_prefix", false);
  EXPECT_THAT(Load(writer).value().Encode("abb"), ElementsAre(2, 1));
}

TEST(LoadTokenizerTest, SaysWhatIsMissing) {
  GgufWriter none;
  EXPECT_THAT(ErrorOf(none), HasSubstr("has no vocabulary"));
  GgufWriter no_merges;
  no_merges.Add("tokenizer.ggml.model", std::string("gpt2"));
  no_merges.Add("tokenizer.ggml.tokens", kTokens);
  EXPECT_THAT(ErrorOf(no_merges), HasSubstr("no merges"));
  GgufWriter no_scores;
  no_scores.Add("tokenizer.ggml.model", std::string("llama"));
  no_scores.Add("tokenizer.ggml.tokens", kTokens);
  EXPECT_THAT(ErrorOf(no_scores), HasSubstr("4 tokens and 0 scores"));
}

TEST(LoadTokenizerTest, SaysWhatIsOfAnotherType) {
  GgufWriter writer = ByteLevelFile();
  writer.Add("tokenizer.ggml.add_bos_token", std::string("yes"));
  EXPECT_THAT(ErrorOf(writer), HasSubstr("tokenizer.ggml.add_bos_token"));
  GgufWriter tokens;
  tokens.Add("tokenizer.ggml.model", std::string("gpt2"));
  tokens.Add("tokenizer.ggml.tokens", std::vector<int32_t>{1, 2});
  EXPECT_THAT(ErrorOf(tokens), HasSubstr("tokenizer.ggml.tokens"));
}

TEST(LoadTokenizerTest, SaysWhatIsDamaged) {
  GgufWriter writer = ByteLevelFile();
  writer.Add("tokenizer.ggml.bos_token_id", uint32_t{77});
  EXPECT_THAT(ErrorOf(writer), HasSubstr("bos_token_id is 77"));
}

}  // namespace
}  // namespace pando
