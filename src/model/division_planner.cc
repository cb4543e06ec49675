#include "src/model/division_planner.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "src/attention/query_block.h"
#include "src/base/aligned_buffer.h"
#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/base/memory.h"
#include "src/kernels/matmul.h"
#include "src/model/row_split.h"
#include "src/model/shape_of_model.h"
#include "src/ranks/rank_access.h"

namespace pando {
namespace {

double Bytes(const WeightMatrix& matrix) { return static_cast<double>(matrix.rows * matrix.row_bytes()); }

// Multiplies matrices with a few tokens on all threads.
class ProductProbe {
 public:
  explicit ProductProbe(ThreadPool& pool) : pool_(pool) {}

  Status Prepare(size_t num_tokens, size_t max_columns, size_t max_rows) {
    x_.resize(max_columns);
    for (size_t i = 0; i < max_columns; ++i) x_[i] = static_cast<float>(i % 17) - 8.0f;
    scratch_bytes_ = (MultiplyScratchBytes(max_columns) + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
    Status status = input_.Grow(num_tokens, max_columns);
    if (status.ok()) status = scratch_.Grow(scratch_bytes_ * pool_.num_threads(), "measuring the speed of a rank");
    if (status.ok()) status = out_.Grow(num_tokens * max_rows * sizeof(float), "measuring the speed of a rank");
    num_tokens_ = num_tokens;
    return status;
  }

  void Multiply(const WeightMatrix& matrix) {
    input_.Reset(FormOf(matrix.type), num_tokens_, matrix.columns);
    for (size_t token = 0; token < num_tokens_; ++token) input_.SetTokens(token, 1, x_.data(), matrix.columns);
    pool_.Run(pool_.num_threads(), [&](size_t task, size_t thread) {
      const MatrixRows rows = RowsOfPart(matrix.rows, task, pool_.num_threads());
      MultiplyRows(matrix, rows.begin, rows.size(), input_, out_.as<float>() + rows.begin, matrix.rows,
                   scratch_.data() + thread * scratch_bytes_);
    });
  }

 private:
  ThreadPool& pool_;
  std::vector<float> x_;  // of every token
  size_t num_tokens_ = 0;
  Activations input_;
  AlignedBuffer scratch_;
  size_t scratch_bytes_ = 0;
  AlignedBuffer out_;
};

// The weights that are read to measure: not so few that a cache has them from the pass before, nor so many that it
// takes long.
std::vector<WeightMatrix> ProbedMatrices(const Model& model, double max_bytes) {
  std::vector<WeightMatrix> matrices;
  double bytes = 0;
  for (const LayerWeights& layer : model.weights().layers) {
    for (const WeightMatrix* matrix : {&layer.gate, &layer.up, &layer.down}) {
      matrices.push_back(*matrix);
      bytes += Bytes(*matrix);
      if (bytes >= max_bytes) return matrices;
    }
  }
  return matrices;
}

// Of this rank, while all others do the same.
Result<DeviceModel> MeasureRank(Transport& transport, const Model& model, ThreadPool& pool) {
  constexpr double kReadBytes = 64e6;
  constexpr double kMultiplyBytes = 2e6;
  constexpr size_t kPromptTokens = 32;
  const ModelConfig& config = model.config();
  const size_t max_columns = std::max(config.hidden, config.ffn);
  DeviceModel device = {.memory_bytes = static_cast<double>(AvailableMemoryBytes())};
  const auto timed = [&](size_t num_tokens, double max_bytes, double& bytes, double& flops) -> Result<double> {
    ProductProbe probe(pool);
    PANDO_RETURN_IF_ERROR(probe.Prepare(num_tokens, max_columns, max_columns));
    const std::vector<WeightMatrix> matrices = ProbedMatrices(model, max_bytes);
    double best = std::numeric_limits<double>::infinity();
    constexpr int kPasses = 3;  // the first may find the file on a disk
    for (int pass = 0; pass < kPasses; ++pass) {
      PANDO_RETURN_IF_ERROR(transport.Barrier());
      const double start = NowSeconds();
      for (const WeightMatrix& matrix : matrices) probe.Multiply(matrix);
      best = std::min(best, NowSeconds() - start);
    }
    bytes = flops = 0;
    for (const WeightMatrix& matrix : matrices) {
      bytes += Bytes(matrix);
      flops += 2.0 * static_cast<double>(matrix.rows * matrix.columns * num_tokens);
    }
    return best;
  };
  double bytes = 0;
  double flops = 0;
  PANDO_ASSIGN_OR_RETURN(const double reading, timed(1, kReadBytes, bytes, flops));
  device.memory_bytes_per_second = bytes / reading;
  PANDO_ASSIGN_OR_RETURN(const double multiplying, timed(kPromptTokens, kMultiplyBytes, bytes, flops));
  device.flops_per_second = flops / multiplying;
  return device;
}

// The slowest rank is waited for, so its figures count.
Result<DeviceModel> SlowestRank(Transport& transport, const DeviceModel& mine) {
  std::vector<DeviceModel> all(static_cast<size_t>(transport.size()));
  const Status status = transport.AllGather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  if (!status.ok()) return status;
  DeviceModel slowest = all[0];
  for (const DeviceModel& rank : all) {
    slowest.memory_bytes = std::min(slowest.memory_bytes, rank.memory_bytes);
    slowest.memory_bytes_per_second = std::min(slowest.memory_bytes_per_second, rank.memory_bytes_per_second);
    slowest.flops_per_second = std::min(slowest.flops_per_second, rank.flops_per_second);
  }
  return slowest;
}

}  // namespace

DivisionPlanner::DivisionPlanner(CostModel costs, DeviceModel device, ModelShape shape, bool has_allreduce,
                                 Transport* transport)
    : costs_(std::move(costs)),
      device_(device),
      shape_(std::move(shape)),
      has_allreduce_(has_allreduce),
      transport_(transport) {}

Result<DivisionPlanner> DivisionPlanner::Create(Communicator& communicator, std::span<const SlotRange> ownership,
                                                const Model& model, ThreadPool& pool) {
  Transport& transport = TransportOf(communicator);
  PANDO_ASSIGN_OR_RETURN(CostModel costs, MeasuredCosts(communicator, {ownership.begin(), ownership.end()}));
  PANDO_ASSIGN_OR_RETURN(const DeviceModel mine, MeasureRank(transport, model, pool));
  PANDO_ASSIGN_OR_RETURN(const DeviceModel device, SlowestRank(transport, mine));
  return DivisionPlanner(std::move(costs), device, ModelShapeOf(model), transport.name() == "mpi", &transport);
}

Result<StepDivision> DivisionPlanner::DivisionOf(StepWork work, const DivisionRule& rule) {
  constexpr int64_t kShortContext = 1024;
  const auto round_up = [](int64_t value) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, value))));
  };
  work.num_sequences = round_up(work.num_sequences);
  work.context_tokens = round_up(std::max(kShortContext, work.context_tokens));
  const auto key = std::tuple(work.num_sequences, work.tokens_per_sequence, work.context_tokens,
                              rule.num_groups.value_or(0), rule.divides_tokens ? (*rule.divides_tokens ? 2 : 1) : 0);
  auto found = known_.find(key);
  if (found == known_.end()) {
    PANDO_ASSIGN_OR_RETURN(Answer answer, NewAnswer(work, rule));
    constexpr size_t kMostKnown = 4096;  // of a server whose steps are never the same
    if (known_.size() >= kMostKnown) known_.clear();
    found = known_.emplace(key, std::move(answer)).first;
  }
  Answer& answer = found->second;
  last_ = &answer;
  StepDivision division = answer.division;
  if (answer.trial && answer.trial->is_over()) {
    PANDO_ASSIGN_OR_RETURN(const StepDivision fastest, AgreeOnFastest(*answer.trial));
    division = fastest;
    answer.trial.reset();
  } else if (answer.trial) {
    division = answer.trial->next();
  }
  has_changed_ = division != answer.division;
  answer.division = division;
  return division;
}

void DivisionPlanner::Report(double seconds) {
  if (last_ != nullptr && last_->trial && !last_->trial->is_over()) last_->trial->Add(seconds);
}

Result<DivisionPlanner::Answer> DivisionPlanner::NewAnswer(const StepWork& work, const DivisionRule& rule) const {
  const DivisionOptions options = {.rule = rule,
                                   .weight_bytes = device_.memory_bytes,
                                   .nodes_share_weights = true,
                                   .merging = {.has_allreduce = has_allreduce_}};
  PANDO_ASSIGN_OR_RETURN(const DivisionChoice choice, ChooseDivision(costs_, device_, shape_, work, options));
  Answer answer = {.division = choice.division, .trial = std::nullopt};
  const bool comes_again = work.tokens_per_sequence <= kMaxDecodeQueries;
  // Each division that is tried grows the buffers of all ranks: too much if very many share a machine's memory.
  constexpr int kMostNeighbours = 16;
  const auto is_crowded = [](const RankRange& node) { return node.size() > kMostNeighbours; };
  if (std::ranges::any_of(costs_.order.nodes, is_crowded)) return answer;
  if (transport_ == nullptr || !comes_again || rule.num_groups || choice.division.divides_tokens) return answer;
  constexpr double kWorst = 2;
  PANDO_ASSIGN_OR_RETURN(std::vector<StepDivision> divisions,
                         DivisionsWorthTrying(costs_, device_, shape_, work, options, kWorst));
  if (divisions.size() <= 1) return answer;
  answer.division = divisions.front();
  answer.trial.emplace(std::move(divisions));
  return answer;
}

Result<StepDivision> DivisionPlanner::AgreeOnFastest(const DivisionTrial& trial) const {
  const std::vector<double> mine = trial.Medians();
  std::vector<double> all(mine.size() * static_cast<size_t>(transport_->size()));
  const Status status = transport_->AllGather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  if (!status.ok()) return status;
  std::vector<double> slowest(mine.size());
  for (size_t i = 0; i < all.size(); ++i) {
    double& seconds = slowest[i % mine.size()];
    seconds = std::max(seconds, all[i]);
  }
  const auto fastest = static_cast<size_t>(std::ranges::min_element(slowest) - slowest.begin());
  return trial.contenders()[fastest];
}

}  // namespace pando
