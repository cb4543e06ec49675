#include "src/transport/inproc/inproc_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "src/base/clock.h"
#include "src/transport/testing/transport_cases.h"

namespace pando {
namespace {

using test_support::TransportCase;
using test_support::TransportCases;
using ::testing::HasSubstr;

std::vector<std::unique_ptr<Transport>> Group(int num_ranks, std::chrono::milliseconds timeout) {
  Result<std::vector<std::unique_ptr<Transport>>> group = CreateInprocGroup(num_ranks, {.timeout = timeout});
  EXPECT_TRUE(group.ok()) << group.status().message();
  return std::move(group).value();
}

// Runs `rank_main` as every rank, and destroys a rank's transport when it returns.
template <typename Function>
void RunRanks(int num_ranks, std::chrono::milliseconds timeout, Function rank_main) {
  std::vector<std::unique_ptr<Transport>> ranks = Group(num_ranks, timeout);
  std::vector<std::thread> threads;
  for (std::unique_ptr<Transport>& rank : ranks) {
    threads.emplace_back([transport = std::move(rank), &rank_main]() mutable {
      rank_main(*transport);
      transport.reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

constexpr std::chrono::seconds kLong{60};

class InprocCaseTest : public ::testing::TestWithParam<std::tuple<TransportCase, int>> {};

TEST_P(InprocCaseTest, Holds) {
  const auto& [test_case, num_ranks] = GetParam();
  RunRanks(num_ranks, kLong, test_case.run);
}

INSTANTIATE_TEST_SUITE_P(Ranks, InprocCaseTest,
                         ::testing::Combine(::testing::ValuesIn(TransportCases().begin(), TransportCases().end()),
                                            ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 64)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_" +
                                  std::to_string(std::get<1>(test.param));
                         });

TEST(InprocGroupTest, RefusesGroupsOfNobody) {
  EXPECT_EQ(CreateInprocGroup(0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(CreateInprocGroup(-3).status().message(), HasSubstr("-3"));
  EXPECT_EQ(CreateInprocGroup(kMaxInprocRanks + 1).status().code(), StatusCode::kInvalidArgument);
}

TEST(InprocGroupTest, KnowsItsRanks) {
  const std::vector<std::unique_ptr<Transport>> ranks = Group(3, kLong);
  ASSERT_EQ(ranks.size(), 3u);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ranks[rank]->rank(), rank);
    EXPECT_EQ(ranks[rank]->size(), 3);
    EXPECT_EQ(ranks[rank]->name(), "inproc");
    EXPECT_EQ(ranks[rank]->node_of_rank(), std::vector<int>({0, 0, 0}));
    EXPECT_EQ(ranks[rank]->process_of_rank(), std::vector<int>({0, 0, 0}));
  }
}

TEST(InprocGroupTest, DeadlineNamesTheRankAndTheTime) {
  const std::vector<std::unique_ptr<Transport>> ranks = Group(4, std::chrono::milliseconds(200));
  std::byte byte{};
  const double start = NowSeconds();
  const Status status = ranks[0]->Receive(2, {&byte, 1});
  EXPECT_GE(NowSeconds() - start, 0.2);
  EXPECT_EQ(status.code(), StatusCode::kFailed);
  EXPECT_THAT(status.message(), HasSubstr("rank 0 waited 0.2 s for rank 2"));
  // The order of messages is lost: the same answer from now on, at once.
  EXPECT_EQ(ranks[0]->Barrier().message(), status.message());
  EXPECT_EQ(ranks[0]->Send(1, {}).message(), status.message());
  std::vector<float> one(1);
  EXPECT_EQ(ranks[0]->AllReduceSum(one).message(), status.message());
}

TEST(InprocGroupTest, DeadlineNamesAllRanksThatDidNotCome) {
  const std::vector<std::unique_ptr<Transport>> ranks = Group(4, std::chrono::milliseconds(100));
  std::vector<std::byte> all(4);
  std::thread rank1([&] { EXPECT_TRUE(ranks[1]->Send(0, std::span(all).first(1)).ok()); });
  std::vector<std::byte> gathered(4);
  const Status status = ranks[0]->Gather(0, std::span(all).first(1), gathered);
  rank1.join();
  EXPECT_THAT(status.message(), HasSubstr("for ranks 2 and 3"));
}

TEST(InprocGroupTest, OtherRanksLearnWhyOneGaveUp) {
  std::vector<std::unique_ptr<Transport>> ranks = Group(3, std::chrono::milliseconds(300));
  std::byte byte{};
  Status of_rank1;
  // Rank 2 never comes; rank 0 waits for rank 1, which waits for rank 2.
  std::thread rank1([&] { of_rank1 = ranks[1]->Receive(2, {&byte, 1}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const Status of_rank0 = ranks[0]->Send(1, {&byte, 1});
  rank1.join();
  EXPECT_THAT(of_rank1.message(), HasSubstr("rank 1 waited 0.3 s for rank 2"));
  EXPECT_THAT(of_rank0.message(), HasSubstr("rank 0 waited for rank 1, which gave up: rank 1 waited 0.3 s for rank 2"));
}

// All learn of it, those too that wait for a rank that waits for it.
TEST(InprocGroupTest, RankThatEndsIsNamedAtOnce) {
  const double start = NowSeconds();
  RunRanks(8, std::chrono::seconds(20), [&](Transport& transport) {
    if (transport.rank() == 3) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // By then the others sleep.
      return;
    }
    EXPECT_THAT(transport.Barrier().message(), HasSubstr("waited for rank 3, which has ended"));
  });
  EXPECT_LT(NowSeconds() - start, 10);
}

TEST(InprocGroupTest, WhatARankSentBeforeItEndedArrives) {
  for (int round = 0; round < 200; ++round) {
    RunRanks(2, kLong, [](Transport& transport) {
      std::byte byte{7};
      if (transport.rank() == 0) {
        EXPECT_TRUE(transport.Send(1, {&byte, 1}).ok());
        return;
      }
      const Status status = transport.Receive(0, {&byte, 1});
      EXPECT_TRUE(status.ok()) << status.message();
    });
  }
}

TEST(InprocGroupTest, AnotherSizeNamesRanksAndBothSizesAndCopiesNothing) {
  for (const bool receiver_is_late : {false, true}) {
    RunRanks(2, kLong, [&](Transport& transport) {
      const std::vector<std::byte> source(16, std::byte{1});
      std::vector<std::byte> target(16);
      const bool is_receiver = transport.rank() == 1;
      if (is_receiver == receiver_is_late) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      const Status status = is_receiver ? transport.Receive(0, std::span(target).first(8)) : transport.Send(1, source);
      EXPECT_EQ(status.code(), StatusCode::kFailed);
      EXPECT_THAT(status.message(), HasSubstr("rank 0 sent 16 bytes to rank 1, which expected 8"));
      EXPECT_EQ(target, std::vector<std::byte>(16));
    });
  }
}

// After a failure the buffers are the caller's again: a rank that comes late must not write into them.
TEST(InprocGroupTest, LateRankDoesNotTouchWhatWasGivenUp) {
  std::vector<std::unique_ptr<Transport>> ranks = Group(2, std::chrono::milliseconds(50));
  std::vector<std::byte> target(100);
  std::vector<std::byte> source(100, std::byte{1});
  const ReceivePart receive{.from = 1, .data = target.data(), .bytes = target.size()};
  Result<Transfer> other = ranks[0]->Start({}, {&receive, 1});
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(ranks[0]->Exchange({}, {&receive, 1}).ok());
  EXPECT_FALSE(ranks[0]->Wait(*other).ok());
  EXPECT_THAT(ranks[1]->Send(0, source).message(), HasSubstr("rank 1 waited for rank 0, which gave up"));
  EXPECT_EQ(target, std::vector<std::byte>(100));
}

}  // namespace
}  // namespace pando
