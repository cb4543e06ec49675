// The real model says the same, to the bit, however the work is divided: the fingerprint of the logits of a prompt's
// last token and of 8 tokens after it (prompt.txt) is one number, and it is the one of real_model_golden.txt.
//
// A change of the arithmetic changes the golden file, and the changelog says so:
//   pando generate -m MODEL -f tests/model/prompt.txt -n 8 --temp 0 --json        tokens and logits_fingerprint
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "src/base/fingerprint.h"
#include "src/engine/generator.h"
#include "src/engine/load_tokenizer.h"
#include "src/gguf/testing/real_model.h"
#include "src/kernels/simd_target.h"

namespace pando {
namespace {

constexpr size_t kGenerated = 8;

// What a run says.
struct Text {
  std::vector<int32_t> tokens;
  uint64_t fingerprint = Fingerprint({});

  bool operator==(const Text&) const = default;
};

void PrintTo(const Text& text, std::ostream* out) {
  *out << fmt::format("{:016x}:", text.fingerprint);
  for (const int32_t token : text.tokens) *out << " " << token;
}

struct Division {
  int64_t num_ranks = 1;
  int64_t num_threads = 2;
  int64_t step_tokens = 512;
  std::string strategy = "tree";
  KvType kv_type = KvType::kF16;
  std::optional<StepDivision> step = {};
};

std::string NameOf(const Division& division) {
  return fmt::format("{} ranks, {} threads, steps of {}, {}", division.num_ranks, division.num_threads,
                     division.step_tokens, division.strategy);
}

std::string ReadFile(const std::string& name) {
  std::ifstream file(std::string(PANDO_TEST_FOLDER "/") + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

class RealModelBitsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string path = test_support::RealModelPath();
    if (path.empty()) return;
    model_ = Model::Load(path, {}).value();
    prompt_ = LoadTokenizer(model_->file())->Encode(ReadFile("prompt.txt"));
  }

  static void TearDownTestSuite() { model_.reset(); }

  void SetUp() override {
    if (model_ == nullptr) GTEST_SKIP() << test_support::kNoRealModel;
  }

  static Status RunOn(const Division& division, const std::function<Status(Engine& engine)>& front) {
    const TransformerOptions options = {.max_tokens = division.step_tokens,
                                        .k_type = division.kv_type,
                                        .v_type = division.kv_type,
                                        .strategy = division.strategy,
                                        .num_threads = division.num_threads,
                                        .division = division.step};
    return RunInProcess(division.num_ranks, {},
                        [&](Communicator& communicator) { return Engine::Run(communicator, model_, options, front); });
  }

  static Text Generate(const Division& division, std::span<const int32_t> prompt = prompt_) {
    Text text;
    const Status status = RunOn(division, [&](Engine& engine) -> Status {
      const Result<int64_t> sequence = engine.AddSequence();
      if (!sequence.ok()) return sequence.status();
      Generator generator(engine, *sequence, /*with_fingerprint=*/true);
      if (Status done = generator.Prefill(prompt, {}); !done.ok()) return done;
      Sampler sampler({.temperature = 0});
      while (text.tokens.size() < kGenerated) {
        const Result<int32_t> token = generator.Next(sampler);
        if (!token.ok()) return token.status();
        text.tokens.push_back(*token);
      }
      text.fingerprint = generator.fingerprint();
      return Status();
    });
    EXPECT_TRUE(status.ok()) << NameOf(division) << ": " << status.message();
    return text;
  }

  // What every division must say.
  static const Text& Golden() {
    static const Text golden = [] {
      Text text;
      std::istringstream file(ReadFile("real_model_golden.txt"));
      std::string name;
      file >> name >> std::hex >> text.fingerprint >> name >> std::dec;
      std::copy(std::istream_iterator<int32_t>(file), {}, std::back_inserter(text.tokens));
      return text;
    }();
    return golden;
  }

  static std::shared_ptr<const Model> model_;
  static std::vector<int32_t> prompt_;
};

std::shared_ptr<const Model> RealModelBitsTest::model_;
std::vector<int32_t> RealModelBitsTest::prompt_;

TEST_F(RealModelBitsTest, OnAnyNumberOfRanks) {
  EXPECT_GT(prompt_.size(), 512u) << "more than one step";
  for (const int64_t num_ranks : {1, 2, 3, 4, 8}) {
    const Division division = {.num_ranks = num_ranks, .num_threads = 1};
    EXPECT_EQ(Generate(division), Golden()) << NameOf(division);
  }
}

TEST_F(RealModelBitsTest, OnAnyNumberOfThreads) {
  for (const int64_t num_threads : {2, 5}) {
    EXPECT_EQ(Generate({.num_threads = num_threads}), Golden()) << num_threads;
  }
}

TEST_F(RealModelBitsTest, InStepsOfAnySize) {
  for (const int64_t step_tokens : {7, 64}) {
    EXPECT_EQ(Generate({.step_tokens = step_tokens}), Golden()) << step_tokens;
  }
  const std::span<const int32_t> start = std::span(prompt_).first(70);
  EXPECT_EQ(Generate({.step_tokens = 1}, start), Generate({}, start));
}

TEST_F(RealModelBitsTest, ByAnySchedule) {
  for (const char* strategy : {"butterfly", "two-level", "direct", "reduce-scatter", "allreduce", "ring"}) {
    const Division division = {.num_ranks = 3, .num_threads = 1, .strategy = strategy};
    EXPECT_EQ(Generate(division), Golden()) << NameOf(division);
  }
}

// One group and several, even and uneven; tokens divided or not; queries that travel (steps of 32) and keys and values
// that do; all ways to divide `down`.
TEST_F(RealModelBitsTest, InAnyGrouping) {
  int next = 0;
  for (const auto& [num_ranks, num_groups] : {std::pair(3, 2), std::pair(4, 1), std::pair(4, 4), std::pair(6, 3)}) {
    for (const bool divides_tokens : {false, true}) {
      const StepDivision step = {num_groups, divides_tokens, static_cast<DownDivision>(next++ % 3)};
      const Division division = {
          .num_ranks = num_ranks, .num_threads = 1, .step_tokens = divides_tokens ? 32 : 512, .step = step};
      EXPECT_EQ(Generate(division), Golden()) << NameOf(division) << ", " << num_groups << " groups";
    }
  }
}

TEST_F(RealModelBitsTest, OnAnyInstructionSet) {
  const std::string best = ChosenSimdTarget();
  for (const std::string& target : SupportedSimdTargets()) {
    if (target == best || target == "SCALAR" || target == "EMU128") continue;  // one done, the other slow
    ASSERT_TRUE(ForceSimdTarget(target).ok());
    EXPECT_EQ(Generate({}), Golden()) << target;
  }
  ASSERT_TRUE(ForceSimdTarget("").ok());
}

TEST_F(RealModelBitsTest, OtherKvTypesHaveBitsOfTheirOwn) {
  const std::span<const int32_t> start = std::span(prompt_).first(200);
  std::vector<uint64_t> found = {Generate({}, start).fingerprint};
  for (const KvType kv_type : {KvType::kF32, KvType::kBF16, KvType::kQ8_0}) {
    const Text alone = Generate({.kv_type = kv_type}, start);
    EXPECT_EQ(Generate({.num_ranks = 3, .num_threads = 1, .step_tokens = 64, .kv_type = kv_type}, start), alone);
    EXPECT_EQ(std::ranges::count(found, alone.fingerprint), 0);
    found.push_back(alone.fingerprint);
  }
}

// Four sequences of different lengths at once, all of them picking their likeliest tokens.
TEST_F(RealModelBitsTest, AloneOrInABatch) {
  const std::array<size_t, 4> lengths = {90, prompt_.size(), 1, 301};
  std::array<Text, 4> texts;
  const size_t vocabulary = model_->config().vocabulary;
  const Division division = {.num_ranks = 2, .num_threads = 1, .step_tokens = 2048};
  const Status status = RunOn(division, [&](Engine& engine) -> Status {
    std::vector<SequenceTokens> batch;
    std::vector<size_t> lasts;
    size_t count = 0;
    for (const size_t length : lengths) {
      batch.push_back({engine.AddSequence().value(), std::span(prompt_).first(length)});
      lasts.push_back((count += length) - 1);
    }
    std::vector<float> logits(lengths.size() * vocabulary);
    for (size_t step = 0; step < kGenerated; ++step) {
      if (Status done = engine.Step(batch, lasts, logits); !done.ok()) return done;
      for (size_t i = 0; i < lengths.size(); ++i) {
        const std::span<const float> mine = std::span(logits).subspan(i * vocabulary, vocabulary);
        texts[i].fingerprint = Fingerprint(mine, texts[i].fingerprint);
        texts[i].tokens.push_back(static_cast<int32_t>(std::ranges::max_element(mine) - mine.begin()));
        batch[i].tokens = std::span(texts[i].tokens).last(1);
        lasts[i] = i;
      }
    }
    return Status();
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(texts[1], Golden());
  for (const size_t i : {0, 2, 3}) EXPECT_EQ(texts[i], Generate({}, std::span(prompt_).first(lengths[i]))) << i;
}

}  // namespace
}  // namespace pando
