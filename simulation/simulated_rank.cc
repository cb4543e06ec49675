#include "simulation/simulated_rank.h"

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "simulation/simulated_time.h"
#include "src/attention/communicator_state.h"
#include "src/attention/decode_figures.h"
#include "src/attention/rank_attention.h"
#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/engine/step_command.h"
#include "src/model/sharded_product.h"
#include "src/transport/mpi/mpi_transport.h"

namespace pando {
namespace {

// No rank is ever late here, and the time that this program takes says nothing: SimGrid itself finds deadlocks.
constexpr std::chrono::hours kNoDeadline{24 * 365};

Result<Communicator> MakeSimulatedCommunicator(const RankTopology& topology, double merge_seconds_per_byte) {
  MpiOptions options{.timeout = kNoDeadline, .is_single_threaded = true};
  for (const RankPlace& place : topology.places) options.node_of_rank.push_back(place.node);
  Result<std::unique_ptr<Transport>> transport = CreateMpiTransport(options);
  if (!transport.ok()) return transport.status();
  auto state = std::make_unique<CommunicatorState>();
  state->transport = std::move(transport).value();
  state->topology = topology;
  state->order = OrderRanks(topology);
  state->merge_seconds_per_byte = merge_seconds_per_byte;
  return MakeCommunicator(std::move(state));
}

AttentionOptions OptionsOf(const SimulationJob& job, const std::string& strategy) {
  AttentionOptions options;
  options.num_heads = job.num_heads;
  options.num_kv_heads = job.num_kv_heads;
  options.head_dim = job.head_dim;
  options.k_type = job.kv_type;
  options.v_type = job.kv_type;
  options.tree.num_slots = job.num_slots;
  options.strategy = strategy;
  options.num_threads = 1;
  return options;
}

// A cache with all the tokens and none of their bytes.
Status Fill(const SimulationJob& job, KvCache& cache) {
  SequenceTable table(/*num_layers=*/1);
  for (int64_t i = 0; i < job.batch; ++i) table.fill(0, table.Add()).num_tokens = job.context;
  Result<KvCache> filled = KvCache::CreateWithTable(cache.options(), std::move(table));
  if (!filled.ok()) return filled.status();
  cache = std::move(filled).value();
  return Status();
}

// A decode step: of one attention block, or of a model's layers around it.
class Step {
 public:
  Step(const SimulationJob& job, Transport& transport, RankAttention& attention)
      : job_(job), transport_(transport), attention_(attention), pool_(1), product_(transport, pool_) {
    for (int64_t i = 0; i < job.batch; ++i) sequences_.push_back({.sequence = i});
    const size_t num_rows = static_cast<size_t>(job.batch * job.num_heads);
    queries_.resize(num_rows * static_cast<size_t>(job.head_dim));
    output_.resize(queries_.size());
    lse_.resize(num_rows);
  }

  Status Prepare() {
    if (!job_.layers) return Status();
    const Result<WeightType> type = ParseWeightType(job_.layers->weight_type);
    if (!type.ok()) return type.status();
    const auto matrix = [&](int64_t rows, int64_t columns) {
      return WeightMatrix{.type = *type, .rows = static_cast<size_t>(rows), .columns = static_cast<size_t>(columns)};
    };
    const SimulatedLayers& layers = *job_.layers;
    const int64_t q_rows = job_.num_heads * job_.head_dim;
    const int64_t kv_rows = job_.num_kv_heads * job_.head_dim;
    qkv_ = {matrix(q_rows, layers.hidden_size), matrix(kv_rows, layers.hidden_size),
            matrix(kv_rows, layers.hidden_size)};
    o_ = matrix(layers.hidden_size, q_rows);
    gate_ = matrix(layers.ffn_size, layers.hidden_size);
    down_ = matrix(layers.hidden_size, layers.ffn_size);
    logits_ = matrix(layers.vocab_size, layers.hidden_size);
    const auto most_rows =
        static_cast<size_t>(std::max({q_rows + 2 * kv_rows, layers.hidden_size, layers.ffn_size, layers.vocab_size}));
    const auto most_columns = static_cast<size_t>(std::max({q_rows, layers.hidden_size, layers.ffn_size}));
    const auto num_tokens = static_cast<size_t>(job_.batch);
    x_.resize(num_tokens * most_columns);
    rows_.resize(num_tokens * most_rows);
    return product_.Grow(num_tokens, most_rows, most_columns);
  }

  Status Run() {
    if (!job_.layers) return Attend();
    if (Status status = TakeCommand(); !status.ok()) return status;
    for (int64_t layer = 0; layer < job_.layers->num_layers; ++layer) {
      if (Status status = Multiply(qkv_); !status.ok()) return status;
      if (Status status = Attend(); !status.ok()) return status;
      if (Status status = Multiply({&o_, 1}); !status.ok()) return status;
      if (Status status = MultiplyGated(); !status.ok()) return status;
      if (Status status = Multiply({&down_, 1}); !status.ok()) return status;
    }
    return Timed([&] { return product_.MultiplyToFront(logits_, rows_.data()); }, {&logits_, 1});
  }

  SimulationResult result;

 private:
  // What the front tells its workers: to add a token to each sequence and return the logits of all.
  Status TakeCommand() {
    const double start = NowSeconds();
    const int32_t token = 0;
    std::vector<SequenceTokens> batch;
    std::vector<size_t> wanted;
    for (const SequenceQueries& each : sequences_) {
      wanted.push_back(batch.size());
      batch.push_back({each.sequence, {&token, 1}});
    }
    Command command;
    BeginStep(command, batch, wanted);
    Status status = command.Broadcast(transport_);
    result.gather_seconds += NowSeconds() - start;
    return status;
  }

  Status Attend() {
    Status status = attention_.Decode(/*layer=*/0, sequences_, queries_, output_, lse_);
    const StepReport& report = attention_.last_step();
    result.schedule = report.schedule;
    result.kv_seconds += report.compute_seconds;
    result.merge_seconds += report.merge_seconds;
    return status;
  }

  // A kernel that reads its rows of the weights, and the gather of what it gives.
  template <typename Function>
  Status Timed(const Function& function, std::span<const WeightMatrix> parts) {
    const double start = NowSeconds();
    Spend(Device().launch_overhead_seconds);
    product_.SetInput(parts, x_.data(), static_cast<size_t>(job_.batch));
    Status status = function();
    const double gathering = product_.TakeGatherSeconds();
    result.gather_seconds += gathering;
    result.weight_seconds += NowSeconds() - start - gathering;
    return status;
  }

  Status Multiply(std::span<const WeightMatrix> parts) {
    return Timed([&] { return product_.Multiply(parts, rows_.data()); }, parts);
  }
  Status MultiplyGated() {
    return Timed([&] { return product_.MultiplyGated(gate_, gate_, rows_.data()); }, {&gate_, 1});
  }

  const SimulationJob& job_;
  Transport& transport_;
  RankAttention& attention_;
  ThreadPool pool_;
  ShardedProduct product_;
  std::vector<SequenceQueries> sequences_;
  std::vector<float> queries_;
  std::vector<float> output_;
  std::vector<float> lse_;
  std::array<WeightMatrix, 3> qkv_;
  WeightMatrix o_;
  WeightMatrix gate_;  // and up
  WeightMatrix down_;
  WeightMatrix logits_;
  std::vector<float> x_;
  std::vector<float> rows_;
};

Result<SimulationResult> RunStep(const SimulationJob& job, const std::string& strategy, Communicator& communicator,
                                 SimulatedMachine& machine) {
  Result<std::unique_ptr<RankAttention>> attention = RankAttention::Create(communicator, OptionsOf(job, strategy));
  if (!attention.ok()) return attention.status();
  if (Status status = Fill(job, (*attention)->cache()); !status.ok()) return status;
  Transport& transport = *StateOf(communicator).transport;
  Step step(job, transport, **attention);
  if (Status status = step.Prepare(); !status.ok()) return status;

  machine.Align();
  const TrafficCounters before = transport.traffic();
  const double start = NowSeconds();
  if (Status status = step.Run(); !status.ok()) return status;
  SimulationResult& result = step.result;
  result.step_seconds = NowSeconds() - start;
  const TrafficCounters& after = transport.traffic();
  result.mpi_collectives = static_cast<int64_t>(after.mpi_collectives - before.mpi_collectives);
  result.messages_per_rank = static_cast<int64_t>(after.messages_sent - before.messages_sent) + result.mpi_collectives;
  result.bytes_per_rank = static_cast<int64_t>(
      after.bytes_sent - before.bytes_sent + after.mpi_collective_operand_bytes - before.mpi_collective_operand_bytes);
  const AttentionMemory memory = (*attention)->memory();
  result.peak_kv_bytes = memory.used + (strategy == kRingStrategy ? memory.buffers : 0);
  // Nobody takes MPI down while others are still on their way.
  machine.Align();
  return result;
}

Result<SimulationResult> PingPong(const SimulationJob& job, Transport& transport, SimulatedMachine& machine) {
  SimulationResult result;
  const int last = transport.size() - 1;
  for (const int64_t bytes : job.ping_pong_bytes) {
    std::vector<std::byte> message(static_cast<size_t>(bytes));
    machine.Align();
    const double start = NowSeconds();
    Status status;
    if (transport.rank() == 0) {
      status = transport.Send(last, message);
      if (status.ok()) status = transport.Receive(last, message);
    } else if (transport.rank() == last) {
      status = transport.Receive(0, message);
      if (status.ok()) status = transport.Send(0, message);
    }
    if (!status.ok()) return status;
    result.ping_pong_seconds.push_back((NowSeconds() - start) / 2);
  }
  machine.Align();
  return result;
}

}  // namespace

Result<SimulationResult> RunRank(const SimulationJob& job, const std::string& strategy, const RankTopology& topology,
                                 SimulatedMachine& machine) {
  Result<Communicator> communicator = MakeSimulatedCommunicator(topology, job.platform.device.merge_seconds_per_byte());
  if (!communicator.ok()) return communicator.status();
  return job.ping_pong_bytes.empty() ? RunStep(job, strategy, *communicator, machine)
                                     : PingPong(job, *StateOf(*communicator).transport, machine);
}

}  // namespace pando
