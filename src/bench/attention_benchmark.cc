#include "src/bench/attention_benchmark.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/attention/attention_options.h"
#include "src/attention/shard_attention.h"
#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/base/random.h"
#include "src/base/statistics.h"
#include "src/kernels/machine_limits.h"

namespace pando {
namespace {

template <typename Work>
double Seconds(const Work& work) {
  const double start = NowSeconds();
  work();
  return NowSeconds() - start;
}

Status ValidateRun(const AttentionBenchmarkOptions& options) {
  const auto at_least_one = [](const char* what, int64_t value) {
    return value >= 1 ? Status() : InvalidArgument("{} is {}: it must be at least 1", what, value);
  };
  PANDO_RETURN_IF_ERROR(at_least_one("the context", options.context));
  PANDO_RETURN_IF_ERROR(at_least_one("the batch", options.batch));
  PANDO_RETURN_IF_ERROR(at_least_one("the number of threads", options.num_threads));
  return at_least_one("the number of repeats", options.repeats);
}

AttentionOptions ToAttentionOptions(const AttentionBenchmarkOptions& options) {
  AttentionOptions result;
  result.num_heads = options.num_heads;
  result.num_kv_heads = options.num_kv_heads;
  result.head_dim = options.head_dim;
  result.k_type = options.kv_type;
  result.v_type = options.kv_type;
  result.num_threads = options.num_threads;
  return result;
}

// A cache with `num_sequences` sequences of random tokens, and queries for `batch` of them.
class Workload {
 public:
  static Result<Workload> Create(const AttentionBenchmarkOptions& options, size_t min_bytes) {
    PANDO_RETURN_IF_ERROR(ValidateRun(options));
    const AttentionOptions attention = ToAttentionOptions(options);
    PANDO_ASSIGN_OR_RETURN(const KvCacheOptions cache_options,
                           CacheOptionsOf(attention, {0, attention.tree.num_slots}));
    PANDO_ASSIGN_OR_RETURN(KvCache cache, KvCache::Create(cache_options));
    Workload workload(options, std::move(cache));
    PANDO_RETURN_IF_ERROR(workload.Fill(min_bytes));
    return workload;
  }

  ThreadPool& pool() { return *pool_; }
  const AttentionRule& rule() const { return rule_; }
  const KvCache& cache() const { return cache_; }
  int64_t num_sets() const { return num_sets_; }

  // The `num_queries` last tokens of the batch's sequences, set by set in turn.
  std::span<const QueryBlock> NextSet(int64_t num_queries) {
    const int64_t first = next_set_++ % num_sets_ * options_.batch;
    for (int64_t i = 0; i < options_.batch; ++i) {
      const size_t block = static_cast<size_t>(i);
      blocks_[block] = {first + i, num_queries, options_.context - num_queries, queries_.as<float>()};
    }
    return blocks_;
  }

  Status MakeQueries(int64_t num_queries) {
    const size_t count = static_cast<size_t>(num_queries * options_.num_heads * options_.head_dim);
    PANDO_RETURN_IF_ERROR(queries_.Grow(count * sizeof(float), "the queries"));
    Random random(3);
    for (size_t i = 0; i < count; ++i) queries_.as<float>()[i] = random.Normal();
    return Status();
  }

  // Keys and values of one step.
  double StepBytes() const {
    const KvPageLayout& layout = cache_.options().layout;
    const double token_bytes = static_cast<double>(layout.head_bytes()) / static_cast<double>(layout.chunk_tokens);
    return static_cast<double>(options_.batch * options_.context * options_.num_kv_heads) * token_bytes;
  }

 private:
  Workload(const AttentionBenchmarkOptions& options, KvCache cache)
      : options_(options),
        rule_(RuleOf(ToAttentionOptions(options))),
        pool_(std::make_unique<ThreadPool>(static_cast<size_t>(options.num_threads))),
        cache_(std::move(cache)),
        blocks_(static_cast<size_t>(options.batch)) {}

  // As many sets of sequences as it takes to hold `min_bytes`, within reason: a context of a few tokens stays in the
  // cache.
  Status Fill(size_t min_bytes) {
    constexpr double kMaxSets = 1024;
    num_sets_ =
        static_cast<int64_t>(std::clamp(std::ceil(static_cast<double>(min_bytes) / StepBytes()), 1.0, kMaxSets));
    const TreeShape& tree = cache_.options().tree;
    const int64_t num_sequences = num_sets_ * options_.batch;
    if (static_cast<double>(num_sequences) * static_cast<double>(options_.context) > 1e15) {
      return OutOfMemory("{} sequences of {} tokens are more than any machine holds", num_sequences, options_.context);
    }
    PANDO_RETURN_IF_ERROR(cache_.Reserve(num_sequences * NumChunks(tree, options_.context) * tree.chunk_tokens));
    // One piece of random tokens over and over: what the numbers are does not change the time.
    constexpr int64_t kPieceTokens = 1024;
    const size_t token_floats = static_cast<size_t>(options_.num_kv_heads * options_.head_dim);
    std::vector<float> piece(static_cast<size_t>(std::min(kPieceTokens, options_.context)) * token_floats);
    Random random(1);
    for (float& element : piece) element = random.Normal();
    for (int64_t i = 0; i < num_sequences; ++i) {
      const int64_t sequence = cache_.AddSequence();
      for (int64_t left = options_.context; left > 0; left -= kPieceTokens) {
        const auto tokens = std::span(piece).first(static_cast<size_t>(std::min(kPieceTokens, left)) * token_floats);
        PANDO_RETURN_IF_ERROR(cache_.PrepareAppend(/*layer=*/0, sequence, tokens.size(), tokens.size()));
        cache_.AppendPrepared(/*layer=*/0, sequence, tokens, tokens, *pool_);
      }
    }
    return Status();
  }

  AttentionBenchmarkOptions options_;
  AttentionRule rule_;
  std::unique_ptr<ThreadPool> pool_;
  KvCache cache_;
  int64_t num_sets_ = 1;
  int64_t next_set_ = 0;
  std::vector<QueryBlock> blocks_;
  AlignedBuffer queries_;  // the same for all sequences
};

// The outputs of a step, as Attention gives them (without the caller's order of heads).
void FinishRoot(const AttentionStateSpan& root, ThreadPool& pool) {
  constexpr size_t kRowsPerTask = 16;
  pool.Run((root.rows + kRowsPerTask - 1) / kRowsPerTask, [&](size_t task, size_t) {
    FinishRows(root, {task * kRowsPerTask, std::min((task + 1) * kRowsPerTask, root.rows)}, root.acc(0));
  });
}

// What slots and tree are compared with: each thread folds a run of consecutive chunks of every sequence in order, and
// the threads' states are merged.
class StraightPass {
 public:
  static Result<StraightPass> Create(Workload& workload, int64_t batch) {
    const KvPageLayout& layout = workload.cache().options().layout;
    const size_t num_rows = static_cast<size_t>(batch) * workload.rule().num_heads;
    StraightPass pass(num_rows, layout.padded_dim());
    const size_t floats = workload.pool().num_threads() * AttentionStateSpan::NumFloats(num_rows, layout.padded_dim());
    PANDO_RETURN_IF_ERROR(pass.states_.Grow(floats * sizeof(float), "the states of the straight pass"));
    pass.packed_.resize(num_rows * layout.head_dim);
    return pass;
  }

  void Run(Workload& workload, std::span<const QueryBlock> blocks) {
    const AttentionRule& rule = workload.rule();
    const size_t head_dim = workload.cache().options().layout.head_dim;
    const size_t group = rule.num_heads / rule.num_kv_heads;
    for (size_t i = 0; i < blocks.size() * rule.num_kv_heads; ++i) {
      const float* queries = blocks[i / rule.num_kv_heads].queries + i % rule.num_kv_heads * group * head_dim;
      PackQueries(workload.cache().options().layout.k_type, queries, head_dim, group, head_dim,
                  packed_.data() + i * group * head_dim);
    }
    const size_t num_threads = workload.pool().num_threads();
    workload.pool().Run(num_threads, [&](size_t part, size_t) {
      SetIdentity(States(part));
      for (size_t block = 0; block < blocks.size(); ++block)
        FoldPart(workload, blocks[block], block, part, num_threads);
    });
    for (size_t part = 1; part < num_threads; ++part) Merge(States(0), States(part));
    FinishRoot(States(0), workload.pool());
  }

 private:
  StraightPass(size_t num_rows, size_t padded_dim) : num_rows_(num_rows), padded_dim_(padded_dim) {}

  AttentionStateSpan States(size_t part) const {
    return {states_.as<float>() + part * AttentionStateSpan::NumFloats(num_rows_, padded_dim_), num_rows_, padded_dim_};
  }

  void FoldPart(const Workload& workload, const QueryBlock& block, size_t block_idx, size_t part,
                size_t num_parts) const {
    const KvCache& cache = workload.cache();
    const KvPageLayout& layout = cache.options().layout;
    const TreeShape& tree = cache.options().tree;
    const AttentionRule& rule = workload.rule();
    const size_t group = rule.num_heads / rule.num_kv_heads;
    const int64_t num_tokens = block.first_position + 1;
    const int64_t num_chunks = NumChunks(tree, num_tokens);
    const auto part_begin = [&](size_t i) {
      return num_chunks * static_cast<int64_t>(i) / static_cast<int64_t>(num_parts);
    };
    std::vector<TokenRange> ranges(group);
    for (int64_t chunk = part_begin(part); chunk < part_begin(part + 1); ++chunk) {
      std::fill(ranges.begin(), ranges.end(),
                TokenRange{0, static_cast<uint32_t>(NumTokensOfChunk(tree, chunk, num_tokens))});
      const std::byte* page = cache.page(block.layer, block.sequence, chunk);
      const std::byte* next_chunk =
          chunk + 1 < part_begin(part + 1) ? cache.page(block.layer, block.sequence, chunk + 1) : nullptr;
      for (size_t head = 0; head < rule.num_kv_heads; ++head) {
        const size_t row = (block_idx * rule.num_kv_heads + head) * group;
        const std::byte* head_page = page + head * layout.head_bytes();
        const std::byte* next_page = head + 1 < rule.num_kv_heads ? head_page + layout.head_bytes() : next_chunk;
        FoldChunk({&layout, head_page, next_page, rule.score, packed_.data() + row * layout.head_dim, ranges.data(),
                   States(part), row, group});
      }
    }
  }

  size_t num_rows_;
  size_t padded_dim_;
  AlignedBuffer states_;
  std::vector<float> packed_;
};

}  // namespace

Result<AttentionBenchmarkRow> RunAttentionBenchmark(const AttentionBenchmarkOptions& options) {
  Result<Workload> made = Workload::Create(options, ReadBandwidthProbe::DefaultBytes());
  if (!made.ok()) return made.status();
  Workload& workload = *made;
  PANDO_RETURN_IF_ERROR(workload.MakeQueries(1));
  PANDO_ASSIGN_OR_RETURN(ReadBandwidthProbe probe, ReadBandwidthProbe::Create());
  PANDO_ASSIGN_OR_RETURN(StraightPass straight, StraightPass::Create(workload, options.batch));
  ShardAttention attention(workload.rule());
  ForestStates forest;

  std::vector<double> step_us;
  std::vector<double> straight_us;
  std::vector<double> read_gb_per_s;
  Status status;
  // The first round warms up. The probe runs before each of the two, so that both find the same caches.
  for (int repeat = -1; repeat < options.repeats && status.ok(); ++repeat) {
    const double read_before_step = probe.MeasureGbPerSecond(workload.pool());
    const std::span<const QueryBlock> blocks = workload.NextSet(1);
    const double step = Seconds([&] {
      status = attention.Decode(workload.cache(), blocks, workload.pool(), forest);
      if (status.ok()) FinishRoot(forest.states[0], workload.pool());
    });
    const double read_before_straight = probe.MeasureGbPerSecond(workload.pool());
    const double pass = Seconds([&] { straight.Run(workload, blocks); });
    if (repeat < 0) continue;
    step_us.push_back(step * 1e6);
    straight_us.push_back(pass * 1e6);
    read_gb_per_s.push_back(read_before_step);
    read_gb_per_s.push_back(read_before_straight);
  }
  if (!status.ok()) return status;
  AttentionBenchmarkRow row;
  row.median_us = Median(step_us);
  row.spread_us = Spread(step_us);
  row.kv_gb_per_s = workload.StepBytes() / row.median_us / 1e3;
  row.read_gb_per_s = Median(read_gb_per_s);
  row.percent_of_read = 100 * row.kv_gb_per_s / row.read_gb_per_s;
  row.straight_pass_us = Median(straight_us);
  return row;
}

Result<PrefillBenchmarkRow> RunPrefillBenchmark(const AttentionBenchmarkOptions& options) {
  Result<Workload> made = Workload::Create(options, 0);
  if (!made.ok()) return made.status();
  Workload& workload = *made;
  PANDO_RETURN_IF_ERROR(workload.MakeQueries(options.context));
  ShardAttention attention(workload.rule());
  ForestStates forest;
  std::vector<double> times_us;
  std::vector<double> peaks;
  Status status;
  for (int repeat = -1; repeat < options.repeats && status.ok(); ++repeat) {
    const double peak = MeasureFmaGflops(workload.pool());
    const std::span<const QueryBlock> blocks = workload.NextSet(options.context);
    const double seconds = Seconds([&] {
      for (const QueryBlock& block : blocks) {
        status = attention.Prefill(workload.cache(), block, workload.pool(), forest);
        if (!status.ok()) return;
        FinishRoot(forest.states[0], workload.pool());
      }
    });
    if (repeat < 0) continue;
    times_us.push_back(seconds * 1e6);
    peaks.push_back(peak);
  }
  if (!status.ok()) return status;
  const double context = static_cast<double>(options.context);
  const double visible = static_cast<double>(options.batch) * context * (context + 1) / 2;
  PrefillBenchmarkRow row;
  row.median_us = Median(times_us);
  row.spread_us = Spread(times_us);
  row.gflop_per_s = 4 * visible * static_cast<double>(options.num_heads * options.head_dim) / row.median_us / 1e3;
  row.fma_gflop_per_s = Median(peaks);
  row.percent_of_fma = 100 * row.gflop_per_s / row.fma_gflop_per_s;
  return row;
}

}  // namespace pando
