#include "src/planning/division_cost.h"

#include <gtest/gtest.h>

#include <vector>

#include "src/planning/choose_division.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

// 8 blocks of 256 rows are the inner ones, 8 of 16 the others. A layer has 1000 bytes.
ModelShape EightBlocks() {
  return {.num_layers = 1,
          .hidden_size = 128,
          .num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 16,
          .ffn_size = 2048,
          .vocab_size = 256,
          .weights = {.qkv = 200, .o = 100, .gate_up = 400, .down = 300, .vectors = 12, .embedding = 60, .output = 40}};
}

// Nodes of one rank. A second per message of any size.
CostModel SlowLinks(int num_ranks) {
  CostModel costs;
  for (int rank = 0; rank < num_ranks; ++rank) costs.topology.places.push_back({.node = rank});
  costs.topology.links.fill({.latency_seconds = 1, .bytes_per_second = 1e15});
  costs.order = OrderRanks(costs.topology);
  costs.ownership = EqualRanges(64, num_ranks).value();
  return costs;
}

// A second per float.
CostModel NarrowLinks(int num_ranks) {
  CostModel costs = SlowLinks(num_ranks);
  costs.topology.links.fill({.latency_seconds = 0, .bytes_per_second = 4});
  costs.topology.has_own_links = true;
  return costs;
}

constexpr DeviceModel kByteASecond = {.memory_bytes = 1e9, .memory_bytes_per_second = 1, .flops_per_second = 1e15};
constexpr DeviceModel kFlopASecond = {.memory_bytes = 1e9, .memory_bytes_per_second = 1e15, .flops_per_second = 1};

StepSeconds SecondsOf(const CostModel& costs, const DeviceModel& device, const StepWork& work,
                      const StepDivision& division, const ModelShape& model = EightBlocks()) {
  DivisionOptions options = {
      .rule = {.num_groups = division.num_groups, .divides_tokens = division.divides_tokens, .down = division.down}};
  options.merging.schedule = Schedule::kButterfly;
  return ChooseDivision(costs, device, model, work, options).value().seconds;
}

// Of the rank that has most.
double KvChunksOfRank(int64_t num_tokens, int num_ranks) {
  const KvShape one = {.num_kv_heads = 1, .head_dim = 16};
  const auto bytes = [&](int64_t tokens, int ranks) {
    return static_cast<double>(MemoryOfContext(one, KvType::kF16, {}, tokens, ranks)->largest_rank_bytes);
  };
  return bytes(num_tokens, num_ranks) / bytes(1, 1);
}

TEST(LargestRowsTest, IsWholeBlocks) {
  EXPECT_EQ(LargestRows(64, 1), 64);
  EXPECT_EQ(LargestRows(64, 2), 32);
  EXPECT_EQ(LargestRows(64, 3), 32);  // 1, 1 and 2 blocks
  EXPECT_EQ(LargestRows(64, 4), 16);
  EXPECT_EQ(LargestRows(64, 1000), 16);
  EXPECT_EQ(LargestRows(10, 1), 10);
  EXPECT_EQ(LargestRows(10, 3), 10);
  EXPECT_EQ(LargestRows(40, 2), 32);  // 1 block and 2
}

TEST(LargestWeightsTest, MembersShareLayersAndAllRanksTheOutput) {
  const WeightBytes bytes = LargestWeights(EightBlocks(), 2, 8, DownDivision::kRows);
  EXPECT_DOUBLE_EQ(bytes.qkv + bytes.o + bytes.gate_up + bytes.down, 500);
  EXPECT_DOUBLE_EQ(bytes.output, 5);
  EXPECT_DOUBLE_EQ(bytes.embedding, 60);
  EXPECT_DOUBLE_EQ(LargestWeights(EightBlocks(), 1, 8, DownDivision::kColumnsInOneHop).layers(), 1012);
}

TEST(LargestWeightsTest, ByColumnsAreWholeSegments) {
  // Of 8 segments one of 3 members has 3.
  const WeightBytes columns = LargestWeights(EightBlocks(), 3, 3, DownDivision::kColumnsInTwoHops);
  EXPECT_DOUBLE_EQ(columns.gate_up, 400 * 3.0 / 8);
  EXPECT_DOUBLE_EQ(columns.down, 300 * 3.0 / 8);
  const WeightBytes rows = LargestWeights(EightBlocks(), 3, 3, DownDivision::kRows);
  EXPECT_DOUBLE_EQ(rows.gate_up, 400 * 43.0 / 128);
  EXPECT_DOUBLE_EQ(rows.down, 300 * 3.0 / 8);
}

TEST(DivisionCostsTest, DecodingGathersInsideGroups) {
  const CostModel costs = SlowLinks(8);
  const auto gather = [&](int num_groups, DownDivision down) {
    return SecondsOf(costs, kByteASecond, {.context_tokens = 64}, {num_groups, false, down}).gather;
  };
  // The command goes three hops, the logits one.
  constexpr double kEnds = 3 + 1;
  EXPECT_NEAR(gather(1, DownDivision::kRows), kEnds + 4, 1e-6);
  EXPECT_NEAR(gather(2, DownDivision::kRows), kEnds + 4, 1e-6);
  EXPECT_NEAR(gather(2, DownDivision::kColumnsInTwoHops), kEnds + 4, 1e-6);
  EXPECT_NEAR(gather(2, DownDivision::kColumnsInOneHop), kEnds + 3, 1e-6);
  EXPECT_NEAR(gather(8, DownDivision::kRows), kEnds, 1e-6);
}

TEST(DivisionCostsTest, DecodingSendsRowsOrPartialSums) {
  const CostModel costs = NarrowLinks(8);
  const auto gather = [&](int num_groups, DownDivision down, int64_t batch) {
    const StepWork work = {.num_sequences = batch, .context_tokens = 64, .num_logits = 0};
    return SecondsOf(costs, kByteASecond, work, {num_groups, false, down}).gather;
  };
  // A member of 4 sends 3 others 32 of 128 rows of q, k and v, 32 of o, ...
  const double ends = gather(8, DownDivision::kRows, 1);
  EXPECT_NEAR(gather(2, DownDivision::kRows, 1) - ends, 3 * (32 + 32 + 512 + 32), 1e-6);
  EXPECT_NEAR(gather(2, DownDivision::kColumnsInOneHop, 1) - ends, 3 * (32 + 32 + 128), 1e-6);
  EXPECT_NEAR(gather(2, DownDivision::kColumnsInTwoHops, 1) - ends, 3 * (32 + 32 + 32 + 32), 1e-6);
  EXPECT_NEAR(gather(2, DownDivision::kRows, 5) - gather(8, DownDivision::kRows, 5), 5 * 3 * (32 + 32 + 512 + 32),
              1e-6);
  // Groups of 1 and 2: those of 2 gather.
  EXPECT_NEAR(gather(5, DownDivision::kRows, 1) - ends, 64 + 64 + 1024 + 64, 1e-6);
}

TEST(DivisionCostsTest, PartialSumsAreAdded) {
  CostModel costs = SlowLinks(4);
  const StepWork work = {.context_tokens = 64};
  const double before = SecondsOf(costs, kByteASecond, work, {1, false, DownDivision::kColumnsInOneHop}).gather;
  costs.merge_seconds_per_byte = 0.25;
  EXPECT_NEAR(SecondsOf(costs, kByteASecond, work, {1, false, DownDivision::kColumnsInOneHop}).gather - before, 3 * 128,
              1e-6);
}

TEST(DivisionCostsTest, ManyTokensAreBoundByArithmetic) {
  const CostModel costs = SlowLinks(4);
  const StepWork work = {.tokens_per_sequence = 64, .context_tokens = 256, .num_logits = 0};
  // Two operations for each weight and token.
  const double weights = 128 * 128 + 128 * 64 + 3 * 128 * 2048;
  EXPECT_DOUBLE_EQ(SecondsOf(costs, kFlopASecond, work, kOneGroup).weights, 2 * 64 * weights / 4);
  EXPECT_DOUBLE_EQ(SecondsOf(costs, kFlopASecond, work, {4, false, DownDivision::kRows}).weights, 2 * 64 * weights);
  EXPECT_DOUBLE_EQ(SecondsOf(costs, kFlopASecond, work, {4, true, DownDivision::kRows}).weights, 2 * 16 * weights);
  EXPECT_DOUBLE_EQ(SecondsOf(costs, kFlopASecond, work, {2, true, DownDivision::kRows}).weights, 2 * 32 * weights / 2);
  // Logits are over all ranks.
  StepWork last = work;
  last.num_logits = 1;
  EXPECT_DOUBLE_EQ(SecondsOf(costs, kFlopASecond, last, {4, true, DownDivision::kRows}).weights,
                   2 * 16 * weights + 2 * 64 * 128);
}

TEST(DivisionCostsTest, AttentionIsOfAllQueriesOverOwnSlots) {
  // 256 tokens are 4 chunks, of which one of 4 ranks has all with slots dealt in order, or one.
  const CostModel costs = SlowLinks(1);
  const StepWork work = {.tokens_per_sequence = 64, .context_tokens = 256, .num_logits = 0};
  // The queries see 193 to 256 tokens.
  EXPECT_DOUBLE_EQ(SecondsOf(costs, kFlopASecond, work, kOneGroup).kv, 4 * 64 * 64 * 224.5);
  const StepWork decoding = {.num_sequences = 3, .context_tokens = 256, .num_logits = 0};
  EXPECT_DOUBLE_EQ(SecondsOf(costs, kFlopASecond, decoding, kOneGroup).kv, 4 * 64 * 3 * 256);
  EXPECT_DOUBLE_EQ(SecondsOf(costs, kByteASecond, decoding, kOneGroup).kv, 3 * 256 * 2 * 2 * 16 * 2);
  ModelShape windowed = EightBlocks();
  windowed.window = 32;
  EXPECT_DOUBLE_EQ(SecondsOf(costs, kFlopASecond, work, kOneGroup, windowed).kv, 4 * 64 * 64 * 32);
}

TEST(DivisionCostsTest, DividedTokensExchangeQueriesAndStates) {
  const CostModel costs = NarrowLinks(4);
  const DeviceModel fast = {.memory_bytes = 1e9, .memory_bytes_per_second = 1e15, .flops_per_second = 1e15};
  const StepWork work = {.tokens_per_sequence = 64, .context_tokens = 65536, .num_logits = 0};
  const StepSeconds seconds = SecondsOf(costs, fast, work, {4, true, DownDivision::kRows});
  // Of 16 tokens to each of 3 others: 64 rows of q, with k and v of the 4 that it keeps; states of 4 heads.
  EXPECT_NEAR(seconds.merge, 3 * (16 * 64 + 4 * 2 * 32) + 3 * (16 * 4 * 18), 1e-3);
  EXPECT_NEAR(seconds.hidden, 0, 1e-3);
  // In groups of 2 also what the members of a group need of each other: rows for 32 tokens, and outputs of 16.
  const double alone = seconds.gather;
  const StepSeconds pairs = SecondsOf(costs, fast, work, {2, true, DownDivision::kRows});
  EXPECT_NEAR(pairs.merge, seconds.merge, 1e-3);
  EXPECT_NEAR(pairs.gather - alone, 32 * (64 + 64 + 1024 + 64) + 16 * 64, 1e-3);
  // All but the queries travel while attention takes long, the last states of another's tokens included.
  const StepSeconds slow = SecondsOf(costs, kFlopASecond, work, {4, true, DownDivision::kRows});
  EXPECT_NEAR(slow.merge, 3 * (16 * 64 + 4 * 2 * 32), 1e-3);
  EXPECT_NEAR(slow.hidden, 3 * (16 * 4 * 18), 1e-3);
}

TEST(DivisionCostsTest, KeysAndValuesTravelWhereTheyAreFewer) {
  const CostModel costs = NarrowLinks(4);
  const DeviceModel fast = {.memory_bytes = 1e9, .memory_bytes_per_second = 1e15, .flops_per_second = 1e15};
  // 256 tokens are a chunk of 64 x 2 x 2 x 16 halves for each rank, which goes three hops. Before that, a rank's 16
  // keys and values go to who keeps them.
  const StepWork work = {.tokens_per_sequence = 64, .context_tokens = 256, .num_logits = 0};
  const double chunk = 64 * 2 * 2 * 16 * 2 / 4.0 * KvChunksOfRank(256, 4);
  EXPECT_NEAR(SecondsOf(costs, fast, work, {4, true, DownDivision::kRows}).merge, 3 * chunk + 16 * 2 * 32, 1e-3);
  const StepSeconds slow = SecondsOf(costs, kFlopASecond, work, {4, true, DownDivision::kRows});
  EXPECT_NEAR(slow.merge, 16 * 2 * 32, 1e-3);
  EXPECT_NEAR(slow.hidden, 3 * chunk, 1e-3);
}

TEST(DivisionCostsTest, DividedAttentionReadsAShardForEveryRunOfQueries) {
  CostModel costs = SlowLinks(4);
  DeviceModel device = kByteASecond;
  device.launch_overhead_seconds = 1e6;
  const StepWork prompt = {.tokens_per_sequence = 64, .context_tokens = 65536, .num_logits = 0};
  const double shard = 65536 / 4 * 2 * 2 * 16 * 2;
  const auto kv = [&](const StepWork& work, int num_groups) {
    return SecondsOf(costs, device, work, {num_groups, true, DownDivision::kRows}).kv;
  };
  // Each rank's tokens are early and late ones, or those of a half of a group.
  EXPECT_DOUBLE_EQ(kv(prompt, 4), 4 * 2 * (shard + 1e6));
  EXPECT_DOUBLE_EQ(kv(prompt, 2), 4 * (shard + 1e6));
  // Of many sequences a rank has some, all in one kernel.
  const StepWork batch = {.num_sequences = 64, .context_tokens = 65536, .num_logits = 0};
  EXPECT_DOUBLE_EQ(kv(batch, 4), 64 * shard + 4 * 1e6);
}

TEST(DivisionCostsTest, LogitsOfDividedTokensNeedTheirStatesEverywhere) {
  const CostModel costs = NarrowLinks(4);
  StepWork work = {.tokens_per_sequence = 64, .context_tokens = 4096, .num_logits = 0};
  const StepDivision division = {4, true, DownDivision::kRows};
  const double without = SecondsOf(costs, kByteASecond, work, division).gather;
  work.num_logits = 1;
  // 64 rows of 3 ranks, a state of 128 to 3 others; and a longer command.
  EXPECT_NEAR(SecondsOf(costs, kByteASecond, work, division).gather - without, 3 * 64 + 3 * 128 + 2 * 2, 2.1);
}

}  // namespace
}  // namespace pando
