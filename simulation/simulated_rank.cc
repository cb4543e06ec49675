#include "simulation/simulated_rank.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "simulation/simulated_time.h"
#include "src/attention/attention_options.h"
#include "src/attention/rank_attention.h"
#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/engine/step_instruction.h"
#include "src/model/sharded_product.h"
#include "src/ranks/communicator_state.h"
#include "src/ranks/rank_access.h"
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

// A cache with tokens and none of their bytes: of each sequence so many.
Status Fill(const SimulationJob& job, int64_t num_tokens, KvCache& cache) {
  SequenceTable table(/*num_layers=*/1);
  for (int64_t i = 0; i < job.batch; ++i) table.fill(0, table.Add()).num_tokens = num_tokens;
  Result<KvCache> filled = KvCache::CreateWithTable(cache.options(), std::move(table));
  if (!filled.ok()) return filled.status();
  cache = std::move(filled).value();
  return Status();
}

// A step: of one attention block, or of a model's layers around it, in the steps of src/model/transformer.cc.
class Step {
 public:
  Step(const SimulationJob& job, Communicator& communicator, RankAttention& attention)
      : job_(job),
        transport_(TransportOf(communicator)),
        order_(OrderOf(communicator)),
        attention_(attention),
        pool_(1),
        product_(transport_, pool_, copies_),
        division_(job.layers ? job.layers->division : kOneGroup),
        num_tokens_(job.batch * TokensPerSequence()) {
    for (int64_t i = 0; i < job.batch; ++i) sequences_.push_back({i, TokensPerSequence()});
    Divide();
  }

  Status Prepare() {
    const auto num_rows = static_cast<size_t>(num_tokens_ * job_.num_heads);
    const auto floats = [](AlignedBuffer& buffer, size_t count) {
      return buffer.Grow(count * sizeof(float), "the activations of a step");
    };
    lse_.resize(num_rows);
    Status status = floats(queries_, num_rows * static_cast<size_t>(job_.head_dim));
    if (status.ok()) status = floats(output_, num_rows * static_cast<size_t>(job_.head_dim));
    if (!status.ok()) return status;
    if (status = FillBefore(); !status.ok() || !job_.layers) return status;
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
    const auto most_rows = static_cast<size_t>(std::max({q_rows + 2 * kv_rows, layers.hidden_size, layers.ffn_size}));
    const auto most_columns = static_cast<size_t>(std::max({q_rows, layers.hidden_size, layers.ffn_size}));
    const auto num_tokens = static_cast<size_t>(num_tokens_);
    const auto num_logits = static_cast<size_t>(job_.batch * layers.vocab_size);
    status = floats(x_, num_tokens * most_columns);
    if (status.ok()) status = floats(rows_, std::max(num_tokens * most_rows, num_logits));
    return status.ok() ? product_.Grow(num_tokens, most_rows, most_columns) : status;
  }

  Status Run() {
    if (!job_.layers) return Attend();
    if (Status status = TakeInstruction(); !status.ok()) return status;
    for (int64_t layer = 0; layer < job_.layers->num_layers; ++layer) {
      if (Status status = Multiply(qkv_); !status.ok()) return status;
      if (Status status = division_.divides_tokens ? AttendDivided() : Attend(); !status.ok()) return status;
      if (Status status = Multiply({&o_, 1}); !status.ok()) return status;
      if (Status status = FeedForward(); !status.ok()) return status;
    }
    if (Status status = division_.divides_tokens ? CollectResidual() : Status(); !status.ok()) return status;
    return Timed([&] { return product_.MultiplyToFront(logits_, rows_.as<float>()); }, {&logits_, 1}, job_.batch);
  }

  SimulationResult result;

 private:
  int64_t TokensPerSequence() const { return job_.layers ? job_.layers->tokens_per_sequence : 1; }
  int num_ranks() const { return transport_.size(); }
  int position() const { return order_.position_of[static_cast<size_t>(transport_.rank())]; }

  // Who computes which tokens, and with whom.
  void Divide() {
    const int group = GroupOfPosition(num_ranks(), division_.num_groups, position());
    const RankRange members = GroupRange(num_ranks(), division_.num_groups, group);
    group_ranks_.assign(order_.rank_at.begin() + members.begin, order_.rank_at.begin() + members.end);
    product_.SetGroup(group_ranks_);
    group_tokens_ = num_tokens_;
    if (!division_.divides_tokens) return;
    group_tokens_ = TokensOfGroup(num_tokens_, division_.num_groups, group).size();
    for (int p = 0; p < num_ranks(); ++p) {
      first_token_of_.push_back(TokensOfPosition(num_tokens_, num_ranks(), division_.num_groups, p).begin);
    }
    first_token_of_.push_back(num_tokens_);
    // Each group has early and late tokens.
    int64_t early = 0;
    int64_t late = num_tokens_;
    for (int i = 0; i < division_.num_groups; ++i) {
      const int64_t count = TokensOfGroup(num_tokens_, division_.num_groups, i).size();
      AddRuns(early, early + (count + 1) / 2);
      AddRuns(late - count / 2, late);
      early += (count + 1) / 2;
      late -= count / 2;
    }
  }

  // Tokens [begin, end) of the batch, sequence by sequence.
  void AddRuns(int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end;) {
      const int64_t part = token / TokensPerSequence();
      const int64_t next = std::min(end, (part + 1) * TokensPerSequence());
      runs_.push_back({static_cast<size_t>(part), token - part * TokensPerSequence(), next - token});
      token = next;
    }
  }

  size_t TokensOfRank(int rank) const {
    const auto p = static_cast<size_t>(order_.position_of[static_cast<size_t>(rank)]);
    return static_cast<size_t>(first_token_of_[p + 1] - first_token_of_[p]);
  }

  // What is in the cache when attention begins: all tokens of the context, or those before the step, which adds its
  // own.
  Status FillBefore() {
    const int64_t added = division_.divides_tokens ? TokensPerSequence() : 0;
    return Fill(job_, job_.context - added, attention_.cache());
  }

  // What the front tells its workers: to add tokens to each sequence and return the logits of the last.
  Status TakeInstruction() {
    const double start = NowSeconds();
    const std::vector<int32_t> tokens(static_cast<size_t>(TokensPerSequence()));
    std::vector<SequenceTokens> batch;
    std::vector<size_t> wanted;
    for (const SequenceQueries& each : sequences_) {
      batch.push_back({each.sequence, tokens});
      wanted.push_back(batch.size() * tokens.size() - 1);
    }
    Instruction instruction;
    BeginStep(instruction, batch, wanted);
    Status status = instruction.Broadcast(transport_);
    result.gather_seconds += NowSeconds() - start;
    return status;
  }

  void AddReport() {
    const StepReport& report = attention_.last_step();
    result.schedule = report.schedule;
    result.kv_seconds += report.compute_seconds;
    result.merge_seconds += report.merge_seconds;
  }

  Status Attend() {
    const auto floats = static_cast<size_t>(num_tokens_ * job_.num_heads * job_.head_dim);
    const std::span<const float> queries(queries_.as<float>(), floats);
    const std::span<float> output(output_.as<float>(), floats);
    if (TokensPerSequence() <= kMaxDecodeQueries) {
      Status status = attention_.Decode(/*layer=*/0, sequences_, queries, output, lse_);
      AddReport();
      return status;
    }
    const size_t part = floats / sequences_.size();
    for (size_t i = 0; i < sequences_.size(); ++i) {
      Status status = attention_.Prefill(/*layer=*/0, sequences_[i], queries.subspan(i * part, part),
                                         output.subspan(i * part, part), {});
      AddReport();
      if (!status.ok()) return status;
    }
    return Status();
  }

  Status AttendDivided() {
    const size_t q_rows = static_cast<size_t>(job_.num_heads * job_.head_dim);
    const std::span<float> mine(output_.as<float>(), TokensOfRank(transport_.rank()) * q_rows);
    const float* vectors = queries_.as<float>();
    Status status =
        attention_.AppendAndAttend(/*layer=*/0, sequences_, runs_, first_token_of_, {vectors, vectors, vectors}, mine);
    AddReport();
    if (status.ok()) status = FillBefore();
    if (!status.ok() || group_ranks_.size() == 1) return status;
    std::vector<size_t> bytes_of_member;
    for (const int rank : group_ranks_) bytes_of_member.push_back(TokensOfRank(rank) * q_rows * sizeof(float));
    const std::span<float> all(x_.as<float>(), static_cast<size_t>(group_tokens_) * q_rows);
    return Gather(std::as_bytes(mine), std::as_writable_bytes(all), group_ranks_, bytes_of_member);
  }

  Status Gather(std::span<const std::byte> mine, std::span<std::byte> all, std::span<const int> ranks,
                std::span<const size_t> bytes_of_member) {
    const double start = NowSeconds();
    Status status = transport_.AllGatherAmong(ranks, mine, all, bytes_of_member);
    result.gather_seconds += NowSeconds() - start;
    return status;
  }

  // The last token of each sequence, from who has it to all ranks.
  Status CollectResidual() {
    const size_t row_bytes = static_cast<size_t>(job_.layers->hidden_size) * sizeof(float);
    std::vector<size_t> bytes_of_rank(static_cast<size_t>(num_ranks()));
    int64_t token = 0;  // in the order of the runs
    for (const DividedTokens::Run& run : runs_) {
      token += run.count;
      if (run.first + run.count != TokensPerSequence()) continue;
      const auto after = std::ranges::upper_bound(first_token_of_, token - 1);
      const int rank = order_.rank_at[static_cast<size_t>(after - first_token_of_.begin()) - 1];
      bytes_of_rank[static_cast<size_t>(rank)] += row_bytes;
    }
    std::vector<int> all_ranks(static_cast<size_t>(num_ranks()));
    std::iota(all_ranks.begin(), all_ranks.end(), 0);
    const std::span<const std::byte> mine(rows_.data(), bytes_of_rank[static_cast<size_t>(transport_.rank())]);
    return Gather(mine, {x_.data(), sequences_.size() * row_bytes}, all_ranks, bytes_of_rank);
  }

  // A kernel that reads its rows of the weights, and the gather of what it gives.
  template <typename Function>
  Status Timed(const Function& function, std::span<const WeightMatrix> parts, int64_t num_tokens) {
    const double start = NowSeconds();
    Spend(Device().launch_overhead_seconds);
    product_.SetInput(parts, x_.as<float>(), static_cast<size_t>(num_tokens));
    Status status = function();
    const double gathering = product_.TakeGatherSeconds();
    result.gather_seconds += gathering;
    result.weight_seconds += NowSeconds() - start - gathering;
    return status;
  }

  Status Multiply(std::span<const WeightMatrix> parts) {
    return Timed([&] { return product_.Multiply(parts, rows_.as<float>()); }, parts, group_tokens_);
  }
  // Two kernels: gate with up, and down.
  Status FeedForward() {
    result.weight_seconds += Device().launch_overhead_seconds;
    Spend(Device().launch_overhead_seconds);
    return Timed([&] { return product_.FeedForward(gate_, gate_, down_, division_.down, rows_.as<float>()); },
                 {&gate_, 1}, group_tokens_);
  }

  const SimulationJob& job_;
  Transport& transport_;
  const RankOrder& order_;
  RankAttention& attention_;
  ThreadPool pool_;
  ColumnCopies copies_;
  ShardedProduct product_;
  const StepDivision division_;
  const int64_t num_tokens_;  // of the step
  int64_t group_tokens_ = 0;  // that this rank's group computes
  std::vector<int> group_ranks_;
  std::vector<DividedTokens::Run> runs_;  // where tokens are divided
  std::vector<int64_t> first_token_of_;   // likewise, by position
  std::vector<SequenceQueries> sequences_;
  AlignedBuffer queries_;
  AlignedBuffer output_;
  std::vector<float> lse_;
  std::array<WeightMatrix, 3> qkv_;
  WeightMatrix o_;
  WeightMatrix gate_;  // and up
  WeightMatrix down_;
  WeightMatrix logits_;
  AlignedBuffer x_;
  AlignedBuffer rows_;
};

Result<SimulationResult> RunStep(const SimulationJob& job, const std::string& strategy, Communicator& communicator,
                                 SimulatedMachine& machine) {
  Result<std::unique_ptr<RankAttention>> attention = RankAttention::Create(communicator, OptionsOf(job, strategy));
  if (!attention.ok()) return attention.status();
  Transport& transport = TransportOf(communicator);
  Step step(job, communicator, **attention);
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
                                     : PingPong(job, TransportOf(*communicator), machine);
}

}  // namespace pando
