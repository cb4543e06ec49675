// Through RankAttention::AppendAndAttend, as the model calls it.
#include "src/attention/divided_attention.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "pando/communicator.h"
#include "src/attention/rank_attention.h"
#include "src/base/random.h"
#include "src/base/testing/bits.h"

namespace pando {
namespace {

using test_support::SameBits;

constexpr int64_t kHeads = 4;
constexpr int64_t kKvHeads = 2;
constexpr int64_t kHeadDim = 16;
constexpr size_t kStepQFloats = kHeads * kHeadDim;
constexpr size_t kStepKvFloats = kKvHeads * kHeadDim;

struct DividedProblem {
  std::vector<int64_t> begun;    // tokens that each sequence has already
  std::vector<int64_t> added;    // tokens that the step adds
  std::vector<int64_t> of_rank;  // how many of these each rank has
  std::vector<double> weights;   // of slots, or none: all alike
  std::string strategy = "tree";
  int64_t window = 0;
};

AttentionOptions OptionsOf(const DividedProblem& problem) {
  AttentionOptions options = {.num_heads = kHeads,
                              .num_kv_heads = kKvHeads,
                              .head_dim = kHeadDim,
                              .tree = {.num_slots = 16, .chunk_tokens = 16},
                              .strategy = problem.strategy,
                              .num_threads = 1};
  if (problem.window > 0) options.window = problem.window;
  return options;
}

std::vector<float> RandomFloats(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.Normal();
  return values;
}

// The step's tokens in the order of the batch, and what they see of earlier ones.
struct StepVectors {
  explicit StepVectors(const DividedProblem& problem) {
    for (const int64_t count : problem.added) num_tokens += count;
    const auto size = static_cast<size_t>(num_tokens);
    q = RandomFloats(size * kStepQFloats, 1);
    k = RandomFloats(size * kStepKvFloats, 2);
    v = RandomFloats(size * kStepKvFloats, 3);
  }

  int64_t num_tokens = 0;
  std::vector<float> q, k, v;
};

Status Begin(RankAttention& attention, const DividedProblem& problem, std::vector<SequenceQueries>& parts) {
  for (size_t i = 0; i < problem.begun.size(); ++i) {
    parts.push_back({attention.cache().AddSequence(), problem.added[i]});
    const std::vector<float> k = RandomFloats(static_cast<size_t>(problem.begun[i]) * kStepKvFloats, 10 + i);
    const std::vector<float> v = RandomFloats(static_cast<size_t>(problem.begun[i]) * kStepKvFloats, 20 + i);
    if (Status status = attention.Append(0, parts.back().sequence, k, v); !status.ok()) return status;
  }
  return Status();
}

std::vector<float> OnOneRank(const DividedProblem& problem) {
  const StepVectors tokens(problem);
  std::vector<float> output(tokens.q.size());
  const Status status = RunInProcess(1, {}, [&](Communicator& communicator) -> Status {
    std::unique_ptr<RankAttention> attention = RankAttention::Create(communicator, OptionsOf(problem)).value();
    std::vector<SequenceQueries> parts;
    if (Status begun = Begin(*attention, problem, parts); !begun.ok()) return begun;
    size_t first = 0;
    for (const SequenceQueries& part : parts) {
      const auto count = static_cast<size_t>(part.num_queries);
      Status done =
          attention->Append(0, part.sequence, std::span(tokens.k).subspan(first * kStepKvFloats, count * kStepKvFloats),
                            std::span(tokens.v).subspan(first * kStepKvFloats, count * kStepKvFloats));
      if (!done.ok()) return done;
      done = attention->Prefill(0, part, std::span(tokens.q).subspan(first * kStepQFloats, count * kStepQFloats),
                                std::span(output).subspan(first * kStepQFloats, count * kStepQFloats), {});
      if (!done.ok()) return done;
      first += count;
    }
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return output;
}

struct Divided {
  std::vector<float> output;  // of all ranks, in the order of the batch
  std::vector<StepReport> reports;
};

// Tokens go to the ranks in the order of the batch, backwards in pairs of halves where there is one sequence.
Divided OnRanks(const DividedProblem& problem) {
  const StepVectors tokens(problem);
  std::vector<DividedTokens::Run> runs;
  for (size_t part = 0; part < problem.added.size(); ++part) {
    const int64_t half = problem.added[part] / 2;
    if (half > 0) runs.push_back({part, problem.added[part] - half, half});
    runs.push_back({part, 0, problem.added[part] - half});
  }
  std::vector<size_t> in_batch;  // of a token in the order of the runs
  for (const DividedTokens::Run& run : runs) {
    int64_t first = run.first;
    for (size_t part = 0; part < run.part; ++part) first += problem.added[part];
    for (int64_t i = 0; i < run.count; ++i) in_batch.push_back(static_cast<size_t>(first + i));
  }
  std::vector<int64_t> first_token = {0};
  for (const int64_t count : problem.of_rank) first_token.push_back(first_token.back() + count);
  Divided divided = {std::vector<float>(tokens.q.size()), std::vector<StepReport>(problem.of_rank.size())};
  const auto num_ranks = static_cast<int64_t>(problem.of_rank.size());
  const Status status = RunInProcess(num_ranks, {}, [&](Communicator& communicator) -> Status {
    std::unique_ptr<RankAttention> attention = RankAttention::Create(communicator, OptionsOf(problem)).value();
    if (!problem.weights.empty()) {
      if (Status moved = attention->Rebalance(problem.weights); !moved.ok()) return moved;
    }
    std::vector<SequenceQueries> parts;
    if (Status begun = Begin(*attention, problem, parts); !begun.ok()) return begun;
    const auto rank = static_cast<size_t>(communicator.rank());
    const auto first = static_cast<size_t>(first_token[rank]);
    const auto count = static_cast<size_t>(problem.of_rank[rank]);
    std::vector<float> q, k, v;
    for (size_t i = first; i < first + count; ++i) {
      const auto add = [&](const std::vector<float>& from, size_t floats, std::vector<float>& to) {
        const auto begin = from.begin() + static_cast<ptrdiff_t>(in_batch[i] * floats);
        to.insert(to.end(), begin, begin + static_cast<ptrdiff_t>(floats));
      };
      add(tokens.q, kStepQFloats, q);
      add(tokens.k, kStepKvFloats, k);
      add(tokens.v, kStepKvFloats, v);
    }
    std::vector<float> output(count * kStepQFloats);
    const TokenVectors mine = {q.data(), k.data(), v.data()};
    if (Status done = attention->AppendAndAttend(0, parts, runs, first_token, mine, output); !done.ok()) return done;
    for (size_t i = 0; i < count; ++i) {
      std::copy_n(output.data() + i * kStepQFloats, kStepQFloats,
                  divided.output.data() + in_batch[first + i] * kStepQFloats);
    }
    divided.reports[rank] = attention->last_step();
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  return divided;
}

TEST(DividedAttentionTest, SameBitsAsOnOneRank) {
  for (const DividedProblem& problem : std::vector<DividedProblem>{
           {.begun = {0}, .added = {100}, .of_rank = {50, 50}},
           {.begun = {1000}, .added = {7}, .of_rank = {2, 3, 2}},
           {.begun = {1000}, .added = {70}, .of_rank = {0, 69, 1, 0}},                      // none here and there
           {.begun = {300}, .added = {40}, .of_rank = {10, 20, 10}, .weights = {1, 0, 3}},  // no slots
           {.begun = {300, 0, 17}, .added = {40, 3, 60}, .of_rank = {30, 40, 33}},          // a batch
           {.begun = {5, 6, 7, 8}, .added = {1, 1, 1, 1}, .of_rank = {1, 1, 1, 1}},         // each one token
           {.begun = {500, 20}, .added = {60, 60}, .of_rank = {60, 60}, .window = 40}}) {
    const std::vector<float> wanted = OnOneRank(problem);
    for (const char* strategy : {"tree", "ring"}) {
      DividedProblem divided = problem;
      divided.strategy = strategy;
      EXPECT_TRUE(SameBits(OnRanks(divided).output, wanted))
          << fmt::format("{} sequences on {} ranks, {}", problem.begun.size(), problem.of_rank.size(), strategy);
    }
  }
}

// Few queries of a long context travel themselves; of many, keys and values do.
TEST(DividedAttentionTest, WhatTravelsIsTheLess) {
  for (const StepReport& report : OnRanks({.begun = {2000}, .added = {8}, .of_rank = {4, 4}}).reports) {
    EXPECT_EQ(report.schedule, "pass-q");
  }
  for (const StepReport& report : OnRanks({.begun = {0}, .added = {320}, .of_rank = {160, 160}}).reports) {
    EXPECT_EQ(report.schedule, "pass-kv");
  }
  const Divided ring = OnRanks({.begun = {2000}, .added = {8}, .of_rank = {4, 4}, .strategy = "ring"});
  EXPECT_EQ(ring.reports[0].schedule, "ring");
}

// Queries to the other rank and states back, of 4 tokens each way; keys and values to the owner of their slot.
TEST(DividedAttentionTest, PassingQueriesSendsQueriesStatesAndNewTokens) {
  const Divided divided = OnRanks({.begun = {2000}, .added = {8}, .of_rank = {4, 4}});
  constexpr int64_t kQueries = 4 * kStepQFloats * 4;
  constexpr int64_t kStates = 4 * kHeads * (kHeadDim + 2) * 4;
  // Tokens 2000 to 2007 are in one chunk, so that one rank owns them all and gets the other's four.
  constexpr int64_t kTokens = 4 * 2 * kStepKvFloats * 4;
  const int64_t sent = divided.reports[0].bytes_sent + divided.reports[1].bytes_sent;
  EXPECT_EQ(sent, 2 * (kQueries + kStates) + kTokens);
}

}  // namespace
}  // namespace pando
