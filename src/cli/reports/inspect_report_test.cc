#include "src/cli/reports/inspect_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/gguf/testing/gguf_writer.h"

namespace pando::cli {
namespace {

using test_support::GgufWriter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const std::vector<std::byte> kZeros(4096);

void AddShape(GgufWriter& writer) {
  writer.Add("general.architecture", "llama");
  writer.Add("general.name", "Aspen");
  writer.Add("llama.block_count", uint32_t{2});
  writer.Add("llama.embedding_length", uint32_t{256});
  writer.Add("llama.feed_forward_length", uint32_t{512});
  writer.Add("llama.attention.head_count", uint32_t{4});
  writer.Add("llama.attention.head_count_kv", uint32_t{2});
  writer.Add("llama.context_length", uint32_t{4096});
  writer.Add("llama.rope.freq_base", 10000.0F);
}

void AddTokenizer(GgufWriter& writer) {
  writer.Add("tokenizer.ggml.model", "gpt2");
  writer.Add("tokenizer.ggml.pre", "smollm");
  writer.Add("tokenizer.ggml.tokens", std::vector<std::string>{"<s>", "a", "\x1b[2J"});
  writer.Add("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  writer.Add("tokenizer.ggml.bos_token_id", uint32_t{0});
  writer.Add("tokenizer.ggml.eos_token_id", uint32_t{2});
  writer.Add("tokenizer.ggml.padding_token_id", uint32_t{77});
  writer.Add("tokenizer.chat_template", "{{ messages }}");
}

void AddTensors(GgufWriter& writer) {
  writer.AddTensor("token_embd.weight", GgufTensorType::kQ8_0, {256, 3}, std::span(kZeros).first(34 * 8 * 3));
  writer.AddTensor("blk.0.attn_norm.weight", GgufTensorType::kF32, {256}, std::span(kZeros).first(1024));
  writer.AddTensor("odd", GgufTensorType::kIQ4_NL, {32}, std::span(kZeros).first(18));
}

InspectReport ReportOf(const GgufWriter& writer, const InspectOptions& options = {}) {
  const std::vector<std::byte> bytes = writer.Bytes();
  const Result<GgufFile> file = GgufFile::FromBytes(bytes, "m.gguf");
  EXPECT_TRUE(file.ok()) << file.status().message();
  const Result<InspectReport> report = GatherInspect(*file, options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return *report;
}

InspectReport WholeReport(const InspectOptions& options = {}) {
  GgufWriter writer;
  AddShape(writer);
  AddTokenizer(writer);
  AddTensors(writer);
  return ReportOf(writer, options);
}

TEST(InspectReportTest, GathersTheShape) {
  const InspectedShape shape = WholeReport().shape;
  EXPECT_EQ(shape.num_layers, 2U);
  EXPECT_EQ(shape.embedding, 256U);
  EXPECT_EQ(shape.feed_forward, 512U);
  EXPECT_EQ(shape.num_heads, 4U);
  EXPECT_EQ(shape.num_kv_heads, 2U);
  EXPECT_EQ(shape.head_dim, 64U);
  EXPECT_EQ(shape.training_context, 4096U);
  EXPECT_EQ(shape.rope_base, 10000.0);
  ASSERT_TRUE(shape.kv.has_value());
  EXPECT_EQ(shape.kv->num_kv_heads, 4U);
}

TEST(InspectReportTest, GathersWeightsByType) {
  const InspectReport report = WholeReport();
  EXPECT_EQ(report.num_parameters, 768U + 256 + 32);
  EXPECT_EQ(report.weight_bytes, 816U + 1024 + 18);
  ASSERT_THAT(report.weights, SizeIs(3));
  EXPECT_EQ(report.weights[0].type, "F32");
  EXPECT_EQ(report.weights[1].type, "Q8_0");
  EXPECT_EQ(report.weights[1].num_bytes, 816U);
  EXPECT_TRUE(report.weights[1].can_be_run);
  EXPECT_EQ(report.weights[2].type, "IQ4_NL");
  EXPECT_FALSE(report.weights[2].can_be_run);
}

TEST(InspectReportTest, GathersTheTokenizer) {
  const InspectReport report = WholeReport();
  ASSERT_TRUE(report.tokenizer.has_value());
  EXPECT_EQ(report.tokenizer->num_tokens, 3U);
  EXPECT_EQ(report.tokenizer->num_merges, 1U);
  ASSERT_THAT(report.tokenizer->special_tokens, SizeIs(3));
  EXPECT_EQ(report.tokenizer->special_tokens[0].text, "<s>");
  EXPECT_EQ(report.tokenizer->special_tokens[2].text, "");  // there is no token 77
}

TEST(InspectReportTest, SaysWhatAContextTakes) {
  const InspectReport training = WholeReport();
  EXPECT_EQ(training.context, 4096);
  ASSERT_THAT(training.memory, SizeIs(4));
  EXPECT_EQ(training.memory[0].largest_rank_bytes, 4096U * 2 * 2 * 64 * 2 * 2);
  EXPECT_EQ(training.memory[3].num_ranks, 8);
  EXPECT_EQ(training.memory[3].largest_rank_bytes * 8, training.memory[0].largest_rank_bytes);
  const InspectReport chosen =
      WholeReport({.context = 64, .num_ranks = {3}, .kv_types = {KvType::kF32, KvType::kF16, KvType::kQ8_0}});
  ASSERT_THAT(chosen.memory, SizeIs(3));
  EXPECT_EQ(chosen.memory[0].largest_rank_bytes, 64U * 2 * 2 * 64 * 2 * 4);
}

TEST(InspectReportTest, RefusesMoreRanksThanSlots) {
  GgufWriter writer;
  AddShape(writer);
  const std::vector<std::byte> bytes = writer.Bytes();
  const Result<GgufFile> file = GgufFile::FromBytes(bytes, "m.gguf");
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(GatherInspect(*file, {.num_ranks = {65}}).status().message(), HasSubstr("65"));
}

TEST(InspectReportTest, LayersMayDiffer) {
  GgufWriter writer;
  writer.Add("general.architecture", "x");
  writer.Add("x.block_count", uint32_t{3});
  writer.Add("x.embedding_length", uint32_t{512});
  writer.Add("x.attention.head_count", std::vector<int32_t>{8, 4, 8});
  writer.Add("x.attention.head_count_kv", std::vector<int32_t>{2, 1, 4});
  const InspectedShape shape = ReportOf(writer).shape;
  EXPECT_EQ(shape.num_heads, 8U);
  EXPECT_EQ(shape.num_kv_heads, 4U);
  ASSERT_TRUE(shape.kv.has_value());
  EXPECT_EQ(shape.kv->num_kv_heads, 7U);
}

TEST(InspectReportTest, LeavesOutWhatMakesNoSense) {
  GgufWriter writer;
  writer.Add("general.architecture", "x");
  writer.Add("general.name", uint32_t{7});
  writer.Add("x.block_count", ~uint64_t{0});
  writer.Add("x.attention.head_count", ~uint64_t{0});
  writer.Add("x.embedding_length", "wide");
  writer.Add("x.context_length", ~uint64_t{0});
  writer.Add("tokenizer.ggml.model", "gpt2");
  writer.Add("tokenizer.ggml.tokens", uint32_t{3});
  const InspectReport report = ReportOf(writer);
  EXPECT_EQ(report.name, "");
  EXPECT_FALSE(report.shape.num_heads.has_value());
  EXPECT_FALSE(report.shape.kv.has_value());
  EXPECT_FALSE(report.context.has_value());
  EXPECT_EQ(report.tokenizer->num_tokens, 0U);
  EXPECT_THAT(RenderInspectText(report), HasSubstr("architecture x"));
}

TEST(InspectReportTest, SaysWhyTheCacheDoesNotTakeIt) {
  GgufWriter writer;
  AddShape(writer);
  writer.Add("llama.attention.key_length", uint32_t{36});
  EXPECT_THAT(RenderInspectText(ReportOf(writer)), HasSubstr("Memory of a context: head dim is 36"));
}

TEST(InspectReportTest, AVocabularyIsEnough) {
  GgufWriter writer;
  AddTokenizer(writer);
  const InspectReport report = ReportOf(writer);
  EXPECT_THAT(report.memory, IsEmpty());
  EXPECT_THAT(RenderInspectText(report), HasSubstr("none: the file has no tensors"));
  const auto json = nlohmann::json::parse(RenderInspectJson(report));
  EXPECT_TRUE(json["shape"]["layers"].is_null());
  EXPECT_EQ(json["tokenizer"]["pre"], "smollm");
}

TEST(InspectReportTest, TextHasTheFacts) {
  EXPECT_EQ(
      RenderInspectText(WholeReport({.num_ranks = {1, 8}})),
      "file            m.gguf, 2.8 KiB, GGUF version 3\n"
      "model           Aspen, architecture llama\n"
      "parameters      0.0 million in 3 tensors, 1.8 KiB, 14.08 bits each\n"
      "shape           2 layers, 256 wide, 4 heads, 2 KV heads, head dim 64, feed-forward 512\n"
      "positions       4096 in training, RoPE base 10000\n"
      "output matrix   the embedding's\n"
      "tokenizer       gpt2 (smollm), 3 tokens, 1 merges\n"
      "special tokens  bos 0 <s>, eos 2 \\x1b[2J, pad 77 (no such token)\n"
      "chat template   14 characters, not a known one\n"
      "\n"
      "| type   | tensors | values |  mib | can be run |\n"
      "|:-------|--------:|-------:|-----:|:-----------|\n"
      "| F32    |       1 |    256 | 0.00 | yes        |\n"
      "| Q8_0   |       1 |    768 | 0.00 | yes        |\n"
      "| IQ4_NL |       1 |     32 | 0.00 | no         |\n"
      "\n"
      "Keys and values of 4096 tokens, of the rank that has most and of all; weights (1.8 KiB) are mapped once per "
      "machine:\n"
      "\n"
      "| ranks | kv_type | mib_per_rank | mib_of_all |\n"
      "|------:|:--------|-------------:|-----------:|\n"
      "|     1 | f16     |         4.00 |       4.00 |\n"
      "|     8 | f16     |         0.50 |       4.00 |\n");
}

TEST(InspectReportTest, ListsTensorsAndMetadata) {
  const std::string text = RenderInspectText(WholeReport({.with_tensors = true, .with_metadata = true}));
  EXPECT_THAT(text, HasSubstr("| token_embd.weight      | Q8_0   | 256 x 3 |   816 |\n"));
  EXPECT_THAT(text, HasSubstr("llama.block_count (uint32): 2\n"));
  EXPECT_THAT(text, HasSubstr("llama.rope.freq_base (float32): 10000\n"));
  EXPECT_THAT(text, HasSubstr("tokenizer.ggml.tokens (array of 3 strings): [<s>, a, \\x1b[2J]\n"));
}

TEST(InspectReportTest, ShortensLongArraysAndTexts) {
  GgufWriter writer;
  writer.Add("numbers", std::vector<int32_t>(1000, 5));
  writer.Add("floats", std::vector<float>(9, 0.5F));
  writer.Add("text", std::string(1000, 'x'));
  const std::string text = RenderInspectText(ReportOf(writer, {.with_metadata = true}));
  EXPECT_THAT(text, HasSubstr("numbers (array of 1000 int32s): [5, 5, 5, 5, 5, 5, 5, 5, ...]\n"));
  EXPECT_THAT(text, HasSubstr("floats (array of 9 float32s): [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, ...]\n"));
  EXPECT_THAT(text, HasSubstr("xxx...\n"));
  EXPECT_THAT(text, Not(HasSubstr(std::string(121, 'x'))));
}

TEST(InspectReportTest, JsonHasTheSameFacts) {
  const std::string text = RenderInspectJson(WholeReport({.with_tensors = true, .with_metadata = true}));
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["architecture"], "llama");
  EXPECT_EQ(json["shape"]["kv_heads"], 2);
  EXPECT_TRUE(json["shape"]["sliding_window"].is_null());
  EXPECT_EQ(json["weights"][1]["bytes"], 816);
  EXPECT_EQ(json["tokenizer"]["special_tokens"][1]["text"], "\x1b[2J");
  EXPECT_EQ(json["memory"][0]["kv_bytes_per_rank"], 4096 * 2 * 2 * 64 * 2 * 2);
  EXPECT_EQ(json["tensors"][0]["shape"], nlohmann::json({256, 3}));
  EXPECT_EQ(json["metadata"][0]["key"], "general.architecture");
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(InspectReportTest, JsonTakesAnyBytes) {
  GgufWriter writer;
  writer.Add("general.name", "\xff\xc2\x9b");
  const std::string text = RenderInspectJson(ReportOf(writer, {.with_metadata = true}));
  EXPECT_TRUE(nlohmann::json::accept(text));
  EXPECT_THAT(text, Not(HasSubstr("\x9b")));
}

}  // namespace
}  // namespace pando::cli
