#include "src/gguf/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "src/gguf/testing/gguf_writer.h"
#include "src/gguf/testing/real_model.h"

namespace pando {
namespace {

using test_support::GgufWriter;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class GgufFileTest : public ::testing::Test {
 protected:
  GgufFileTest() {
    std::string name = ::testing::TempDir() + "gguf_file_test.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~GgufFileTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  // One part of a split model: one tensor, named after the part.
  void WritePart(const std::string& name, uint16_t part, uint16_t num_parts, const std::string& tensor,
                 int32_t num_tensors = 3) const {
    GgufWriter writer;
    if (part == 0) writer.Add("general.architecture", "llama");
    writer.Add("split.no", part);
    writer.Add("split.count", num_parts);
    writer.Add("split.tensors.count", num_tensors);
    writer.AddTensor(tensor, {1}, std::vector<float>{static_cast<float>(part)});
    writer.Write(Path(name));
  }

  void WriteThreeParts() const {
    WritePart("m-00001-of-00003.gguf", 0, 3, "a");
    WritePart("m-00002-of-00003.gguf", 1, 3, "b");
    WritePart("m-00003-of-00003.gguf", 2, 3, "c");
  }

  std::string Refusal(const std::string& name) const {
    const Status status = GgufFile::Open(Path(name)).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  }

  std::filesystem::path folder_;
};

TEST_F(GgufFileTest, FindsMetadataAndTensors) {
  GgufWriter writer;
  writer.Add("z", "last");
  writer.Add("layers", uint32_t{30});
  writer.Add("negative", int32_t{-1});
  writer.Add("theta", 1e4F);
  writer.Add("flag", true);
  writer.Add("tokens", std::vector<std::string>{"x", "y"});
  writer.Add("scores", std::vector<float>{1, 2});
  writer.Add("types", std::vector<int32_t>{3, 4});
  writer.AddTensor("w", {2}, std::vector<float>{1, 2});
  writer.AddTensor("b", {1}, std::vector<float>{3});
  writer.Write(Path("m.gguf"));

  Result<GgufFile> opened = GgufFile::Open(Path("m.gguf"));
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const GgufFile file = std::move(*opened);  // what was found before and after a move is the same
  EXPECT_EQ(file.path(), Path("m.gguf"));
  EXPECT_EQ(file.version(), 3U);
  EXPECT_EQ(file.file_bytes(), std::filesystem::file_size(Path("m.gguf")));
  EXPECT_EQ(file.num_files(), 1U);
  EXPECT_THAT(file.metadata(), SizeIs(8));
  EXPECT_EQ(*file.GetUint("layers"), 30U);
  EXPECT_EQ(*file.GetInt("negative"), -1);
  EXPECT_EQ(*file.GetFloat("theta"), 1e4);
  EXPECT_EQ(*file.GetFloat("layers"), 30.0);
  EXPECT_TRUE(*file.GetBool("flag"));
  EXPECT_EQ(*file.GetString("z"), "last");
  EXPECT_THAT(*file.GetStrings("tokens"), ElementsAre("x", "y"));
  EXPECT_THAT(*file.GetFloats("scores"), ElementsAre(1, 2));
  EXPECT_THAT(*file.GetInts("types"), ElementsAre(3, 4));
  EXPECT_EQ(file.Find("absent"), nullptr);
  EXPECT_EQ(file.Find(""), nullptr);
  ASSERT_NE(file.FindTensor("b"), nullptr);
  EXPECT_EQ(file.FindTensor("b")->name, "b");
  EXPECT_EQ(file.FindTensor("c"), nullptr);
}

TEST_F(GgufFileTest, SaysWhichKeyIsAbsentOrOfAnotherType) {
  GgufWriter writer;
  writer.Add("text", "abc");
  writer.Add("negative", int32_t{-7});
  const std::vector<std::byte> bytes = writer.Bytes();
  const Result<GgufFile> file = GgufFile::FromBytes(bytes, "m.gguf");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->GetUint("absent").status().message(), "m.gguf: has no key 'absent', which this model needs");
  EXPECT_EQ(file->GetUint("text").status().message(),
            "m.gguf: key 'text' is string: it must be an integer of at least 0");
  EXPECT_THAT(file->GetUint("negative").status().message(),
              HasSubstr("is int32 -7: it must be an integer of at least 0"));
  EXPECT_THAT(file->GetStrings("text").status().message(), HasSubstr("an array of strings"));
  EXPECT_EQ(file->GetBool("text").status().code(), StatusCode::kInvalidArgument);
}

TEST_F(GgufFileTest, HasValuesForWhatIsAbsent) {
  GgufWriter writer;
  writer.Add("number", uint32_t{5});
  writer.Add("text", "abc");
  const std::vector<std::byte> bytes = writer.Bytes();
  const Result<GgufFile> file = GgufFile::FromBytes(bytes, "m.gguf");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*file->GetUintOr("number", 7), 5U);
  EXPECT_EQ(*file->GetUintOr("absent", 7), 7U);
  EXPECT_EQ(*file->GetIntOr("absent", -7), -7);
  EXPECT_EQ(*file->GetFloatOr("absent", 0.5), 0.5);
  EXPECT_TRUE(*file->GetBoolOr("absent", true));
  EXPECT_EQ(*file->GetStringOr("absent", "other"), "other");
  EXPECT_EQ(*file->GetStringOr("text", "other"), "abc");
  EXPECT_FALSE(file->GetUintOr("text", 7).ok());
}

TEST_F(GgufFileTest, NamesTheFileThatIsNotThere) {
  EXPECT_THAT(Refusal("absent.gguf"), AllOf(HasSubstr("absent.gguf"), HasSubstr("No such file")));
}

TEST_F(GgufFileTest, NeedsNoTensors) {
  GgufWriter writer;
  writer.Add("tokenizer.ggml.model", "gpt2");
  writer.Write(Path("vocabulary.gguf"));
  const Result<GgufFile> file = GgufFile::Open(Path("vocabulary.gguf"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_THAT(file->tensors(), SizeIs(0));
  EXPECT_EQ(file->FindTensor("a"), nullptr);
}

TEST_F(GgufFileTest, JoinsSplitModels) {
  WriteThreeParts();
  const Result<GgufFile> file = GgufFile::Open(Path("m-00001-of-00003.gguf"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_THAT(file->tensors(), SizeIs(3));
  EXPECT_EQ(file->num_files(), 3U);
  ASSERT_NE(file->FindTensor("c"), nullptr);
  float value = 0;
  std::memcpy(&value, file->FindTensor("c")->data.data(), sizeof(value));
  EXPECT_EQ(value, 2.0F);
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) bytes += entry.file_size();
  EXPECT_EQ(file->file_bytes(), bytes);
}

TEST_F(GgufFileTest, SaysWhichPartToOpen) {
  WriteThreeParts();
  EXPECT_THAT(Refusal("m-00002-of-00003.gguf"),
              AllOf(HasSubstr("part 2 of 3"), HasSubstr("open the first, " + Path("m-00001-of-00003.gguf"))));
}

TEST_F(GgufFileTest, SaysWhichPartIsMissing) {
  WriteThreeParts();
  std::filesystem::remove(Path("m-00003-of-00003.gguf"));
  EXPECT_THAT(Refusal("m-00001-of-00003.gguf"),
              AllOf(HasSubstr("part 3 of 3"), HasSubstr("missing"), HasSubstr(Path("m-00003-of-00003.gguf"))));
}

TEST_F(GgufFileTest, SaysWhichPartIsWrong) {
  WriteThreeParts();
  std::ofstream(Path("m-00002-of-00003.gguf")) << "GGUF";
  EXPECT_THAT(Refusal("m-00001-of-00003.gguf"), AllOf(HasSubstr("m-00002"), HasSubstr("ends too early")));
  WritePart("m-00002-of-00003.gguf", 2, 3, "b");
  EXPECT_THAT(Refusal("m-00001-of-00003.gguf"), HasSubstr("says that it is part 3 of 3"));
  WritePart("m-00002-of-00003.gguf", 1, 4, "b");
  EXPECT_THAT(Refusal("m-00001-of-00003.gguf"), HasSubstr("says that it is part 2 of 4"));
  WritePart("m-00002-of-00003.gguf", 1, 3, "a");
  EXPECT_THAT(Refusal("m-00001-of-00003.gguf"), HasSubstr("two of the model's files have tensor 'a'"));
  WriteThreeParts();
  WritePart("m-00001-of-00003.gguf", 0, 3, "a", 4);
  EXPECT_THAT(Refusal("m-00001-of-00003.gguf"), HasSubstr("has 4 tensors and its 3 files have 3"));
}

TEST_F(GgufFileTest, RefusesPartsUnderOtherNames) {
  WritePart("other.gguf", 0, 3, "a");
  EXPECT_THAT(Refusal("other.gguf"), HasSubstr("-00001-of-00003.gguf"));
  WritePart("m-00009-of-00003.gguf", 8, 3, "a");
  EXPECT_THAT(Refusal("m-00009-of-00003.gguf"), HasSubstr("part 8 (from 0) of 3"));
}

TEST_F(GgufFileTest, OnePartIsNoSplit) {
  WritePart("whole.gguf", 0, 1, "a", 1);
  EXPECT_TRUE(GgufFile::Open(Path("whole.gguf")).ok());
}

TEST_F(GgufFileTest, BytesInMemoryAreNoSplit) {
  GgufWriter writer;
  writer.Add("split.count", uint16_t{2});
  const std::vector<std::byte> bytes = writer.Bytes();
  EXPECT_THAT(GgufFile::FromBytes(bytes, "m").status().message(), HasSubstr("part of a split model"));
}

TEST_F(GgufFileTest, ReadsARealModel) {
  const std::string model = test_support::RealModelPath();
  if (model.empty()) GTEST_SKIP() << test_support::kNoRealModel;
  const Result<GgufFile> file = GgufFile::Open(model);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(*file->GetString("general.architecture"), "llama");
  EXPECT_EQ(*file->GetUint("llama.block_count"), 30U);
  EXPECT_THAT(*file->GetStrings("tokenizer.ggml.tokens"), SizeIs(49152));
  EXPECT_THAT(file->tensors(), SizeIs(30 * 9 + 2));
  const GgufTensor* embedding = file->FindTensor("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->type, GgufTensorType::kQ8_0);
  EXPECT_THAT(embedding->shape, ElementsAre(576, 49152));
  EXPECT_EQ(file->FindTensor("output.weight"), nullptr);
}

}  // namespace
}  // namespace pando
