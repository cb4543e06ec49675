#include "src/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "src/tokenizer/stream_decoder.h"
#include "src/tokenizer/testing/small_vocabularies.h"
#include "src/tokenizer/utf8.h"

namespace pando {
namespace {

using test_support::ByteLevelData;
using test_support::SentencePieceData;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr EncodeOptions kPlain = {.add_special = false, .parse_special = false};
constexpr EncodeOptions kKeepBytes = {.invalid_utf8 = InvalidUtf8::kKeep};

Tokenizer Make(TokenizerData data) { return Tokenizer::Create(std::move(data)).value(); }

// The tokens' texts with | between them.
std::string Pieces(const Tokenizer& tokenizer, const std::string& text, const EncodeOptions& options = {}) {
  std::string pieces;
  for (const int32_t token : tokenizer.Encode(text, options)) {
    if (!pieces.empty()) pieces += "|";
    pieces += tokenizer.vocabulary().Text(token);
  }
  return pieces;
}

std::string ErrorOf(TokenizerData data) {
  const Result<Tokenizer> tokenizer = Tokenizer::Create(std::move(data));
  if (tokenizer.ok()) return "none";
  EXPECT_EQ(tokenizer.status().code(), StatusCode::kInvalidArgument);
  return tokenizer.status().message();
}

const std::vector<std::string> kMerges = {"h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "Ġwor l", "Ġworl d"};

TEST(ByteLevelTest, MergesInTheOrderOfTheList) {
  const Tokenizer tokenizer = Make(ByteLevelData(kMerges));
  EXPECT_EQ(Pieces(tokenizer, "hello world"), "hello|Ġworld");
  EXPECT_EQ(Pieces(tokenizer, "helo wor"), "he|l|o|Ġwor");
  EXPECT_EQ(Pieces(tokenizer, "orld"), "or|l|d");
  EXPECT_EQ(Pieces(Make(ByteLevelData({"b c", "a b"})), "abc"), "a|bc");
}

TEST(ByteLevelTest, WordsAreNotMergedAcross) { EXPECT_EQ(Pieces(Make(ByteLevelData({"a Ġ", "Ġ b"})), "a b"), "a|Ġb"); }

TEST(ByteLevelTest, TheFirstOfEqualMergesCounts) {
  TokenizerData data = ByteLevelData({"a b", "b c"});
  data.merges.emplace_back("a b");
  EXPECT_EQ(Pieces(Make(std::move(data)), "abc"), "ab|c");
}

TEST(ByteLevelTest, MergesMayNameWhatIsNoToken) {
  TokenizerData data = ByteLevelData({"a b"});
  data.merges = {"a b", "x y", "xy z", "ab xyz"};
  EXPECT_EQ(Pieces(Make(std::move(data)), "xyzab xy"), "x|y|z|ab|Ġ|x|y") << "then its bytes are written";
}

TEST(ByteLevelTest, AWholeWordMayGoBeforeMerges) {
  TokenizerData data = ByteLevelData({"a b", "b c"}, "llama-bpe");
  test_support::AddToken(data, "abc", TokenType::kNormal);
  EXPECT_EQ(Pieces(Make(data), "abc abc"), "abc|Ġ|ab|c") << "\" abc\" is a word, and no token";
  data.pre_tokenizer = "smaug-bpe";
  EXPECT_EQ(Pieces(Make(data), "abc"), "ab|c");
}

TEST(ByteLevelTest, SpecialTokens) {
  const Tokenizer tokenizer = Make(ByteLevelData(kMerges));
  EXPECT_EQ(Pieces(tokenizer, "<|begin|>hello<user><|end|>"), "<|begin|>|hello|<user>|<|end|>");
  EXPECT_EQ(Pieces(tokenizer, "<|end|><user>", kPlain), "<|||e|n|d|||>|<user>") << "user-defined tokens always are";
  EXPECT_THAT(tokenizer.Encode(""), IsEmpty());
}

TEST(ByteLevelTest, BeginAndEndAreAddedWhereTheModelWantsThem) {
  TokenizerData data = ByteLevelData({});
  data.add_bos = true;
  data.add_eos = true;
  const Tokenizer tokenizer = Make(std::move(data));
  EXPECT_EQ(Pieces(tokenizer, "a"), "<|begin|>|a|<|end|>");
  EXPECT_EQ(Pieces(tokenizer, ""), "<|begin|>|<|end|>");
  EXPECT_EQ(Pieces(tokenizer, "a", {.add_special = false}), "a");
}

TEST(ByteLevelTest, BytesThatAreNoTextAreReplacedOrKept) {
  const Tokenizer tokenizer = Make(ByteLevelData({}));
  EXPECT_THAT(tokenizer.Encode("a\xFF"), ElementsAre('a', 0xEF, 0xBF, 0xBD));
  EXPECT_THAT(tokenizer.Encode("a\xFF", kKeepBytes), ElementsAre('a', 0xFF));
  EXPECT_THAT(tokenizer.Encode("\xC0\x80"), ElementsAre(0)) << "as llama.cpp: the character that was meant";
  EXPECT_THAT(tokenizer.Encode("\xF5\x80\x80\x80"), ::testing::SizeIs(12));
}

TEST(ByteLevelTest, AByteWithoutATokenIsLeftOut) {
  TokenizerData data = ByteLevelData({"a b"});
  data.tokens['z'] = "somethingelse";
  EXPECT_EQ(Pieces(Make(std::move(data)), "azab"), "a|ab");
}

RC_GTEST_PROP(ByteLevelTest, AnyBytesComeBack, (const std::string& bytes)) {
  for (const char* pre_tokenizer : {"smollm", "llama-bpe", "qwen2", "default"}) {
    const Tokenizer tokenizer = Make(ByteLevelData(kMerges, pre_tokenizer));
    const std::vector<int32_t> tokens = tokenizer.Encode(bytes, kKeepBytes);
    RC_ASSERT(tokenizer.Decode(tokens, /*special=*/true) == bytes);
    const std::string replaced = tokenizer.Decode(tokenizer.Encode(bytes), /*special=*/true);
    RC_ASSERT(replaced == ReencodeLenient(bytes));
  }
}

const std::vector<std::pair<std::string, float>> kPieces = {
    {"▁", -9},   {"h", -9},   {"e", -9},  {"l", -9},      {"o", -9},     {"w", -9},      {"▁h", -1}, {"el", -2},
    {"▁he", -5}, {"llo", -6}, {"ll", -3}, {"▁hello", -4}, {"hello", -8}, {"ello", -3.5}, {"ow", -2}, {"▁▁", -7}};

TEST(SentencePieceTest, TheBestScoreGoesFirst) {
  const Tokenizer tokenizer = Make(SentencePieceData(kPieces));
  EXPECT_EQ(Pieces(tokenizer, "hello"), "<s>|▁h|el|l|o");
  EXPECT_EQ(Pieces(tokenizer, "hell"), "<s>|▁h|el|l");
  EXPECT_EQ(Pieces(tokenizer, "low"), "<s>|▁|l|ow");
  EXPECT_EQ(Pieces(tokenizer, "  w"), "<s>|▁▁|▁|w");
}

TEST(SentencePieceTest, WhatIsNoTokenIsWrittenInBytes) {
  const Tokenizer tokenizer = Make(SentencePieceData(kPieces));
  EXPECT_EQ(Pieces(tokenizer, "hé"), "<s>|▁h|<0xC3>|<0xA9>");
  EXPECT_EQ(Pieces(tokenizer, "\xFFh"), "<s>|▁|<0xFF>|<0x68>") << "a first byte takes its promised length with it";
  EXPECT_EQ(Pieces(tokenizer, "\xFFh", kKeepBytes), "<s>|▁|<0xFF>|h");
}

TEST(SentencePieceTest, EveryTextAfterASpecialTokenBeginsWithASpace) {
  const Tokenizer tokenizer = Make(SentencePieceData(kPieces));
  EXPECT_EQ(Pieces(tokenizer, "h</s>h<user>h"), "<s>|▁h|</s>|▁h|<user>|▁h");
  EXPECT_EQ(tokenizer.Decode(tokenizer.Encode("h</s>h<user>h", {.add_special = false}), true), "h</s>h<user>h");
  TokenizerData data = SentencePieceData(kPieces);
  data.add_space_prefix = false;
  EXPECT_EQ(Pieces(Make(std::move(data)), "h</s>h"), "<s>|h|</s>|h");
}

TEST(SentencePieceTest, AMissingByteIsUnknown) {
  TokenizerData data = SentencePieceData(kPieces);
  data.tokens[3 + 0xC3] = "gone";
  EXPECT_EQ(Pieces(Make(data), "é"), "<s>|▁|<unk>|<0xA9>");
  data.special_ids.unknown = 0xFFFFFFFF;
  EXPECT_EQ(Pieces(Make(data), "é"), "<s>|▁|<0xA9>");
}

// Cutting a text into words that are encoded one by one may change nothing.
RC_GTEST_PROP(SentencePieceTest, NoMergeReachesAcrossWords, ()) {
  const std::string text = *rc::gen::container<std::string>(rc::gen::element(' ', 'h', 'e', 'l', 'o', 'w'));
  // With this token any two characters are neighbours in some token, so that nothing is cut.
  std::vector<std::pair<std::string, float>> pieces = kPieces;
  std::string all;
  for (const char* a : {"▁", "h", "e", "l", "o", "w"}) {
    for (const char* b : {"▁", "h", "e", "l", "o", "w"}) all += std::string(a) + b + "#";
  }
  const Tokenizer cutting = Make(SentencePieceData(pieces));
  pieces.emplace_back(all, -100);
  RC_ASSERT(Make(SentencePieceData(pieces)).Encode(text) == cutting.Encode(text));
}

RC_GTEST_PROP(SentencePieceTest, AnyBytesComeBack, (const std::string& bytes)) {
  const Tokenizer tokenizer = Make(SentencePieceData(kPieces));
  const std::vector<int32_t> tokens =
      tokenizer.Encode(bytes, {.add_special = false, .invalid_utf8 = InvalidUtf8::kKeep});
  RC_ASSERT(tokenizer.Decode(tokens, /*special=*/true) == bytes);
}

TEST(TokenizerTest, PiecesAreOneText) {
  const Tokenizer tokenizer = Make(ByteLevelData(kMerges));
  const auto encode = [&](const std::vector<TextPiece>& pieces) { return tokenizer.EncodePieces(pieces); };
  EXPECT_EQ(encode({{"hel", true}, {"lo", false}}), tokenizer.Encode("hello")) << "tokens reach across the border";
  EXPECT_EQ(tokenizer.Decode(encode({{"<|end|>", true}, {"<|end|>", false}})), "<|end|>") << "one is text";
  EXPECT_EQ(tokenizer.Decode(encode({{"<|en", false}, {"d|>", true}})), "<|end|>");
  EXPECT_EQ(tokenizer.Decode(encode({{"<|en", true}, {"d|>", true}})), "") << "neighbours are one piece";
  EXPECT_THAT(encode({}), IsEmpty());
}

TEST(TokenizerTest, PiecesThatBeginWithBosGetNoSecondOne) {
  TokenizerData data = ByteLevelData({});
  data.add_bos = true;
  const Tokenizer tokenizer = Make(std::move(data));
  EXPECT_EQ(tokenizer.EncodePieces(std::vector<TextPiece>{{"<|begin|>a", true}}), tokenizer.Encode("a"));
  EXPECT_EQ(tokenizer.EncodePieces(std::vector<TextPiece>{{"a", true}}), tokenizer.Encode("a"));
}

TEST(TokenizerTest, DecodingHidesOrShowsControlTokens) {
  const Tokenizer tokenizer = Make(ByteLevelData(kMerges));
  const std::vector<int32_t> tokens = tokenizer.Encode("<|begin|>hello<user><|end|>");
  EXPECT_EQ(tokenizer.Decode(tokens), "hello<user>");
  EXPECT_EQ(tokenizer.Decode(tokens, /*special=*/true), "<|begin|>hello<user><|end|>");
  EXPECT_EQ(tokenizer.Decode(std::vector<int32_t>{-1, 'a', 1 << 30}), "a") << "what is no token is nothing";
}

TEST(TokenizerTest, EndsOfGeneration) {
  TokenizerData data = ByteLevelData({});
  for (const char* text : {"<|im_end|>", "</s>", "<other>"}) test_support::AddToken(data, text, TokenType::kNormal);
  const Tokenizer tokenizer = Make(std::move(data));
  const auto is_end = [&](const char* text) { return tokenizer.IsEndOfGeneration(*tokenizer.vocabulary().Find(text)); };
  EXPECT_TRUE(is_end("<|end|>")) << "by id and by name";
  EXPECT_TRUE(is_end("<|im_end|>")) << "by name";
  EXPECT_TRUE(is_end("</s>"));
  EXPECT_FALSE(is_end("<other>"));
  EXPECT_FALSE(is_end("a"));
  EXPECT_FALSE(tokenizer.IsEndOfGeneration(-1));
  EXPECT_TRUE(tokenizer.vocabulary().IsSpecial(*tokenizer.vocabulary().Find("<|im_end|>"))) << "whatever its type";
}

TEST(TokenizerTest, RefusesDataThatDoesNotFitTogether) {
  EXPECT_THAT(ErrorOf({.model = "bert", .tokens = {"a"}}), HasSubstr("\"bert\": the known ones are gpt2 and llama"));
  EXPECT_THAT(ErrorOf({.model = "gpt2"}), HasSubstr("no tokens"));
  EXPECT_THAT(ErrorOf({.model = "gpt2", .pre_tokenizer = "x", .tokens = {"a"}}), HasSubstr("\"x\""));
  EXPECT_THAT(ErrorOf({.model = "gpt2", .tokens = {"a", "b", "a"}}), HasSubstr("tokens 0 and 2"));
  EXPECT_THAT(ErrorOf({.model = "gpt2", .tokens = {"a", "b"}, .token_types = {1}}), HasSubstr("2 tokens and 1 types"));
  EXPECT_THAT(ErrorOf({.model = "gpt2", .tokens = {"a"}, .merges = {"aa"}}), HasSubstr("merge 0"));
  EXPECT_THAT(ErrorOf({.model = "gpt2", .tokens = {"a"}, .merges = {"a a", "b "}}), HasSubstr("merge 1"));
  EXPECT_THAT(ErrorOf({.model = "gpt2", .tokens = {"a"}, .merges = {""}}), HasSubstr("merge 0"));
  EXPECT_THAT(ErrorOf({.model = "gpt2", .tokens = {"a"}, .special_ids = {.eos = 1}}), HasSubstr("eos_token_id is 1"));
  EXPECT_THAT(ErrorOf({.model = "gpt2", .tokens = {"a"}, .special_ids = {.bos = uint64_t{1} << 40}}),
              HasSubstr("bos_token_id"));
  EXPECT_THAT(ErrorOf({.model = "gpt2", .tokens = {"a"}, .add_bos = true}), HasSubstr("tokenizer.ggml.bos_token_id"));
  EXPECT_THAT(ErrorOf({.model = "gpt2", .tokens = {"a"}, .add_eos = true}), HasSubstr("tokenizer.ggml.eos_token_id"));
  EXPECT_THAT(ErrorOf({.model = "llama", .tokens = {"a", "b"}, .scores = {1}}), HasSubstr("2 tokens and 1 scores"));
  EXPECT_THAT(ErrorOf({.model = "llama", .tokens = {"a", "b"}, .scores = {1, NAN}}), HasSubstr("token 1"));
}

TEST(TokenizerTest, TakesOddVocabularies) {
  const Tokenizer empties =
      Make({.model = "gpt2", .tokens = {"", "", "a"}, .token_types = {1, 3, 1}, .merges = {"a a"}});
  EXPECT_THAT(empties.Encode("aab"), ElementsAre(2, 2));
  EXPECT_EQ(empties.Decode(std::vector<int32_t>{0, 1, 2}, true), "a");
  const Tokenizer one = Make({.model = "llama", .tokens = {"x"}, .scores = {0}, .add_bos = false});
  EXPECT_THAT(one.Encode("xy"), ::testing::SizeIs(5)) << "all is unknown, in bytes";
  const Tokenizer types = Make({.model = "gpt2", .tokens = {"a", "b"}, .token_types = {-7, 1 << 30}});
  EXPECT_EQ(types.Decode(types.Encode("ab")), "");
}

TEST(StreamDecoderTest, HoldsBackWhatIsNoWholeCharacter) {
  const Tokenizer tokenizer = Make(ByteLevelData({}));
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.Push(0xF0), "");
  EXPECT_EQ(decoder.Push(0x9F), "");
  EXPECT_EQ(decoder.Push(0x98), "");
  EXPECT_EQ(decoder.Push(0x80), "😀");
  EXPECT_EQ(decoder.Push(0xE2), "");
  EXPECT_EQ(decoder.Push('a'), "\uFFFDa") << "it can be no character any more";
  EXPECT_EQ(decoder.Push(0xFF), "\uFFFD");
  EXPECT_EQ(decoder.Push(0xF0), "");
  EXPECT_EQ(decoder.Push(0x9F), "");
  EXPECT_EQ(decoder.Finish(), "\uFFFD") << "one beginning of a character";
  EXPECT_EQ(decoder.Finish(), "");
}

TEST(StreamDecoderTest, AContinuationKeepsItsSpace) {
  const Tokenizer tokenizer = Make(SentencePieceData(kPieces));
  const int32_t token = *tokenizer.vocabulary().Find("▁h");
  EXPECT_EQ(StreamDecoder(tokenizer).Push(token), "h");
  EXPECT_EQ(StreamDecoder(tokenizer, {.is_continuation = true}).Push(token), " h");
}

RC_GTEST_PROP(StreamDecoderTest, OfATextEveryPartIsWhole, (const std::vector<uint32_t>& random)) {
  const Tokenizer tokenizer = Make(ByteLevelData(kMerges));
  std::string text;
  for (const uint32_t number : random) AppendUtf8(number % 0xD800, text);
  std::string all;
  StreamDecoder decoder(tokenizer);
  for (const int32_t token : tokenizer.Encode(text)) {
    const std::string part = decoder.Push(token);
    RC_ASSERT(ReplaceInvalidUtf8(part) == part);
    all += part;
  }
  RC_ASSERT(all == text);
}

RC_GTEST_PROP(StreamDecoderTest, AllThatComesOutIsTheTextInWholeCharacters,
              (const std::vector<uint16_t>& random, bool special)) {
  for (const TokenizerData& data : {ByteLevelData(kMerges), SentencePieceData(kPieces)}) {
    const Tokenizer tokenizer = Make(data);
    std::vector<int32_t> tokens;
    std::string all;
    StreamDecoder decoder(tokenizer, {.special = special});
    for (const uint16_t number : random) {
      tokens.push_back(number % tokenizer.vocabulary_size());
      const std::string part = decoder.Push(tokens.back());
      RC_ASSERT(ReplaceInvalidUtf8(part) == part);
      all += part;
    }
    all += decoder.Finish();
    RC_ASSERT(all == ReplaceInvalidUtf8(tokenizer.Decode(tokens, special)));
  }
}

}  // namespace
}  // namespace pando
