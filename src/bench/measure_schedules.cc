#include "src/bench/measure_schedules.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "src/attention/row_results.h"
#include "src/attention/schedule_merge.h"
#include "src/base/aligned_buffer.h"
#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/base/thread_pool.h"
#include "src/ranks/rank_access.h"
#include "src/reduction/canonical_tree.h"

namespace pando {
namespace {

constexpr double kSecondsInAll = 0.5;
constexpr size_t kMostTurns = 21;
constexpr int kMergesInARow = 10;

// One rank's part of the measurement.
class ScheduleTimer {
 public:
  ScheduleTimer(Communicator& communicator, const std::vector<SlotRange>& ownership, const MessageShape& shape)
      : transport_(TransportOf(communicator)),
        merge_(transport_, OrderOf(communicator), ownership),
        slots_(merge_.group().slots_of(merge_.group().position())),
        num_rows_(static_cast<size_t>(shape.num_rows)),
        head_dim_(static_cast<size_t>(shape.head_dim)),
        pool_(1) {}

  Status Allocate() {
    const size_t result_floats = num_rows_ * (head_dim_ + 1);
    const size_t state_floats = ForestOf(slots_).size() * AttentionStateSpan::NumFloats(num_rows_, head_dim_);
    PANDO_RETURN_IF_ERROR(results_.Grow(result_floats * sizeof(float), "results of a merge"));
    return states_.Grow(state_floats * sizeof(float), "states to merge");
  }

  // This rank's seconds for one merge: several in a row, since ranks that share a core do not leave a barrier together.
  Result<double> Run(Schedule schedule) {
    float* output = results_.as<float>();
    const RowResults results = {
        .output = output, .energy = output + num_rows_ * head_dim_, .num_rows = num_rows_, .head_dim = head_dim_};
    PANDO_RETURN_IF_ERROR(transport_.Barrier());
    const double start = NowSeconds();
    for (int i = 0; i < kMergesInARow; ++i) {
      Status status = merge_.Run(schedule, MakeForest(), head_dim_, results, pool_);
      if (!status.ok()) return status;
    }
    return (NowSeconds() - start) / kMergesInARow;
  }

  // Rank 0's word for all.
  Result<bool> Agree(bool more) {
    auto word = static_cast<std::byte>(more ? 1 : 0);
    PANDO_RETURN_IF_ERROR(transport_.Broadcast(0, {&word, 1}));
    return word != std::byte{0};
  }

  // Of each entry of `seconds`, the largest of all ranks.
  Status TakeSlowest(std::vector<double>& seconds) {
    std::vector<double> all(seconds.size() * static_cast<size_t>(transport_.size()));
    Status status = transport_.AllGather(std::as_bytes(std::span(seconds)), std::as_writable_bytes(std::span(all)));
    if (!status.ok()) return status;
    for (size_t i = 0; i < all.size(); ++i) {
      double& slowest = seconds[i % seconds.size()];
      slowest = std::max(slowest, all[i]);
    }
    return Status();
  }

 private:
  // Made anew, since a merge uses its states up. Any finite values do.
  ForestStates MakeForest() {
    ForestStates forest;
    forest.subtrees = ForestOf(slots_);
    const size_t num_floats = AttentionStateSpan::NumFloats(num_rows_, head_dim_);
    for (size_t i = 0; i < forest.subtrees.size(); ++i) {
      forest.states[i] = {.data = states_.as<float>() + i * num_floats, .rows = num_rows_, .head_dim = head_dim_};
      std::fill_n(forest.states[i].data, num_floats, 1.0F);
    }
    return forest;
  }

  Transport& transport_;
  ScheduleMerge merge_;
  SlotRange slots_;
  size_t num_rows_;
  size_t head_dim_;
  ThreadPool pool_;
  AlignedBuffer states_;
  AlignedBuffer results_;
};

// seconds[turn * num_schedules + schedule].
std::vector<double> MediansOf(const std::vector<double>& seconds, size_t num_schedules) {
  std::vector<double> medians;
  for (size_t schedule = 0; schedule < num_schedules; ++schedule) {
    std::vector<double> of_one;
    for (size_t i = schedule; i < seconds.size(); i += num_schedules) of_one.push_back(seconds[i]);
    std::ranges::sort(of_one);
    medians.push_back(of_one[of_one.size() / 2]);
  }
  return medians;
}

}  // namespace

Result<std::vector<double>> MeasureSchedules(Communicator& communicator, const std::vector<SlotRange>& ownership,
                                             const MessageShape& shape, std::span<const Schedule> schedules) {
  ScheduleTimer timer(communicator, ownership, shape);
  PANDO_RETURN_IF_ERROR(timer.Allocate());
  const double start = NowSeconds();
  std::vector<double> seconds;
  // The first turn warms up.
  for (size_t turn = 0; turn <= kMostTurns; ++turn) {
    PANDO_ASSIGN_OR_RETURN(const bool more, timer.Agree(turn < 2 || NowSeconds() - start < kSecondsInAll));
    if (!more) break;
    if (turn == 1) seconds.clear();
    for (const Schedule schedule : schedules) {
      PANDO_ASSIGN_OR_RETURN(const double one, timer.Run(schedule));
      seconds.push_back(one);
    }
  }
  PANDO_RETURN_IF_ERROR(timer.TakeSlowest(seconds));
  return MediansOf(seconds, schedules.size());
}

}  // namespace pando
