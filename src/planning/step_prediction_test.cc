#include "src/planning/step_prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "src/planning/platform_file.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

// All rows are whole blocks for up to 4 ranks. A chunk of keys and values is 64 x 16 x 2 x 2 bytes for each of 2 heads
// in each of 2 layers.
constexpr double kChunkBytes = 16384;

ModelShape Small() {
  return {.name = "small",
          .num_layers = 2,
          .hidden_size = 64,
          .num_heads = 4,
          .num_kv_heads = 2,
          .head_dim = 16,
          .ffn_size = 128,
          .vocab_size = 256,
          .context_length = 4096,
          .weights = {.qkv = 200, .o = 100, .gate_up = 400, .down = 200, .vectors = 12, .embedding = 60, .output = 40}};
}

// A byte per second, a second per message, nothing else.
Machines OneNode(int num_ranks) {
  Machines machines = {.device = {.memory_bytes = 1e9, .memory_bytes_per_second = 1, .flops_per_second = 1e15}};
  for (int rank = 0; rank < num_ranks; ++rank) machines.topology.places.push_back({.process = rank});
  machines.topology.links.fill({.latency_seconds = 1, .bytes_per_second = 1e15});
  return machines;
}

// With one group unless the task says otherwise; which is by rows, since `Small` has less than a segment.
StepPrediction Predict(const Machines& machines, const ModelShape& model, StepTask task) {
  if (!task.num_groups) task.num_groups = 1;
  const Result<StepPrediction> step = PredictStep(machines, model, task);
  EXPECT_TRUE(step.ok()) << step.status().message();
  return step.ok() ? *step : StepPrediction{};
}

TEST(SlotsForTest, AreEnoughForTheRanks) {
  EXPECT_EQ(SlotsFor(1), 64);
  EXPECT_EQ(SlotsFor(64), 64);
  EXPECT_EQ(SlotsFor(65), 128);
  EXPECT_EQ(SlotsFor(1024), 1024);
}

TEST(PredictStepTest, OneRankReadsEverythingAndSendsNothing) {
  const StepPrediction step = Predict(OneNode(1), Small(), {.context_tokens = 65});
  EXPECT_DOUBLE_EQ(step.seconds.weights, 900 + 40);  // not the embedding, of which a token reads a row
  EXPECT_DOUBLE_EQ(step.seconds.kv, 2 * kChunkBytes);
  EXPECT_DOUBLE_EQ(step.seconds.merge, 0);
  EXPECT_DOUBLE_EQ(step.seconds.gather, 0);
  EXPECT_DOUBLE_EQ(step.seconds.total(), 940 + 2 * kChunkBytes);
  EXPECT_EQ(step.num_ranks, 1);
  EXPECT_EQ(step.num_nodes, 1);
  EXPECT_EQ(step.num_slots, 64);
}

TEST(PredictStepTest, ATiedEmbeddingIsReadForLogits) {
  ModelShape model = Small();
  model.weights.output = 0;
  EXPECT_DOUBLE_EQ(Predict(OneNode(1), model, {.context_tokens = 1}).seconds.weights, 900 + 60);
}

TEST(PredictStepTest, RanksShareRowsAndSlots) {
  const StepPrediction step = Predict(OneNode(2), Small(), {.context_tokens = 64 * 64});
  EXPECT_DOUBLE_EQ(step.seconds.weights, 450 + 20);
  EXPECT_DOUBLE_EQ(step.seconds.kv, 32 * kChunkBytes);
  EXPECT_NEAR(step.seconds.merge, 2 * 1, 1e-6);               // a message per layer
  EXPECT_NEAR(step.seconds.gather, 2 * 4 * 1 + 1 + 1, 1e-6);  // qkv, o, gate and up, down; logits; the command
  // A short context is shared as well: a chunk each, then two and one.
  EXPECT_DOUBLE_EQ(Predict(OneNode(2), Small(), {.context_tokens = 65}).seconds.kv, kChunkBytes);
  EXPECT_DOUBLE_EQ(Predict(OneNode(2), Small(), {.context_tokens = 129}).seconds.kv, 2 * kChunkBytes);
}

TEST(PredictStepTest, RanksBeyondTheBlocksOfRowsReadNoLess) {
  // 8 blocks of q, k and v, 4 of o and down, 8 of gate and up, 16 of the output.
  EXPECT_DOUBLE_EQ(Predict(OneNode(16), Small(), {.context_tokens = 1}).seconds.weights,
                   200.0 / 8 + 100.0 / 4 + 400.0 / 8 + 200.0 / 4 + 40.0 / 16);
}

TEST(PredictStepTest, EveryKernelIsLaunched) {
  Machines machines = OneNode(1);
  const StepSeconds before = Predict(machines, Small(), {.context_tokens = 1}).seconds;
  machines.device.launch_overhead_seconds = 10;
  const StepSeconds after = Predict(machines, Small(), {.context_tokens = 1}).seconds;
  EXPECT_DOUBLE_EQ(after.weights - before.weights, 10 * (2 * 4 + 1));
  EXPECT_DOUBLE_EQ(after.kv - before.kv, 10 * 2);
}

TEST(PredictStepTest, ABatchSharesWeightsAndHasItsOwnKeys) {
  Machines machines = OneNode(2);
  machines.topology.links.fill({.latency_seconds = 0, .bytes_per_second = 4});  // a second per float
  const StepPrediction one = Predict(machines, Small(), {.context_tokens = 4096});
  const StepPrediction three = Predict(machines, Small(), {.context_tokens = 4096, .batch = 3});
  EXPECT_DOUBLE_EQ(three.seconds.weights, one.seconds.weights);
  EXPECT_DOUBLE_EQ(three.seconds.kv, 3 * one.seconds.kv);
  EXPECT_DOUBLE_EQ(three.memory.kv, 3 * one.memory.kv);
  // A rank's half of the rows of qkv, o, gate and up, down in 2 layers, and of the logits; a command of 64 words.
  const double rows = 2 * (64 + 32 + 64 + 32) + 128;
  EXPECT_DOUBLE_EQ(one.seconds.gather, rows + 128);
  EXPECT_DOUBLE_EQ(three.seconds.gather, 3 * rows + 128);
  // Four words too many.
  EXPECT_DOUBLE_EQ(Predict(machines, Small(), {.context_tokens = 4096, .batch = 16}).seconds.gather,
                   16 * rows + 128 + 8);
  // Two states of 2 heads' rows each, or 4 heads of 18 floats: whichever way, not fewer floats than a state has.
  EXPECT_GT(three.seconds.merge, one.seconds.merge);
}

TEST(PredictStepTest, TheScheduleCanBeChosen) {
  // With a second per message and none per byte one hop is best.
  EXPECT_EQ(Predict(OneNode(8), Small(), {.context_tokens = 1}).schedule, Schedule::kDirect);
  const StepPrediction step = Predict(OneNode(8), Small(), {.context_tokens = 1, .schedule = Schedule::kButterfly});
  EXPECT_EQ(step.schedule, Schedule::kButterfly);
  EXPECT_NEAR(step.seconds.merge, 2 * 3, 1e-6);
}

TEST(PredictStepTest, AWindowBoundsWhatIsReadAndKept) {
  ModelShape model = Small();
  model.window = 128;
  const StepPrediction step = Predict(OneNode(1), model, {.context_tokens = 1 << 20});
  EXPECT_DOUBLE_EQ(step.seconds.kv, 3 * kChunkBytes);  // a window of two chunks touches three
  EXPECT_DOUBLE_EQ(step.memory.kv, 3 * kChunkBytes);
  EXPECT_DOUBLE_EQ(Predict(OneNode(1), model, {.context_tokens = 64}).seconds.kv, kChunkBytes);
}

TEST(PredictStepTest, KeysAndValuesTakeWhatTheirTypeDoes) {
  const StepTask f32 = {.context_tokens = 4096, .kv_type = KvType::kF32};
  EXPECT_DOUBLE_EQ(Predict(OneNode(1), Small(), f32).memory.kv, 2 * 64 * kChunkBytes);
}

TEST(PredictStepTest, MemoryIsRowsAndWholeEmbeddings) {
  const StepPrediction one = Predict(OneNode(1), Small(), {.context_tokens = 4096});
  EXPECT_DOUBLE_EQ(one.memory.weights, Small().weights.total());
  EXPECT_DOUBLE_EQ(one.memory.kv, 64 * kChunkBytes);
  Machines machines = OneNode(2);
  const StepPrediction two = Predict(machines, Small(), {.context_tokens = 4096});
  EXPECT_DOUBLE_EQ(two.memory.weights, 450 + 12 + 60 + 20);
  EXPECT_DOUBLE_EQ(two.memory.kv, 32 * kChunkBytes);
  EXPECT_DOUBLE_EQ(two.memory.total(), two.memory.weights + two.memory.kv + two.memory.states + two.memory.activations);
  machines.nodes_share_weights = true;
  EXPECT_DOUBLE_EQ(Predict(machines, Small(), {.context_tokens = 4096}).memory.weights, 450 + 12 + 30 + 20);
}

TEST(PredictMemoryTest, RanksOfANodeShareItsEmbeddings) {
  const auto weights = [](int num_ranks, int ranks_per_node) {
    return PredictMemory(Small(), {.context_tokens = 1}, num_ranks, ranks_per_node, /*nodes_share_weights=*/true)
        ->weights;
  };
  EXPECT_DOUBLE_EQ(weights(2, 1), 450 + 12 + 60 + 20);
  EXPECT_DOUBLE_EQ(weights(2, 8), 450 + 12 + 30 + 20);  // a node that is used in part
  EXPECT_DOUBLE_EQ(weights(4, 2), 225 + 12 + 30 + 10);
}

TEST(PredictStepTest, WorkIsThatOfAStepOfThePrompt) {
  // 512 tokens of: residual 64, projected 128, q, k, v and attended 192, in whose place inner has 128, and 3 times the
  // widest for a product; 2 states of 4 heads of 18. Logits of one token.
  const double activations = 64 + 128 + 192 + 3 * 128;
  const auto expect = [&](const RankMemory& memory, double num_tokens, double batch) {
    EXPECT_DOUBLE_EQ(memory.activations, 4 * (num_tokens * activations + batch * 256));
    EXPECT_DOUBLE_EQ(memory.states, 4 * num_tokens * 2 * 4 * 18);
  };
  expect(Predict(OneNode(1), Small(), {.context_tokens = 1}).memory, 512, 1);
  // Where 8 share a machine, a step has 256 tokens; a batch is a step of its own.
  expect(Predict(OneNode(8), Small(), {.context_tokens = 1}).memory, 256, 1);
  expect(Predict(OneNode(1), Small(), {.context_tokens = 1, .batch = 1000}).memory, 1000, 1000);
}

TEST(PredictStepTest, GroupsAreChosenByTimeAndMemory) {
  // Weights are read in 940 s by one rank, and in 235 by one of four; messages take no time worth mentioning, or all.
  Machines machines = OneNode(4);
  const auto step = [&](std::optional<int> num_groups = {}) {
    return PredictStep(machines, Small(), {.context_tokens = 4096, .num_groups = num_groups}).value();
  };
  EXPECT_EQ(step().division, kOneGroup);
  EXPECT_DOUBLE_EQ(step().seconds.total(), step(1).seconds.total());
  machines.topology.links.fill({.latency_seconds = 100, .bytes_per_second = 1e15, .send_overhead_seconds = 50});
  EXPECT_EQ(step().division.num_groups, 4);
  // Only the logits are shared; they and the command are all that travels.
  EXPECT_NEAR(step().seconds.weights, 900 + 10, 1e-6);
  EXPECT_NEAR(step().seconds.gather, 100 + 200, 1e-6);
  EXPECT_DOUBLE_EQ(step().one_group.total(), step(1).seconds.total());
  EXPECT_LT(step().seconds.total(), step(2).seconds.total());
  EXPECT_DOUBLE_EQ(step().memory.weights, 900 + 12 + 60 + 10);
  EXPECT_DOUBLE_EQ(step(2).memory.weights, 450 + 12 + 60 + 10);
  EXPECT_EQ(step(100).division.num_groups, 4);
  // What does not fit is not chosen, unless it is forced.
  machines.device.memory_bytes = (step(2).memory.total() + 1) / kUsableMemory;
  EXPECT_EQ(step().division.num_groups, 2);
  EXPECT_TRUE(step().fits);
  EXPECT_FALSE(step(4).fits);
  machines.device.memory_bytes = 1;
  EXPECT_EQ(step().division.num_groups, 1);
  EXPECT_FALSE(step().fits);
}

TEST(PredictStepTest, FitsIntoNineTenthsOfTheMemory) {
  Machines machines = OneNode(1);
  const StepTask task = {.context_tokens = 4096};
  const double needed = Predict(machines, Small(), task).memory.total();
  machines.device.memory_bytes = needed / 0.9 * 1.0001;
  EXPECT_TRUE(Predict(machines, Small(), task).fits);
  EXPECT_DOUBLE_EQ(Predict(machines, Small(), task).usable_bytes, 0.9 * machines.device.memory_bytes);
  machines.device.memory_bytes = needed / 0.9 * 0.9999;
  EXPECT_FALSE(Predict(machines, Small(), task).fits);
}

TEST(PredictStepTest, RefusesWhatTheCacheDoesNotTake) {
  ModelShape model = Small();
  model.head_dim = 12;
  EXPECT_THAT(PredictStep(OneNode(1), model, {.context_tokens = 1}).status().message(), HasSubstr("12"));
  EXPECT_EQ(PredictStep(OneNode(1025), Small(), {.context_tokens = 1}).status().message(),
            "a plan for 1025 ranks: it can be made for at most 1024");
}

TEST(PredictStepTest, AnEmptyContextIsRead) {
  const StepPrediction step = Predict(OneNode(3), Small(), {.context_tokens = 0});
  EXPECT_EQ(step.seconds.kv, 0);
  EXPECT_EQ(step.memory.kv, 0);
}

RC_GTEST_PROP(PredictStepTest, MoreContextNeverTakesLess, ()) {
  const Platform platform = FindPlatform(ShippedPlatforms()[*rc::gen::inRange<size_t>(0, 7)].name).value();
  const ModelShape model =
      FindModelShape(KnownModels()[*rc::gen::inRange<size_t>(0, 9)].name, WeightType::kQ4_K).value();
  const int num_ranks = *rc::gen::inRange(1, std::min(platform.max_ranks(), 33) + 1);
  const int64_t context = *rc::gen::inRange<int64_t>(0, 1 << 20);
  const Machines machines = MachinesOf(platform, num_ranks);
  const StepPrediction less = PredictStep(machines, model, {.context_tokens = context}).value();
  const StepPrediction more = PredictStep(machines, model, {.context_tokens = context + 10'000, .batch = 2}).value();
  RC_ASSERT(more.seconds.total() >= less.seconds.total());
  RC_ASSERT(more.memory.kv >= less.memory.kv);
  RC_ASSERT(less.fits || !more.fits);
  RC_ASSERT(!less.fits || less.seconds.total() <= less.one_group.total());
}

RC_GTEST_PROP(PredictStepTest, MoreMemoryNeverMakesTheChoiceSlower, ()) {
  Platform platform = FindPlatform(ShippedPlatforms()[*rc::gen::inRange<size_t>(0, 7)].name).value();
  const ModelShape model =
      FindModelShape(KnownModels()[*rc::gen::inRange<size_t>(0, 9)].name, WeightType::kQ8_0).value();
  const int num_ranks = *rc::gen::inRange(1, std::min(platform.max_ranks(), 33) + 1);
  const auto step = [&] {
    return PredictStep(MachinesOf(platform, num_ranks), model, {.context_tokens = 8192}).value();
  };
  double before = 0;
  for (const double memory_bytes : {1e12, 100e9, 30e9, 10e9, 3e9}) {
    platform.device.memory_bytes = memory_bytes;
    const StepPrediction less = step();
    if (!less.fits) break;
    RC_ASSERT(less.seconds.total() >= before);
    RC_ASSERT(less.memory.total() <= less.usable_bytes);
    before = less.seconds.total();
  }
}

}  // namespace
}  // namespace pando
