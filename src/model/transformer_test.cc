#include "src/model/transformer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>

#include "src/base/memory.h"
#include "src/base/testing/bits.h"
#include "src/kernels/simd_target.h"
#include "src/model/testing/reference_forward.h"
#include "src/model/testing/tiny_model.h"

namespace pando {
namespace {

using test_support::MakeTinyModel;
using test_support::RandomMatrix;
using test_support::RandomPrompt;
using test_support::ReferenceLogits;
using test_support::SameBits;
using test_support::TinyModel;
using ::testing::HasSubstr;

struct NamedModel {
  std::string name;
  std::shared_ptr<const Model> model;
};

std::shared_ptr<const Model> LoadOrDie(const TinyModel& tiny, const RopeOverrides& overrides = {}) {
  return tiny.Load(overrides).value();
}

TinyModel MixedTypes() {
  TinyModel tiny = MakeTinyModel({.hidden = 256, .ffn = 256, .heads = 8, .kv_heads = 2, .head_dim = 32});
  size_t next = 0;
  for (auto& [name, tensor] : tiny.tensors) {
    if (!name.starts_with("blk.") || tensor.shape.size() < 2) continue;
    const WeightType type = AllWeightTypes()[next++ % AllWeightTypes().size()];
    tensor = RandomMatrix(type, tensor.shape[1], tensor.shape[0], 1.0 / 16, next);
  }
  return tiny;
}

// All architectures, and what else a file may ask for. Vocabularies and head counts are odd where they may be.
const std::vector<NamedModel>& Models() {
  static const std::vector<NamedModel> models = [] {
    TinyModel part_turns = MakeTinyModel({.architecture = "qwen2", .heads = 3, .kv_heads = 3, .head_dim = 24});
    part_turns.keys["rope.dimension_count"] = uint32_t{10};
    TinyModel yarn = MakeTinyModel({.heads = 6, .kv_heads = 3, .vocabulary = 33});
    yarn.keys["rope.scaling.type"] = std::string("yarn");
    yarn.keys["rope.scaling.factor"] = 4.0f;
    yarn.keys["rope.scaling.original_context_length"] = uint32_t{40};
    return std::vector<NamedModel>{
        {"llama", LoadOrDie(MakeTinyModel({}))},
        {"llama, 9 heads on 3",
         LoadOrDie(
             MakeTinyModel({.hidden = 40, .ffn = 56, .heads = 9, .kv_heads = 3, .head_dim = 8, .vocabulary = 1}))},
        {"llama, biases, divisors, tied",
         LoadOrDie(MakeTinyModel({.has_output = false, .has_biases = true, .has_divisors = true}))},
        {"llama, window", LoadOrDie(MakeTinyModel({.vocabulary = 19, .window = 21}))},
        {"llama, linear", LoadOrDie(MakeTinyModel({}), {.scaling = RopeScaling::kLinear, .factor = 3.0})},
        {"llama, yarn", LoadOrDie(yarn)},
        {"llama, q4_0 and q8_0",
         LoadOrDie(
             MakeTinyModel({.type = WeightType::kQ4_0, .embedding_type = WeightType::kQ8_0, .has_output = false}))},
        {"llama, all types", LoadOrDie(MixedTypes())},
        {"qwen2", LoadOrDie(MakeTinyModel({.architecture = "qwen2", .type = WeightType::kQ5_1}))},
        {"qwen2, part of a head turns", LoadOrDie(part_turns)},
        {"qwen3", LoadOrDie(MakeTinyModel({.architecture = "qwen3", .head_dim = 32}))},
        {"qwen3, bf16", LoadOrDie(MakeTinyModel({.architecture = "qwen3", .type = WeightType::kBF16}))},
    };
  }();
  return models;
}

// How the work is divided.
struct Division {
  int64_t num_ranks = 1;
  int64_t num_threads = 1;
  int64_t step_tokens = 64;
  std::string strategy = "tree";
};

std::string NameOf(const Division& division) {
  return fmt::format("{} ranks, {} threads, steps of {}, {}", division.num_ranks, division.num_threads,
                     division.step_tokens, division.strategy);
}

TransformerOptions OptionsOf(const Division& division, KvType kv_type) {
  return {.max_tokens = std::max<int64_t>(8, division.step_tokens),
          .k_type = kv_type,
          .v_type = kv_type,
          .tree = {.num_slots = 8, .chunk_tokens = 16},
          .strategy = division.strategy,
          .num_threads = division.num_threads};
}

// Runs `function` with a transformer on each rank.
void RunOnRanks(const std::shared_ptr<const Model>& model, const Division& division, KvType kv_type,
                const std::function<Status(Transformer& transformer, bool is_front)>& function) {
  const Status status = RunInProcess(division.num_ranks, {}, [&](Communicator& communicator) {
    Result<std::unique_ptr<Transformer>> transformer =
        Transformer::Create(communicator, model, OptionsOf(division, kv_type));
    if (!transformer.ok()) return transformer.status();
    return function(**transformer, communicator.rank() == 0);
  });
  ASSERT_TRUE(status.ok()) << NameOf(division) << ": " << status.message();
}

// A sequence whose tokens come in steps, and the logits of some of them, on the front.
class Feed {
 public:
  Feed(Transformer& transformer, bool is_front)
      : transformer_(transformer), is_front_(is_front), sequence_(transformer.attention().cache().AddSequence()) {}
  Feed(Transformer& transformer, bool is_front, int64_t sequence)
      : transformer_(transformer), is_front_(is_front), sequence_(sequence) {}

  int64_t sequence() const { return sequence_; }

  Status Add(std::span<const int32_t> tokens, size_t step_tokens) {
    for (size_t first = 0; first < tokens.size(); first += step_tokens) {
      const SequenceTokens part = {sequence_, tokens.subspan(first, std::min(step_tokens, tokens.size() - first))};
      if (Status status = transformer_.Step({&part, 1}); !status.ok()) return status;
      last_ = part.tokens.size() - 1;
    }
    return Status();
  }

  // Of the last token of the last step; none on other ranks.
  Status AppendLogits(std::vector<float>& logits) {
    std::vector<float> more(is_front_ ? transformer_.model().config().vocabulary : 0);
    const Status status = transformer_.Logits({&last_, 1}, more);
    logits.insert(logits.end(), more.begin(), more.end());
    return status;
  }

 private:
  Transformer& transformer_;
  const bool is_front_;
  const int64_t sequence_;
  size_t last_ = 0;
};

// The logits of the prompt's last token, and of three more that come one by one.
std::vector<float> LogitsOf(const std::shared_ptr<const Model>& model, std::span<const int32_t> prompt,
                            const Division& division, KvType kv_type = KvType::kF16) {
  std::vector<float> logits;
  RunOnRanks(model, division, kv_type, [&](Transformer& transformer, bool is_front) -> Status {
    std::vector<float> mine;
    Feed feed(transformer, is_front);
    if (Status status = feed.Add(prompt, static_cast<size_t>(division.step_tokens)); !status.ok()) return status;
    if (Status status = feed.AppendLogits(mine); !status.ok()) return status;
    for (const int32_t token : {0, 0, static_cast<int32_t>(model->config().vocabulary) - 1}) {
      if (Status status = feed.Add({&token, 1}, 1); !status.ok()) return status;
      if (Status status = feed.AppendLogits(mine); !status.ok()) return status;
    }
    if (is_front) logits = mine;
    return Status();
  });
  return logits;
}

std::vector<int32_t> PromptFor(const NamedModel& named, size_t count) {
  return RandomPrompt(count, named.model->config().vocabulary, 17);
}

// ---- Bits

TEST(TransformerTest, SameBitsForAllRanksThreadsAndSteps) {
  const NamedModel& named = Models()[6];
  const std::vector<int32_t> prompt = PromptFor(named, 70);
  const std::vector<float> first = LogitsOf(named.model, prompt, {});
  for (const int64_t num_ranks : {1, 2, 3, 4, 5, 8}) {
    for (const int64_t num_threads : {1, 2, 5}) {
      for (const int64_t step_tokens : {1, 7, 64}) {
        const Division division = {num_ranks, num_threads, step_tokens};
        EXPECT_TRUE(SameBits(LogitsOf(named.model, prompt, division), first)) << NameOf(division);
      }
    }
  }
}

TEST(TransformerTest, SameBitsOnEveryModel) {
  for (const NamedModel& named : Models()) {
    const std::vector<int32_t> prompt = PromptFor(named, 150);  // more chunks than slots
    const std::vector<float> first = LogitsOf(named.model, prompt, {});
    ASSERT_FALSE(first.empty());
    for (const float logit : first) ASSERT_TRUE(std::isfinite(logit)) << named.name;
    for (const Division& division :
         {Division{1, 5, 7}, Division{2, 2, 64}, Division{3, 1, 7}, Division{4, 1, 150}, Division{8, 1, 64}}) {
      EXPECT_TRUE(SameBits(LogitsOf(named.model, prompt, division), first)) << named.name << ": " << NameOf(division);
    }
  }
}

TEST(TransformerTest, SameBitsByEveryStrategy) {
  for (const size_t index : {3, 6}) {  // a window; quantised
    const NamedModel& named = Models()[index];
    const std::vector<int32_t> prompt = PromptFor(named, 150);
    const std::vector<float> first = LogitsOf(named.model, prompt, {});
    for (const char* strategy : {"tree", "butterfly", "two-level", "direct", "reduce-scatter", "allreduce", "ring"}) {
      for (const int64_t num_ranks : {1, 3, 4}) {
        for (const int64_t step_tokens : {3, 64}) {
          const Division division = {num_ranks, 1, step_tokens, strategy};
          EXPECT_TRUE(SameBits(LogitsOf(named.model, prompt, division), first)) << named.name << NameOf(division);
        }
      }
    }
  }
}

TEST(TransformerTest, SameBitsForEveryKvType) {
  const NamedModel& named = Models()[7];
  const std::vector<int32_t> prompt = PromptFor(named, 100);
  std::vector<std::vector<float>> of_types;
  for (const KvType kv_type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8_0}) {
    const std::vector<float> first = LogitsOf(named.model, prompt, {}, kv_type);
    for (const Division& division : {Division{3, 2, 7}, Division{4, 1, 64, "ring"}}) {
      EXPECT_TRUE(SameBits(LogitsOf(named.model, prompt, division, kv_type), first)) << NameOf(division);
    }
    for (const std::vector<float>& other : of_types) EXPECT_FALSE(SameBits(other, first)) << "types do not differ";
    of_types.push_back(first);
  }
}

TEST(TransformerTest, SameBitsOnEveryInstructionSet) {
  for (const size_t index : {0, 7, 10}) {
    const NamedModel& named = Models()[index];
    const std::vector<int32_t> prompt = PromptFor(named, 60);
    const std::vector<float> first = LogitsOf(named.model, prompt, {});
    for (const std::string& target : SupportedSimdTargets()) {
      ASSERT_TRUE(ForceSimdTarget(target).ok());
      EXPECT_TRUE(SameBits(LogitsOf(named.model, prompt, {2, 1, 64}), first)) << named.name << " on " << target;
    }
    ASSERT_TRUE(ForceSimdTarget("").ok());
  }
}

// The paper's merge adds in another order: its logits are those of the tree but for rounding, which noise in the
// reference measures (reference_forward.h).
double RootMeanSquare(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

double Distance(std::span<const double> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  std::vector<double> differences(a.size());
  for (size_t i = 0; i < a.size(); ++i) differences[i] = a[i] - static_cast<double>(b[i]);
  return RootMeanSquare(differences);
}

// Of columns up to 256: (256 / 16 + 5) * 2^-24.
constexpr double kWeightNoise = 21 * 0x1p-24;

TEST(TransformerTest, ThePapersMergeDiffersByRoundingOnly) {
  const NamedModel& named = Models()[0];
  const std::vector<int32_t> prompt = PromptFor(named, 150);
  const std::vector<float> first = LogitsOf(named.model, prompt, {}, KvType::kF32);
  const std::vector<double> wanted(first.begin(), first.end());
  for (const int64_t num_ranks : {2, 3, 8}) {
    const double distance = Distance(wanted, LogitsOf(named.model, prompt, {num_ranks, 1, 64, "paper"}, KvType::kF32));
    EXPECT_LT(distance, 100 * kWeightNoise * RootMeanSquare(wanted)) << num_ranks;
  }
}

// ---- The reference

// All logits of a prompt in one step.
std::vector<float> AllLogits(const std::shared_ptr<const Model>& model, std::span<const int32_t> prompt,
                             KvType kv_type) {
  std::vector<float> logits(prompt.size() * model->config().vocabulary);
  RunOnRanks(model, {.step_tokens = static_cast<int64_t>(prompt.size())}, kv_type,
             [&](Transformer& transformer, bool /*is_front*/) -> Status {
               const SequenceTokens part = {transformer.attention().cache().AddSequence(), prompt};
               if (Status status = transformer.Step({&part, 1}); !status.ok()) return status;
               std::vector<size_t> tokens(prompt.size());
               for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = i;
               return transformer.Logits(tokens, logits);
             });
  return logits;
}

// The distance from the exact logits is at most twice that which the roundings we allow make.
void ExpectNearReference(const NamedModel& named, KvType kv_type) {
  const std::vector<int32_t> prompt = PromptFor(named, 45);
  const std::vector<double> exact = ReferenceLogits(*named.model, prompt);
  double allowed = 0;
  for (const uint64_t seed : {1, 2, 3}) {
    std::vector<double> noisy = ReferenceLogits(
        *named.model, prompt, {.weights = kWeightNoise, .activations = true, .kv_type = kv_type, .seed = seed});
    for (size_t i = 0; i < noisy.size(); ++i) noisy[i] -= exact[i];
    allowed = std::max(allowed, 2 * RootMeanSquare(noisy));
  }
  const double distance = Distance(exact, AllLogits(named.model, prompt, kv_type));
  EXPECT_LT(distance, allowed) << named.name << ", logits of size " << RootMeanSquare(exact);
  EXPECT_GT(distance, 0) << named.name;
}

TEST(TransformerTest, FollowsTheReferenceOnEveryModel) {
  for (const NamedModel& named : Models()) ExpectNearReference(named, KvType::kF32);
}

TEST(TransformerTest, FollowsTheReferenceWithEveryKvType) {
  for (const KvType kv_type : {KvType::kF16, KvType::kBF16, KvType::kQ8_0}) {
    ExpectNearReference(Models()[0], kv_type);
    ExpectNearReference(Models()[10], kv_type);
  }
}

// ---- Batches and forks

// Four sequences of different lengths, first their prompts in steps of all four and then token by token: as if alone.
TEST(TransformerTest, SameBitsAloneOrInABatch) {
  for (const size_t index : {3, 7}) {
    const NamedModel& named = Models()[index];
    const size_t vocabulary = named.model->config().vocabulary;
    const std::array<size_t, 4> lengths = {1, 67, 20, 3};
    for (const int64_t num_ranks : {1, 3}) {
      const Division division = {num_ranks, 2, 128};
      std::array<std::vector<float>, 4> of_batch;
      RunOnRanks(named.model, division, KvType::kF16, [&](Transformer& transformer, bool is_front) -> Status {
        std::array<std::vector<int32_t>, 4> prompts;
        std::vector<SequenceTokens> batch;
        std::vector<size_t> lasts;
        size_t count = 0;
        for (size_t i = 0; i < 4; ++i) {
          prompts[i] = RandomPrompt(lengths[i], vocabulary, i);
          batch.push_back({transformer.attention().cache().AddSequence(), prompts[i]});
          lasts.push_back((count += lengths[i]) - 1);
        }
        for (int step = 0; step < 4; ++step) {
          std::vector<float> logits(is_front ? 4 * vocabulary : 0);
          if (Status status = transformer.Step(batch); !status.ok()) return status;
          if (Status status = transformer.Logits(lasts, logits); !status.ok()) return status;
          const std::array<int32_t, 4> next = {0, 0, static_cast<int32_t>(vocabulary) - 1, 0};
          for (size_t i = 0; i < 4; ++i) {
            if (is_front) {
              const auto begin = logits.begin() + static_cast<ptrdiff_t>(i * vocabulary);
              of_batch[i].insert(of_batch[i].end(), begin, begin + static_cast<ptrdiff_t>(vocabulary));
            }
            prompts[i] = {next[static_cast<size_t>(step)]};
            batch[i].tokens = prompts[i];
            lasts[i] = i;
          }
        }
        return Status();
      });
      for (size_t i = 0; i < 4; ++i) {
        EXPECT_TRUE(SameBits(of_batch[i], LogitsOf(named.model, RandomPrompt(lengths[i], vocabulary, i), {})))
            << named.name << ", sequence " << i << " on " << num_ranks << " ranks";
      }
    }
  }
}

TEST(TransformerTest, SameBitsAfterAFork) {
  for (const size_t index : {0, 3}) {
    const NamedModel& named = Models()[index];
    const std::vector<int32_t> prompt = PromptFor(named, 60);
    const std::vector<int32_t> other = RandomPrompt(30, named.model->config().vocabulary, 5);
    const std::vector<float> wanted = LogitsOf(named.model, prompt, {});
    for (const int64_t num_ranks : {1, 3}) {
      std::vector<float> forked;
      RunOnRanks(named.model, {.num_ranks = num_ranks}, KvType::kF16,
                 [&](Transformer& transformer, bool is_front) -> Status {
                   Feed parent(transformer, is_front);
                   if (Status status = parent.Add(std::span(prompt).first(40), 64); !status.ok()) return status;
                   Result<int64_t> child = transformer.attention().cache().ForkSequence(parent.sequence());
                   if (!child.ok()) return child.status();
                   if (Status status = parent.Add(other, 64); !status.ok()) return status;
                   Feed feed(transformer, is_front, *child);
                   std::vector<float> mine;
                   if (Status status = feed.Add(std::span(prompt).subspan(40), 64); !status.ok()) return status;
                   Status status = feed.AppendLogits(mine);
                   if (is_front) forked = mine;
                   return status;
                 });
      EXPECT_TRUE(SameBits(forked, std::span(wanted).first(named.model->config().vocabulary))) << named.name;
    }
  }
}

// ---- Calls that cannot be done

TEST(TransformerTest, RefusesStepsThatAreNone) {
  const NamedModel& named = Models()[0];
  RunOnRanks(named.model, {.num_ranks = 2}, KvType::kF16, [&](Transformer& transformer, bool is_front) -> Status {
    const std::vector<int32_t> prompt = PromptFor(named, 80);
    const int64_t sequence = transformer.attention().cache().AddSequence();
    const auto refused = [&](std::vector<SequenceTokens> batch, const char* words) {
      const Status status = transformer.Step(batch);
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(status.message(), HasSubstr(words));
    };
    const std::span<const int32_t> few = std::span(prompt).first(3);
    refused({}, "no tokens");
    refused({{sequence, {}}}, "no tokens");
    refused({{sequence + 1, few}}, "no sequence 1");
    refused({{-1, few}}, "no sequence -1");
    refused({{sequence, prompt}}, "80 tokens: it takes at most 64");
    refused({{sequence, few}, {sequence, few}}, "sequence 0 occurs twice");
    const std::array<int32_t, 2> beyond = {3, 101};
    refused({{sequence, beyond}}, "no token 101: the vocabulary has 101");
    EXPECT_EQ(transformer.attention().cache().num_tokens(0, sequence), 0);
    EXPECT_TRUE(transformer.in_step());
    const SequenceTokens part = {sequence, few};
    if (Status status = transformer.Step({&part, 1}); !status.ok()) return status;
    const std::array<size_t, 1> third = {3};
    std::vector<float> logits(101);
    EXPECT_THAT(transformer.Logits(third, logits).message(), HasSubstr("had 3 tokens: no number 3"));
    EXPECT_TRUE(!is_front || !transformer.Logits({third.data(), 0}, logits).ok());
    EXPECT_TRUE(transformer.in_step());
    return Status();
  });
}

TEST(TransformerTest, RefusesOptionsThatAreNone) {
  Communicator alone = Communicator::Alone();
  const auto complaint = [&](const TransformerOptions& options) {
    const auto transformer = Transformer::Create(alone, Models()[0].model, options);
    EXPECT_EQ(transformer.status().code(), StatusCode::kInvalidArgument);
    return transformer.status().message();
  };
  EXPECT_THAT(complaint({.max_tokens = -1}), HasSubstr("-1 tokens per step"));
  EXPECT_THAT(complaint({.max_tokens = 65537}), HasSubstr("65537 tokens per step"));
  EXPECT_THAT(complaint({.tree = {.num_slots = 3}}), HasSubstr("num_slots is 3"));
  EXPECT_THAT(complaint({.strategy = "best"}), HasSubstr("'best'"));
  EXPECT_THAT(complaint({.num_threads = -1}), HasSubstr("-1"));
}

// ---- Memory

TEST(TransformerTest, ReservedContextsTakeNoMoreMemory) {
  for (const size_t index : {0, 3}) {
    const NamedModel& named = Models()[index];
    for (const int64_t num_ranks : {1, 3}) {
      std::atomic<int64_t> reserved = 0;
      std::atomic<int64_t> in_the_end = 0;
      RunOnRanks(named.model, {.num_ranks = num_ranks, .step_tokens = 24}, KvType::kF16,
                 [&](Transformer& transformer, bool is_front) -> Status {
                   if (Status status = transformer.Reserve(700); !status.ok()) return status;
                   reserved += transformer.attention().memory().allocated;
                   Feed feed(transformer, is_front);
                   const std::vector<int32_t> prompt = PromptFor(named, 690);
                   if (Status status = feed.Add(prompt, 24); !status.ok()) return status;
                   if (Status status = feed.Add(std::span(prompt).first(10), 1); !status.ok()) return status;
                   in_the_end += transformer.attention().memory().allocated;
                   return Status();
                 });
      EXPECT_GT(reserved, 0);
      EXPECT_EQ(in_the_end, reserved) << named.name << " on " << num_ranks << " ranks";
    }
  }
}

// However long the context is: with a window of 21 and steps of 24, 44 tokens are seen at once, in 4 chunks of 16.
TEST(TransformerTest, AWindowTakesTheMemoryOfItsTokens) {
  const NamedModel& named = Models()[3];
  for (const int64_t num_ranks : {1, 3}) {
    std::atomic<int64_t> used = 0;
    RunOnRanks(named.model, {.num_ranks = num_ranks, .step_tokens = 24}, KvType::kF16,
               [&](Transformer& transformer, bool is_front) -> Status {
                 if (Status status = transformer.Reserve(1'000'000'000); !status.ok()) return status;
                 EXPECT_LT(transformer.attention().memory().allocated, 10 << 20) << "one slab";
                 Feed feed(transformer, is_front);
                 if (Status status = feed.Add(PromptFor(named, 480), 24); !status.ok()) return status;
                 used += transformer.attention().memory().used;
                 return Status();
               });
    constexpr int64_t kChunkBytes = 2 * 16 * 2 * 16 * 2 * 2;  // layers, tokens, KV heads, dims, bytes, keys and values
    EXPECT_LE(used, 4 * kChunkBytes);
    EXPECT_GE(used, 2 * kChunkBytes);
  }
}

TEST(TransformerTest, StepsAreShorterWhereManyRanksShareAMachine) {
  for (const auto& [num_ranks, step_tokens] : {std::pair<int64_t, int64_t>{1, 512}, {4, 512}, {5, 409}, {8, 256}}) {
    const Status status = RunInProcess(num_ranks, {}, [&](Communicator& communicator) {
      const auto transformer = Transformer::Create(communicator, Models()[0].model, {.num_threads = 1});
      if (!transformer.ok()) return transformer.status();
      EXPECT_EQ((*transformer)->options().max_tokens, step_tokens) << num_ranks;
      return Status();
    });
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

// Each of three ranks could have its part, all three together cannot.
TEST(TransformerTest, RanksOfOneMachineShareItsMemory) {
  constexpr int64_t kTokenBytes = 2 * 2 * 16 * 2 * 2;  // layers, KV heads, dims, bytes, keys and values
  const int64_t num_tokens = static_cast<int64_t>(AvailableMemoryBytes()) * 2 / kTokenBytes;
  std::atomic<int> told = 0;
  RunOnRanks(Models()[0].model, {.num_ranks = 3}, KvType::kF16, [&](Transformer& transformer, bool) -> Status {
    for (int i = 0; i < 2; ++i) {
      const Status status = transformer.Reserve(num_tokens);
      EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
      told += status.message().find("ranks on this machine") != std::string::npos;
    }
    EXPECT_EQ(transformer.attention().memory().allocated, 0);
    return transformer.Reserve(10);
  });
  EXPECT_EQ(told, 6);
}

TEST(TransformerTest, AContextBeyondMemoryIsSaidOnAllRanks) {
  std::atomic<int> told = 0;
  RunOnRanks(Models()[0].model, {.num_ranks = 3}, KvType::kF16, [&](Transformer& transformer, bool) -> Status {
    const Status status = transformer.Reserve(std::numeric_limits<int64_t>::max());
    told += status.code() == StatusCode::kOutOfMemory;
    EXPECT_FALSE(transformer.Reserve(-1).ok());
    return transformer.Reserve(10);
  });
  EXPECT_EQ(told, 3);
}

TEST(TransformerTest, TakesTimesOnce) {
  RunOnRanks(Models()[0].model, {.num_ranks = 2}, KvType::kF16, [&](Transformer& transformer, bool is_front) -> Status {
    Feed feed(transformer, is_front);
    if (Status status = feed.Add(RandomPrompt(40, 101, 3), 64); !status.ok()) return status;
    const TransformerTimes times = transformer.TakeTimes();
    EXPECT_GT(times.attention_seconds, 0);
    EXPECT_GT(times.merge_seconds, 0);
    EXPECT_GT(times.gather_seconds, 0);
    EXPECT_GE(times.total_seconds, times.attention_seconds + times.merge_seconds + times.gather_seconds);
    EXPECT_EQ(transformer.TakeTimes().total_seconds, 0);
    return Status();
  });
}

}  // namespace
}  // namespace pando
