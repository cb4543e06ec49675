// MergeEngine: carries out a schedule's plan. The ranks' forests go in, the finished rows come out on every rank; which
// message carries what is the plan's business (src/reduction/schedule.h), how it gets there the transport's.
//
//   MergeEngine engine(transport, order, ownership);
//   Status status = engine.Run(Schedule::kButterfly, forest, results, pool);      // on every rank at the same time
//
// Every schedule gives the same bits. A hop is one message per peer: all subtrees of a forest and all rows in one
// buffer. Nothing is allocated once the largest shape has been seen.
#ifndef PANDO_SRC_ATTENTION_MERGE_ENGINE_H_
#define PANDO_SRC_ATTENTION_MERGE_ENGINE_H_

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "pando/canonical_tree.h"
#include "pando/status.h"
#include "src/attention/row_results.h"
#include "src/attention/shard_attention.h"
#include "src/base/aligned_buffer.h"
#include "src/base/thread_pool.h"
#include "src/reduction/schedule.h"
#include "src/topology/rank_topology.h"
#include "src/transport/transport.h"

namespace pando {

class MergeEngine {
 public:
  // `ownership` is by position, as in the plans. Transport and order must outlive the engine.
  MergeEngine(Transport& transport, const RankOrder& order, std::vector<SlotRange> ownership);

  // Merges the ranks' forests, this rank's being `own` (its states are used up), into `results`. `schedule` has a plan.
  // All ranks call it with the same schedule, rows and head dim.
  Status Run(Schedule schedule, const ForestStates& own, const RowResults& results, ThreadPool& pool);

 private:
  // What this rank holds of some ranks' slots.
  struct Held {
    RankRange ranks;
    RowSpan rows;
    ForestStates forest;
  };

  const Plan& PlanOf(Schedule schedule);
  MessageShape Shape(const RowResults& results) const;
  Status Begin(const ForestStates& own, const RowResults& results);
  void Finish(const RowResults& results, ThreadPool& pool);
  Status RunRound(const Plan& plan, size_t round_idx, const RowResults& results, ThreadPool& pool);
  Status PostSends(const Plan& plan, const Round& round, const RowResults& results);
  Status PostReceives(const Plan& plan, const Round& round, const RowResults& results);
  // Where a round may receive: nothing that is held lies there.
  AlignedBuffer& FreeBuffer();
  // Whether the states held are the message: one subtree, all rows. A power of two of ranks never packs a forest.
  bool IsMessageAsItIs(const Plan& plan, const Move& move, const RowResults& results) const;
  void Pack(const Plan& plan, const Move& move, const RowResults& results, float* to) const;
  // Makes `held_` the join of itself and what the round brought.
  Status JoinReceived(const Plan& plan, const Round& round, size_t round_idx, const RowResults& results,
                      ThreadPool& pool);
  Status KeepRows(RowSpan rows, size_t round_idx);
  void StoreResults(const Plan& plan, const Round& round, const RowResults& results) const;

  Transport& transport_;
  const RankOrder& order_;
  const std::vector<SlotRange> ownership_;
  const int position_;
  std::map<Schedule, Plan> plans_;
  Held held_;

  // Scratch, kept between calls.
  AlignedBuffer begin_;
  AlignedBuffer sent_;
  std::vector<AlignedBuffer> received_;  // what is received is merged in place, and may be held for some rounds
  std::vector<AlignedBuffer> kept_;      // [round]
  std::vector<SendPart> sends_;
  std::vector<ReceivePart> receives_;
  std::vector<float*> received_at_;  // by move of the round's receives; null where nothing is sent
};

}  // namespace pando

#endif  // PANDO_SRC_ATTENTION_MERGE_ENGINE_H_
