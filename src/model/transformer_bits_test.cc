// The same bits of logits, whoever computes which part.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/base/testing/bits.h"
#include "src/kernels/simd_target.h"
#include "src/model/testing/tiny_model.h"
#include "src/model/testing/transformer_cases.h"

namespace pando {
namespace {

using test_support::Division;
using test_support::Feed;
using test_support::LogitsOf;
using test_support::Models;
using test_support::NamedModel;
using test_support::NameOf;
using test_support::PromptFor;
using test_support::RandomPrompt;
using test_support::RunOnRanks;
using test_support::SameBits;

TEST(TransformerBitsTest, SameBitsForAllRanksThreadsAndSteps) {
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

// All numbers of groups of some numbers of ranks, with tokens divided or not and all ways to divide `down`.
std::vector<Division> Groupings(std::span<const int64_t> rank_counts, int64_t step_tokens) {
  std::vector<Division> divisions;
  for (const int64_t num_ranks : rank_counts) {
    for (int num_groups = 1; num_groups <= num_ranks; ++num_groups) {
      for (const bool divides_tokens : {false, true}) {
        const auto down = static_cast<DownDivision>(divisions.size() % 3);
        const char* strategy = divisions.size() % 4 == 3 ? "ring" : "tree";
        divisions.push_back({num_ranks, 1, step_tokens, strategy, StepDivision{num_groups, divides_tokens, down}});
      }
    }
  }
  return divisions;
}

TEST(TransformerBitsTest, SameBitsForEveryGrouping) {
  for (const auto& [index, step_tokens] : {std::pair(3, 5), std::pair(7, 64)}) {  // a window; all types of weights
    const NamedModel& named = Models()[static_cast<size_t>(index)];
    const std::vector<int32_t> prompt = PromptFor(named, 150);
    const std::vector<float> first = LogitsOf(named.model, prompt, {});
    for (const Division& division : Groupings(std::array<int64_t, 7>{2, 3, 4, 5, 6, 7, 8}, step_tokens)) {
      EXPECT_TRUE(SameBits(LogitsOf(named.model, prompt, division), first)) << named.name << ", " << NameOf(division);
    }
  }
}

// Any model, ranks, groups, threads, steps and strategy.
RC_GTEST_PROP(TransformerBitsTest, SameBitsForAnyDivision, ()) {
  const NamedModel& named = Models()[*rc::gen::inRange<size_t>(0, Models().size())];
  const std::vector<int32_t> prompt = PromptFor(named, *rc::gen::inRange<size_t>(1, 150));
  const int64_t num_ranks = *rc::gen::inRange(1, 9);
  const int64_t num_threads = *rc::gen::inRange(1, 4);
  const int64_t step_tokens = *rc::gen::inRange(1, 100);
  const std::string strategy = *rc::gen::element("tree", "tree", "ring", "direct");
  const StepDivision step = {*rc::gen::inRange(1, static_cast<int>(num_ranks) + 1), *rc::gen::arbitrary<bool>(),
                             static_cast<DownDivision>(*rc::gen::inRange(0, 3))};
  const Division division = {num_ranks, num_threads, step_tokens, strategy, step};
  RC_LOG() << named.name << ", " << prompt.size() << " tokens, " << NameOf(division);
  RC_ASSERT(SameBits(LogitsOf(named.model, prompt, division), LogitsOf(named.model, prompt, {})));
}

TEST(TransformerBitsTest, SameBitsForGroupsOfManyRanks) {
  const NamedModel& named = Models()[7];
  const std::vector<int32_t> prompt = PromptFor(named, 70);
  const std::vector<float> first = LogitsOf(named.model, prompt, {.num_slots = 64});
  int next = 0;
  for (const auto& [num_ranks, group_counts] :
       {std::pair(12, std::vector{1, 2, 3, 4, 5, 6, 12}), std::pair(16, std::vector{1, 2, 3, 4, 8, 16}),
        std::pair(64, std::vector{1, 8, 64})}) {
    for (const int num_groups : group_counts) {
      const auto down = static_cast<DownDivision>(next++ % 3);
      const Division division = {num_ranks, 1, 70, "tree", StepDivision{num_groups, num_groups > 1, down}, 64};
      EXPECT_TRUE(SameBits(LogitsOf(named.model, prompt, division), first)) << NameOf(division);
    }
  }
}

TEST(TransformerBitsTest, SameBitsOnEveryModel) {
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

TEST(TransformerBitsTest, SameBitsByEveryStrategy) {
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

TEST(TransformerBitsTest, SameBitsForEveryKvType) {
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

TEST(TransformerBitsTest, SameBitsOnEveryInstructionSet) {
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

// Four sequences of different lengths, first their prompts in steps of all four and then token by token: as if alone.
TEST(TransformerBitsTest, SameBitsAloneOrInABatch) {
  for (const size_t index : {3, 7}) {
    const NamedModel& named = Models()[index];
    const size_t vocabulary = named.model->config().vocabulary;
    const std::array<size_t, 4> lengths = {1, 67, 20, 3};
    for (const StepDivision& groups : {StepDivision{1}, StepDivision{3, true}, StepDivision{2, true}}) {
      const int64_t num_ranks = groups.num_groups == 1 ? 1 : 3;
      const Division division = {num_ranks, 2, 128, "tree", groups};
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
            << named.name << ", sequence " << i << " on " << NameOf(division);
      }
    }
  }
}

TEST(TransformerBitsTest, SameBitsAfterAFork) {
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

}  // namespace
}  // namespace pando
