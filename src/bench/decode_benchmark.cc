#include "src/bench/decode_benchmark.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "pando/attention.h"
#include "src/attention/attention_options.h"
#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/base/fingerprint.h"
#include "src/base/memory.h"
#include "src/base/random.h"
#include "src/bench/decode_figures.h"
#include "src/bench/random_tokens.h"
#include "src/ranks/agreement.h"
#include "src/ranks/rank_access.h"
#include "src/reduction/choose_schedule.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

AttentionOptions ToAttentionOptions(const DecodeBenchmarkOptions& options) {
  AttentionOptions result;
  result.num_heads = options.num_heads;
  result.num_kv_heads = options.num_kv_heads;
  result.head_dim = options.head_dim;
  result.k_type = options.kv_type;
  result.v_type = options.kv_type;
  result.num_threads = options.num_threads;
  return result;
}

Status AtLeastOne(const char* what, int64_t value) {
  return value >= 1 ? Status() : InvalidArgument("{} is {}: it must be at least 1", what, value);
}

// What one rank knows of a strategy after measuring.
struct StrategyRun {
  std::string name;
  std::string schedule;
  int64_t repeats = 0;
  // Steps that make up a repeat, one right after the other. Ranks that share a core do not leave a barrier together:
  // over a single step, the slowest rank would seem as fast as it is after it has come late.
  int64_t steps = 1;
  std::vector<StepTimes> times;  // by repeat; of one step

  // As it travels.
  struct Tally {
    uint64_t messages = 0;
    uint64_t bytes = 0;
    uint64_t mpi_collectives = 0;
    int64_t kv_bytes = 0;
    uint64_t fingerprint = 0;
    int64_t num_changed = 0;  // steps whose bits differ from those of the first
  };
  Tally tally;
};

// One rank's end of the benchmark.
class DecodeBenchmark {
 public:
  static Result<DecodeBenchmark> Create(Communicator& communicator, const DecodeBenchmarkOptions& options) {
    PANDO_ASSIGN_OR_RETURN(Attention attention, Attention::Create(communicator, ToAttentionOptions(options)));
    return DecodeBenchmark(communicator, options, std::move(attention));
  }

  // Agreed on by all ranks.
  Status Fill() { return Agree(transport(), FillShard()); }

  // Every strategy once, unmeasured: buffers, plans, links. How long it takes decides on the repeats. One that seems
  // too slow for all of them is asked once more: getting its memory may have been most of it.
  Status WarmUp() {
    PANDO_RETURN_IF_ERROR(Estimate());
    return Estimate();
  }

  Status Measure() {
    for (int64_t round = 0; round < options_.repeats; ++round) {
      for (size_t i = 0; i < runs_.size(); ++i) {
        // Each round begins with another strategy: none has always the same one before it.
        StrategyRun& run = runs_[(i + static_cast<size_t>(round)) % runs_.size()];
        if (!IsMeasuredInRound(round, options_.repeats, run.repeats)) continue;
        PANDO_RETURN_IF_ERROR(Step(run));
      }
    }
    return Status();
  }

  Result<std::vector<DecodeBenchmarkRow>> Rows() {
    std::vector<DecodeBenchmarkRow> rows;
    for (const StrategyRun& run : runs_) {
      PANDO_ASSIGN_OR_RETURN(DecodeBenchmarkRow row, RowOf(run));
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  DecodeBenchmark(Communicator& communicator, const DecodeBenchmarkOptions& options, Attention attention)
      : communicator_(communicator), options_(options), attention_(std::move(attention)) {
    const size_t num_rows = static_cast<size_t>(options.batch * options.num_heads);
    queries_.resize(num_rows * static_cast<size_t>(options.head_dim));
    output_.resize(queries_.size());
    lse_.resize(num_rows);
    Random random(2);
    for (float& value : queries_) value = random.Normal();
    for (const std::string& name : options.strategies) runs_.push_back({.name = name});
  }

  Transport& transport() { return TransportOf(communicator_); }

  // One unmeasured step of the strategies that do not have all repeats yet, and their repeats by its time.
  Status Estimate() {
    std::vector<float> seconds(runs_.size());
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].repeats == options_.repeats) continue;
      PANDO_RETURN_IF_ERROR(Step(runs_[i]));
      seconds[i] = static_cast<float>(runs_[i].times.back().step_seconds);
      runs_[i].times.clear();
    }
    // The same on all ranks, as are the decisions.
    PANDO_RETURN_IF_ERROR(transport().AllReduceMax(seconds));
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].repeats == options_.repeats) continue;
      const double step_seconds = static_cast<double>(seconds[i]);
      runs_[i].repeats = RepeatsWithinBudget(options_.repeats, options_.budget_seconds, step_seconds);
      runs_[i].steps = StepsPerRepeat(step_seconds);
    }
    return Status();
  }

  Status FillShard() {
    const RandomTokens tokens(options_.num_kv_heads * options_.head_dim, options_.context);
    int64_t piece = 0;
    for (int64_t i = 0; i < options_.batch; ++i) {
      const int64_t sequence = attention_.AddSequence();
      sequences_.push_back({.sequence = sequence});
      PANDO_RETURN_IF_ERROR(attention_.Reserve(options_.context));
      for (int64_t left = options_.context; left > 0; left -= tokens.piece_tokens(), ++piece) {
        const int64_t count = std::min(left, tokens.piece_tokens());
        Status status =
            attention_.Append(/*layer=*/0, sequence, tokens.Keys(piece, count), tokens.Values(piece, count));
        if (!status.ok()) return status;
      }
    }
    return Status();
  }

  // One repeat.
  Status Step(StrategyRun& run) {
    const bool is_forced = run.name == "tree" && options_.schedule != "auto";
    PANDO_RETURN_IF_ERROR(attention_.SetStrategy(is_forced ? options_.schedule : run.name));
    PANDO_RETURN_IF_ERROR(communicator_.Barrier());
    const TrafficCounters before = transport().traffic();
    StepTimes times{};
    const double start = NowSeconds();
    for (int64_t step = 0; step < run.steps; ++step) {
      Status status = attention_.Decode(/*layer=*/0, sequences_, queries_, output_, lse_);
      if (!status.ok()) return status;
      times.compute_seconds += attention_.last_step().compute_seconds / static_cast<double>(run.steps);
      times.merge_seconds += attention_.last_step().merge_seconds / static_cast<double>(run.steps);
    }
    times.step_seconds = (NowSeconds() - start) / static_cast<double>(run.steps);
    run.times.push_back(times);
    run.schedule = attention_.last_step().schedule;
    Count(before, run);
    CountMemory(run);
    const uint64_t fingerprint = Fingerprint(lse_, Fingerprint(output_));
    if (run.tally.fingerprint == 0) run.tally.fingerprint = fingerprint;
    if (run.tally.fingerprint != fingerprint) ++run.tally.num_changed;
    return Status();
  }

  // Of the last repeat only: the first may have measured links. All its steps send the same.
  void Count(const TrafficCounters& before, StrategyRun& run) {
    const TrafficCounters& after = transport().traffic();
    const auto steps = static_cast<uint64_t>(run.steps);
    run.tally.mpi_collectives = (after.mpi_collectives - before.mpi_collectives) / steps;
    run.tally.messages = (after.messages_sent - before.messages_sent) / steps + run.tally.mpi_collectives;
    run.tally.bytes = (after.bytes_sent - before.bytes_sent + after.mpi_collective_operand_bytes -
                       before.mpi_collective_operand_bytes) /
                      steps;
  }

  void CountMemory(StrategyRun& run) const {
    const AttentionMemory memory = attention_.memory();
    // Ring's buffers stay when another strategy has its turn, which does not need them.
    run.tally.kv_bytes = memory.used + (run.name == kRingStrategy ? memory.buffers : 0);
  }

  template <typename T>
  Result<std::vector<T>> GatherAll(std::span<const T> mine) {
    std::vector<T> all(mine.size() * static_cast<size_t>(transport().size()));
    Status status = transport().AllGather(std::as_bytes(mine), std::as_writable_bytes(std::span(all)));
    if (!status.ok()) return status;
    return all;
  }

  Result<DecodeBenchmarkRow> RowOf(const StrategyRun& run) {
    const Result<std::vector<StrategyRun::Tally>> tallies = GatherAll(std::span(&run.tally, 1));
    if (!tallies.ok()) return tallies.status();
    PANDO_ASSIGN_OR_RETURN(const std::vector<StepTimes> times, GatherAll(std::span(run.times)));
    PANDO_RETURN_IF_ERROR(CheckBits(run, *tallies));
    const int64_t num_ranks = communicator_.size();
    DecodeBenchmarkRow row;
    row.strategy = run.name;
    row.schedule = run.schedule;
    row.num_ranks = num_ranks;
    row.context = options_.context;
    SummariseTimes(times, num_ranks, row);
    for (const StrategyRun::Tally& tally : *tallies) {
      row.messages_per_rank = std::max(row.messages_per_rank, static_cast<int64_t>(tally.messages));
      row.bytes_per_rank = std::max(row.bytes_per_rank, static_cast<int64_t>(tally.bytes));
      row.mpi_collectives = std::max(row.mpi_collectives, static_cast<int64_t>(tally.mpi_collectives));
      row.peak_kv_bytes = std::max(row.peak_kv_bytes, tally.kv_bytes);
    }
    const KvPageLayout layout = CacheOptionsOf(ToAttentionOptions(options_), {}).value().layout;
    row.formula_bytes_per_rank = FormulaBytesPerRank(options_, layout, run.name, num_ranks);
    row.fingerprint = tallies->front().fingerprint;
    return row;
  }

  Status CheckBits(const StrategyRun& run, std::span<const StrategyRun::Tally> tallies) const {
    if (run.name == kPaperStrategy) return Status();
    for (size_t rank = 0; rank < tallies.size(); ++rank) {
      const StrategyRun::Tally& tally = tallies[rank];
      if (tally.num_changed > 0) {
        return Failed(
            "{} with {} tokens: {} of {} steps gave other bits on rank {} than the first: this is a bug in "
            "Pando",
            run.name, options_.context, tally.num_changed, run.times.size(), rank);
      }
      if (tally.fingerprint != tallies[0].fingerprint) {
        return Failed(
            "{} with {} tokens: rank {} has other bits ({:016x}) than rank 0 ({:016x}): this is a bug in "
            "Pando",
            run.name, options_.context, rank, tally.fingerprint, tallies[0].fingerprint);
      }
    }
    return Status();
  }

  Communicator& communicator_;
  DecodeBenchmarkOptions options_;
  Attention attention_;
  std::vector<SequenceQueries> sequences_;
  std::vector<float> queries_;  // [sequence][head][head_dim], as output_
  std::vector<float> output_;
  std::vector<float> lse_;  // [sequence][head]
  std::vector<StrategyRun> runs_;
};

// What all ranks on this rank's machine hold.
Result<double> KvBytesOnThisNode(Communicator& communicator, const DecodeBenchmarkOptions& options) {
  const AttentionOptions attention = ToAttentionOptions(options);
  PANDO_ASSIGN_OR_RETURN(const std::vector<SlotRange> ownership,
                         OwnershipOf(attention.tree.num_slots, OrderOf(communicator), {}));
  const std::vector<int>& nodes = TransportOf(communicator).node_of_rank();
  const int my_node = nodes[static_cast<size_t>(TransportOf(communicator).rank())];
  double bytes = 0;
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    if (nodes[rank] != my_node) continue;
    const SlotRange slots = ownership[static_cast<size_t>(OrderOf(communicator).position_of[rank])];
    PANDO_ASSIGN_OR_RETURN(const KvCacheOptions cache, CacheOptionsOf(attention, slots));
    bytes += ShardKvBytes(cache, options.context, options.batch);
  }
  return bytes * static_cast<double>(NumShardsHeld(options.strategies, TransportOf(communicator).size()));
}

Status CheckThisNode(Communicator& communicator, const DecodeBenchmarkOptions& options) {
  PANDO_ASSIGN_OR_RETURN(const double needed, KvBytesOnThisNode(communicator, options));
  const size_t available = AvailableMemoryBytes();
  if (needed <= static_cast<double>(available)) return Status();
  const bool has_ring = NumShardsHeld(options.strategies, TransportOf(communicator).size()) > 1;
  return OutOfMemory(
      "{} tokens on {} ranks need {:.1f} GiB for keys and values{} on a machine with {} free: use a "
      "shorter context{}",
      options.context, TransportOf(communicator).size(), needed / (1 << 30), has_ring ? " with ring's buffers" : "",
      FormatBytes(available), has_ring ? ", or leave out ring" : "");
}

}  // namespace

Status ValidateDecodeBenchmark(const DecodeBenchmarkOptions& options, int64_t num_ranks) {
  PANDO_RETURN_IF_ERROR(AtLeastOne("the context", options.context));
  PANDO_RETURN_IF_ERROR(AtLeastOne("the batch", options.batch));
  PANDO_RETURN_IF_ERROR(AtLeastOne("the number of repeats", options.repeats));
  if (options.strategies.empty()) return InvalidArgument("there are no strategies to measure: name at least one");
  for (const std::string& name : options.strategies) {
    PANDO_RETURN_IF_ERROR(ParseStrategy(name).status());
  }
  PANDO_ASSIGN_OR_RETURN(const std::optional<Schedule> schedule, ParseScheduleOrAuto(options.schedule));
  if (schedule.has_value() && *schedule == Schedule::kPaper) {
    return InvalidArgument(
        "the schedule of tree is paper, which has other bits: it must be auto or another; paper is a strategy of its "
        "own");
  }
  const AttentionOptions attention = ToAttentionOptions(options);
  PANDO_RETURN_IF_ERROR(CacheOptionsOf(attention, {}).status());
  return EqualRanges(attention.tree.num_slots, num_ranks).status();
}

Status CheckDecodeMemory(Communicator& communicator, const DecodeBenchmarkOptions& options) {
  return Agree(TransportOf(communicator), CheckThisNode(communicator, options));
}

Result<std::vector<DecodeBenchmarkRow>> RunDecodeBenchmark(
    Communicator& communicator, const DecodeBenchmarkOptions& options,
    const std::function<void(std::string_view what)>& on_progress) {
  PANDO_RETURN_IF_ERROR(ValidateDecodeBenchmark(options, communicator.size()));
  const auto report = [&](std::string_view what) {
    if (on_progress) on_progress(what);
  };
  PANDO_ASSIGN_OR_RETURN(DecodeBenchmark benchmark, DecodeBenchmark::Create(communicator, options));
  report("filling the cache");
  PANDO_RETURN_IF_ERROR(benchmark.Fill());
  report("warming up");
  PANDO_RETURN_IF_ERROR(benchmark.WarmUp());
  report("measuring");
  PANDO_RETURN_IF_ERROR(benchmark.Measure());
  return benchmark.Rows();
}

}  // namespace pando
