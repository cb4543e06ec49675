// The strategies that lean on what MPI itself does, between processes: the collectives of `allreduce` and `paper`, and
// the many messages of a ring. Every rank runs the same tests.
//
//   mpirun -n 4 mpi_strategies_test
#include <gtest/gtest.h>
#include <unistd.h>

#include <iostream>
#include <memory>

#include "src/attention/allreduce_merge.h"
#include "src/attention/baselines/paper_merge.h"
#include "src/attention/baselines/ring_attention.h"
#include "src/attention/testing/sharded_case.h"
#include "src/reduction/slot_ownership.h"
#include "src/transport/mpi/mpi_transport.h"

namespace pando {
namespace {

using test_support::CaseOptions;
using test_support::IdentityOrder;
using test_support::ReversedOrder;
using test_support::ShardedCase;
using test_support::UnevenRanges;

Transport* transport = nullptr;

// Calls function(problem, group) for several problems and orders of ranks.
template <typename Function>
void ForEachProblem(const Function& function) {
  const int num_ranks = transport->size();
  std::vector<std::vector<SlotRange>> ownerships = {EqualRanges(16, num_ranks).value()};
  if (num_ranks > 1) ownerships.push_back(UnevenRanges(16, num_ranks));
  for (const std::vector<SlotRange>& ownership : ownerships) {
    for (const CaseOptions& options :
         {CaseOptions{.lengths = {300, 5, 1000}}, CaseOptions{.head_dim = 24, .num_queries = 100},
          CaseOptions{.k_type = KvType::kQ8_0, .window = 100, .num_queries = 7}}) {
      const ShardedCase problem(options, ownership);
      for (const RankOrder& order : {IdentityOrder(num_ranks), ReversedOrder(num_ranks)}) {
        function(problem, RankGroup{*transport, order, problem.ownership()});
      }
    }
  }
}

ForestStates Forest(const ShardedCase& problem, const RankGroup& group, ThreadPool& pool, ShardAttention& attention) {
  ForestStates forest;
  EXPECT_TRUE(attention.Decode(problem.cache(group.position()), problem.blocks(), pool, forest).ok());
  return forest;
}

TEST(MpiStrategiesTest, AllreduceHasTheBitsOfOneRank) {
  ThreadPool pool(1);
  AllreduceMerge merge;
  ForEachProblem([&](const ShardedCase& problem, const RankGroup& group) {
    ShardAttention attention(problem.rule());
    const ForestStates forest = Forest(problem, group, pool, attention);
    AttentionStateSpan root;
    const uint64_t collectives_before = transport->traffic().mpi_collectives;
    const Status status = merge.Run(group, forest, problem.shape(), pool, root);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(problem.IsExpected(root));
    EXPECT_EQ(transport->traffic().mpi_collectives - collectives_before, 1u);
  });
}

TEST(MpiStrategiesTest, PaperIsThreeCollectivesOnTheSameOutputs) {
  ThreadPool pool(1);
  PaperMerge merge;
  ForEachProblem([&](const ShardedCase& problem, const RankGroup& group) {
    ShardAttention attention(problem.rule());
    const ForestStates forest = Forest(problem, group, pool, attention);
    AttentionStateSpan root;
    const uint64_t collectives_before = transport->traffic().mpi_collectives;
    const Status status = merge.Run(group, forest, problem.shape(), pool, root);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(transport->traffic().mpi_collectives - collectives_before, 3u);
    const AttentionStateSpan wanted = problem.expected();
    for (size_t row = 0; row < root.rows; ++row) {
      for (size_t j = 0; j < root.head_dim; ++j) {
        // The unit test derives a bound; this is a little above it.
        ASSERT_NEAR(root.acc(row)[j] / root.sum(row), wanted.acc(row)[j] / wanted.sum(row), 1e-4);
      }
    }
  });
}

TEST(MpiStrategiesTest, RingHasTheBitsOfOneRank) {
  ThreadPool pool(1);
  ForEachProblem([&](const ShardedCase& problem, const RankGroup& group) {
    RingAttention ring(problem.rule());
    const KvCache& cache = problem.cache(group.position());
    AttentionStateSpan root;
    const uint64_t bytes_before = transport->traffic().bytes_sent;
    Status status = ring.Decode(group, cache, problem.blocks(), pool, root);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(problem.IsExpected(root)) << "decode";
    EXPECT_EQ((transport->traffic().bytes_sent - bytes_before) % cache.page_bytes(), 0u);
    if (problem.blocks().size() != 1) return;
    status = ring.Prefill(group, cache, problem.blocks().front(), pool, root);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(problem.IsExpected(root)) << "prefill";
  });
}

// Messages beyond what MPI sends at once.
TEST(MpiStrategiesTest, RingOfLargeShards) {
  const int num_ranks = transport->size();
  const ShardedCase problem({.head_dim = 128, .num_heads = 8, .num_kv_heads = 4, .lengths = {1024}},
                            EqualRanges(16, num_ranks).value());
  const RankOrder order = IdentityOrder(num_ranks);
  ThreadPool pool(1);
  RingAttention ring(problem.rule());
  AttentionStateSpan root;
  for (int i = 0; i < 3; ++i) {
    const Status status = ring.Decode({*transport, order, problem.ownership()}, problem.cache(transport->rank()),
                                      problem.blocks(), pool, root);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(problem.IsExpected(root));
  }
}

// What ranks other than 0 have to say: what went wrong.
class FailurePrinter : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::cerr << "rank " << transport->rank() << ": " << result.message() << std::endl;
  }
};

}  // namespace
}  // namespace pando

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const pando::MpiOptions options{.timeout = std::chrono::seconds(60), .on_stuck = [](const std::string& sentence) {
                                    std::cerr << sentence << std::endl;
                                    _exit(1);
                                  }};
  pando::Result<std::unique_ptr<pando::Transport>> created = pando::CreateMpiTransport(options);
  if (!created.ok()) {
    std::cerr << created.status().message() << std::endl;
    return 1;
  }
  pando::transport = created->get();
  if (pando::transport->rank() != 0) {
    ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new pando::FailurePrinter);
  }
  return RUN_ALL_TESTS();
}
