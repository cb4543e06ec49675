#include "src/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "src/base/errors.h"
#include "src/base/testing/allocation_counter.h"
#include "src/base/testing/bits.h"
#include "src/engine/testing/tiny_engine.h"
#include "src/kv_cache/testing/temporary_folder.h"

namespace pando {
namespace {

using test_support::kVocabulary;
using test_support::RandomPrompt;
using test_support::RunOn;
using test_support::SameBits;
using test_support::SmallSteps;
using test_support::TemporaryFolder;
using test_support::Tiny;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The logits of the last of `tokens`, which go to a new sequence in one step.
Status LastLogits(Engine& engine, std::span<const int32_t> tokens, std::vector<float>& logits) {
  const Result<int64_t> sequence = engine.AddSequence();
  if (!sequence.ok()) return sequence.status();
  logits.resize(kVocabulary);
  const SequenceTokens part = {*sequence, tokens};
  return engine.Step({&part, 1}, std::array{tokens.size() - 1}, logits);
}

TEST(EngineTest, RanksDoWhatTheFrontSays) {
  const std::vector<int32_t> prompt = RandomPrompt(30, kVocabulary, 1);
  std::vector<float> alone;
  ASSERT_TRUE(RunOn(1, [&](Engine& engine) { return LastLogits(engine, prompt, alone); }).ok());
  for (const int64_t num_ranks : {2, 3, 5, 8}) {
    std::atomic<int> num_fronts = 0;
    std::vector<float> logits;
    const Status status = RunOn(num_ranks, [&](Engine& engine) {
      ++num_fronts;
      EXPECT_EQ(engine.communicator().rank(), 0);
      return LastLogits(engine, prompt, logits);
    });
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(num_fronts, 1);
    EXPECT_TRUE(SameBits(logits, alone)) << num_ranks;
  }
}

// Commands beyond one message: a long step, and one with many parts and many wanted logits.
TEST(EngineTest, LongCommandsArriveWhole) {
  const std::vector<int32_t> prompt = RandomPrompt(400, kVocabulary, 2);
  const auto all_logits = [&](int64_t num_ranks, bool in_one_step) {
    std::vector<float> logits(prompt.size() * kVocabulary);
    const Status status = RunOn(
        num_ranks,
        [&](Engine& engine) -> Status {
          const Result<int64_t> sequence = engine.AddSequence();
          if (!sequence.ok()) return sequence.status();
          const size_t step = in_one_step ? prompt.size() : 1;
          std::vector<size_t> wanted(step);
          for (size_t i = 0; i < step; ++i) wanted[i] = i;
          for (size_t first = 0; first < prompt.size(); first += step) {
            const SequenceTokens part = {*sequence, std::span(prompt).subspan(first, step)};
            const std::span<float> out = std::span(logits).subspan(first * kVocabulary, step * kVocabulary);
            if (Status done = engine.Step({&part, 1}, wanted, out); !done.ok()) return done;
          }
          EXPECT_EQ(engine.NumTokens(*sequence), 400);
          return Status();
        },
        SmallSteps(512));
    EXPECT_TRUE(status.ok()) << status.message();
    return logits;
  };
  const std::vector<float> one_by_one = all_logits(1, false);
  EXPECT_TRUE(SameBits(all_logits(3, true), one_by_one));
}

TEST(EngineTest, ManySequencesInOneStep) {
  constexpr size_t kSequences = 40;
  const std::vector<int32_t> prompt = RandomPrompt(kSequences, kVocabulary, 3);
  std::vector<float> together(kSequences * kVocabulary);
  Status status = RunOn(
      2,
      [&](Engine& engine) -> Status {
        std::vector<SequenceTokens> batch;
        std::vector<size_t> wanted;
        for (size_t i = 0; i < kSequences; ++i) {
          batch.push_back({engine.AddSequence().value(), std::span(prompt).subspan(i, 1)});
          wanted.push_back(i);
        }
        return engine.Step(batch, wanted, together);
      },
      SmallSteps(64));
  ASSERT_TRUE(status.ok()) << status.message();
  for (size_t i = 0; i < kSequences; ++i) {
    std::vector<float> alone;
    status = RunOn(1, [&](Engine& engine) { return LastLogits(engine, std::span(prompt).subspan(i, 1), alone); });
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(SameBits(alone, std::span(together).subspan(i * kVocabulary, kVocabulary))) << i;
  }
}

TEST(EngineTest, LogitsOfTheLastStepCanBeAskedAgain) {
  const std::vector<int32_t> prompt = RandomPrompt(9, kVocabulary, 4);
  std::vector<float> first;
  std::vector<float> again(2 * kVocabulary);
  const Status status = RunOn(2, [&](Engine& engine) -> Status {
    if (Status done = LastLogits(engine, prompt, first); !done.ok()) return done;
    return engine.Logits(std::array<size_t, 2>{0, 8}, again);
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(SameBits(std::span(again).subspan(kVocabulary), first));
  EXPECT_FALSE(SameBits(std::span(again).first(kVocabulary), first));
}

TEST(EngineTest, ForksGoOnByThemselves) {
  const std::vector<int32_t> prompt = RandomPrompt(21, kVocabulary, 5);
  std::vector<float> whole;
  ASSERT_TRUE(RunOn(1, [&](Engine& engine) { return LastLogits(engine, prompt, whole); }).ok());
  std::vector<float> forked(kVocabulary);
  const Status status = RunOn(3, [&](Engine& engine) -> Status {
    const int64_t parent = engine.AddSequence().value();
    const SequenceTokens start = {parent, std::span(prompt).first(20)};
    if (Status done = engine.Step({&start, 1}, {}, {}); !done.ok()) return done;
    const Result<int64_t> child = engine.ForkSequence(parent);
    if (!child.ok()) return child.status();
    const int32_t other = 7;
    const std::array<SequenceTokens, 2> both = {SequenceTokens{parent, {&other, 1}},
                                                SequenceTokens{*child, std::span(prompt).last(1)}};
    if (Status done = engine.Step(both, std::array<size_t, 1>{1}, forked); !done.ok()) return done;
    EXPECT_EQ(engine.NumTokens(*child), 21);
    return engine.RemoveSequence(parent);
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(SameBits(forked, whole));
}

// ---- Failures

// What the front asks for in vain is no reason for the workers to leave.
TEST(EngineTest, GoesOnAfterACallThatCannotBeDone) {
  const std::vector<int32_t> prompt = RandomPrompt(30, kVocabulary, 6);
  std::vector<float> alone;
  ASSERT_TRUE(RunOn(1, [&](Engine& engine) { return LastLogits(engine, prompt, alone); }).ok());
  for (const int64_t num_ranks : {1, 3}) {
    std::vector<float> logits;
    const Status status = RunOn(num_ranks, [&](Engine& engine) {
      const int64_t sequence = engine.AddSequence().value();
      const int32_t beyond = kVocabulary;
      const int32_t negative = -1;
      const std::array<size_t, 1> first = {0};
      std::vector<float> one(kVocabulary);
      const auto refused = [](const Status& done, const char* words) {
        EXPECT_EQ(done.code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(done.message(), HasSubstr(words));
      };
      const auto step = [&](std::vector<SequenceTokens> batch) { return engine.Step(batch, {}, {}); };
      refused(step({{sequence, {&beyond, 1}}}), "no token 101");
      refused(step({{sequence, {&negative, 1}}}), "no token -1");
      refused(step({{sequence + 9, prompt}}), "no sequence");
      refused(step({{sequence, std::span(prompt).first(0)}}), "no tokens");
      refused(step({}), "no tokens");
      refused(step({{sequence, std::span(prompt).first(3)}, {sequence, std::span(prompt).first(1)}}), "occurs twice");
      refused(step({{sequence, RandomPrompt(33, kVocabulary, 1)}}), "at most 32");
      const SequenceTokens part = {sequence, std::span(prompt).first(1)};
      refused(engine.Step({&part, 1}, std::array<size_t, 1>{1}, one), "token 1 of a step of 1");
      refused(engine.Step({&part, 1}, first, std::span(one).first(5)), "5 floats");
      refused(engine.Logits(first, one), "had 0 tokens");
      refused(engine.Logits(first, {}), "0 floats");
      refused(engine.ForkSequence(99).status(), "no sequence 99");
      refused(engine.RemoveSequence(99), "no sequence 99");
      refused(engine.SetStrategy("fastest"), "'fastest' is not a strategy");
      refused(engine.Load("/no/such/folder/session"), "/no/such/folder");
      refused(engine.Reserve(-1), "0 or more");
      EXPECT_FALSE(engine.Save("/no/such/folder/session").ok());
      EXPECT_EQ(engine.Reserve(int64_t{1} << 60).code(), StatusCode::kOutOfMemory);
      EXPECT_EQ(engine.NumTokens(sequence), 0);
      return LastLogits(engine, prompt, logits);
    });
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(SameBits(logits, alone)) << num_ranks;
  }
}

TEST(EngineTest, AnErrorOfTheFrontEndsTheWorkersWell) {
  std::array<Status, 3> of_rank;
  const Status status = RunInProcess(3, {}, [&](Communicator& communicator) {
    Status& mine = of_rank[static_cast<size_t>(communicator.rank())];
    mine = Engine::Run(communicator, Tiny(), SmallSteps(), [](Engine&) { return Failed("the disk is full"); });
    return mine;
  });
  EXPECT_EQ(status.message(), "the disk is full");
  EXPECT_TRUE(of_rank[1].ok());
  EXPECT_TRUE(of_rank[2].ok());
}

// A rank that is gone in the middle: all others are told, nobody hangs, and the engine stays ended.
TEST(EngineTest, ALostRankEndsAll) {
  const std::vector<int32_t> prompt = RandomPrompt(1, kVocabulary, 7);
  std::array<Status, 4> of_rank;
  const auto start = std::chrono::steady_clock::now();
  const Status status = RunInProcess(4, {.timeout = std::chrono::seconds(20)}, [&](Communicator& communicator) {
    Status& mine = of_rank[static_cast<size_t>(communicator.rank())];
    if (communicator.rank() == 2) {
      Result<std::unique_ptr<Transformer>> transformer = Transformer::Create(communicator, Tiny(), SmallSteps());
      if (!transformer.ok()) return transformer.status();
      return mine = Failed("a broken fan");
    }
    mine = Engine::Run(communicator, Tiny(), SmallSteps(), [&](Engine& engine) {
      const Result<int64_t> sequence = engine.AddSequence();
      if (!sequence.ok()) return sequence.status();
      const SequenceTokens part = {*sequence, prompt};
      Status done;
      for (int i = 0; i < 100 && done.ok(); ++i) done = engine.Step({&part, 1}, {}, {});
      EXPECT_FALSE(done.ok());
      EXPECT_EQ(engine.KeepAlive().message(), done.message()) << "every further call returns the same";
      return done;
    });
    return mine;
  });
  EXPECT_EQ(status.message(), "a broken fan");
  for (const int rank : {0, 1, 3}) {
    EXPECT_THAT(of_rank[static_cast<size_t>(rank)].message(), HasSubstr("rank 2")) << rank;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
}

TEST(EngineTest, KeepAliveBridgesAFrontThatWaits) {
  const auto wait = [](Engine& engine, bool keeps_alive) {
    for (int i = 0; i < 8; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (!keeps_alive) continue;
      if (Status status = engine.KeepAlive(); !status.ok()) return status;
    }
    return engine.AddSequence().status();
  };
  const std::chrono::milliseconds timeout(400);
  const Status kept = RunOn(
      3, [&](Engine& engine) { return wait(engine, true); }, SmallSteps(), timeout);
  EXPECT_TRUE(kept.ok()) << kept.message();
  const Status left = RunOn(
      3, [&](Engine& engine) { return wait(engine, false); }, SmallSteps(), timeout);
  EXPECT_THAT(left.message(), HasSubstr("rank"));
}

TEST(EngineTest, MoreRanksThanSlotsSaysWhatToRaise) {
  const Status status = RunOn(9, [](Engine&) { return Status(); });
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("9 ranks cannot share 8 slots"), HasSubstr("--slots) to 16")));
}

// ---- Reports, strategies, sessions

TEST(EngineTest, FiguresAreByRankAndSinceTheLast) {
  const std::vector<int32_t> prompt = RandomPrompt(32, kVocabulary, 8);
  const Status status = RunOn(3, [&](Engine& engine) -> Status {
    std::vector<float> logits;
    for (int i = 0; i < 4; ++i) {
      if (Status done = LastLogits(engine, prompt, logits); !done.ok()) return done;
    }
    const Result<std::vector<RankFigures>> figures = engine.TakeFigures();
    if (!figures.ok()) return figures.status();
    EXPECT_THAT(*figures, SizeIs(3));
    int64_t used = 0;
    for (const RankFigures& rank : *figures) {
      EXPECT_GT(rank.times.total_seconds, 0);
      EXPECT_GT(rank.times.gather_seconds, 0);
      EXPECT_LE(rank.times.attention_seconds + rank.times.merge_seconds + rank.times.gather_seconds,
                rank.times.total_seconds);
      used += rank.memory.used;
    }
    // 4 sequences, 2 layers, 2 chunks of 16 tokens, 2 KV heads of 16 dims, keys and values of 2 bytes.
    EXPECT_GE(used, 4 * 2 * 32 * 2 * 16 * 2 * 2);
    EXPECT_EQ(engine.TakeFigures()->front().times.total_seconds, 0);
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(EngineTest, AnotherStrategyGivesTheSameBits) {
  const std::vector<int32_t> prompt = RandomPrompt(30, kVocabulary, 9);
  const Status status = RunOn(4, [&](Engine& engine) -> Status {
    std::vector<float> first;
    if (Status done = LastLogits(engine, prompt, first); !done.ok()) return done;
    for (const char* strategy : {"direct", "ring", "butterfly"}) {
      if (Status done = engine.SetStrategy(strategy); !done.ok()) return done;
      std::vector<float> logits;
      if (Status done = LastLogits(engine, prompt, logits); !done.ok()) return done;
      EXPECT_EQ(engine.schedule(), strategy);
      EXPECT_TRUE(SameBits(logits, first)) << strategy;
    }
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(EngineTest, ASessionGoesOnOnAnotherNumberOfRanks) {
  const std::vector<int32_t> prompt = RandomPrompt(21, kVocabulary, 10);
  std::vector<float> whole;
  ASSERT_TRUE(RunOn(1, [&](Engine& engine) { return LastLogits(engine, prompt, whole); }).ok());
  const TemporaryFolder folder;
  Status status = RunOn(3, [&](Engine& engine) -> Status {
    const SequenceTokens part = {engine.AddSequence().value(), std::span(prompt).first(20)};
    if (Status done = engine.Step({&part, 1}, {}, {}); !done.ok()) return done;
    return engine.Save(folder.File("session"));
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(folder.NumFiles(), 3);
  std::vector<float> later(kVocabulary);
  status = RunOn(2, [&](Engine& engine) -> Status {
    if (Status done = engine.Load(folder.File("session")); !done.ok()) return done;
    EXPECT_EQ(engine.NumTokens(0), 20);
    const SequenceTokens part = {0, std::span(prompt).last(1)};
    return engine.Step({&part, 1}, std::array<size_t, 1>{0}, later);
  });
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(SameBits(later, whole));
}

// A rank that cannot write its part: no other part stays either, and what was saved before is still there.
TEST(EngineTest, ASessionIsSavedWholeOrNotAtAll) {
  const std::vector<int32_t> prompt = RandomPrompt(21, kVocabulary, 11);
  const TemporaryFolder folder;
  const Status status = RunOn(3, [&](Engine& engine) -> Status {
    const int64_t sequence = engine.AddSequence().value();
    const SequenceTokens part = {sequence, prompt};
    if (Status done = engine.Step({&part, 1}, {}, {}); !done.ok()) return done;
    if (Status done = engine.Save(folder.File("session")); !done.ok()) return done;
    // What rank 1 would write is a folder already.
    std::filesystem::create_directories(folder.File("session.1-of-3.new/in-the-way"));
    std::filesystem::create_directories(folder.File("other.1-of-3.new/in-the-way"));
    if (Status done = engine.Step({&part, 1}, {}, {}); !done.ok()) return done;
    EXPECT_THAT(engine.Save(folder.File("session")).message(), HasSubstr("rank 1"));
    EXPECT_FALSE(engine.Save(folder.File("other")).ok());
    EXPECT_EQ(folder.NumFiles(), 3 + 2);
    if (Status done = engine.Load(folder.File("session")); !done.ok()) return done;
    EXPECT_EQ(engine.NumTokens(sequence), 21);
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

// Once the ranks have tried how to divide a step, decoding allocates nothing: on no rank, in no thread.
TEST(EngineTest, DecodeStepsAllocateNothing) {
  for (const int64_t num_ranks : {1, 3}) {
    TransformerOptions options = SmallSteps();
    options.num_threads = 2;
    options.tree.chunk_tokens = 64;
    const Status status = RunOn(
        num_ranks,
        [&](Engine& engine) -> Status {
          const int64_t sequence = engine.AddSequence().value();
          const int32_t token = 5;
          const SequenceTokens part = {sequence, {&token, 1}};
          std::vector<float> logits(kVocabulary);
          size_t before = 0;
          for (int step = 0; step < 60; ++step) {
            if (step == 30) before = test_support::NumAllocations();
            if (Status done = engine.Step({&part, 1}, std::array<size_t, 1>{0}, logits); !done.ok()) return done;
          }
          // The workers of the last step may still be at its end, where they allocate nothing either.
          EXPECT_EQ(test_support::NumAllocations() - before, 0u) << num_ranks << " ranks";
          return Status();
        },
        options);
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

}  // namespace
}  // namespace pando
