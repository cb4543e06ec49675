#include "src/model/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "src/attention/attention_options.h"
#include "src/base/check.h"
#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/base/memory.h"
#include "src/base/printable.h"
#include "src/kernels/vector_ops.h"
#include "src/kv_cache/owned_chunks.h"
#include "src/ranks/agreement.h"
#include "src/ranks/rank_access.h"

namespace pando {
namespace {

AttentionOptions AttentionOptionsOf(const ModelConfig& config, const TransformerOptions& options) {
  AttentionOptions attention{.num_heads = static_cast<int64_t>(config.num_heads),
                             .num_kv_heads = static_cast<int64_t>(config.num_kv_heads),
                             .head_dim = static_cast<int64_t>(config.head_dim),
                             .num_layers = static_cast<int64_t>(config.num_layers),
                             .k_type = options.k_type,
                             .v_type = options.v_type,
                             .tree = options.tree,
                             .strategy = options.strategy,
                             .num_threads = options.num_threads};
  attention.window = config.window;
  return attention;
}

// About what KvCache::Reserve takes from the system, to a page per layer.
size_t BytesToReserve(const KvCache& cache, int64_t num_tokens, int64_t max_append_tokens) {
  const KvCacheOptions& options = cache.options();
  // With a window, an append sees window - 1 tokens before it, which begin anywhere in a chunk.
  const int64_t seen = options.window + max_append_tokens + options.tree.chunk_tokens;
  const int64_t held = options.window > 0 ? std::min(num_tokens, seen) : num_tokens;
  const OwnedChunks owned(options.tree, options.slots);
  const int64_t num_chunks = NumChunks(options.tree, held);
  const int64_t pages = held < num_tokens ? owned.MostAmong(num_chunks) : owned.CountBefore(num_chunks);
  const double bytes =
      static_cast<double>(pages) * static_cast<double>(options.num_layers) * static_cast<double>(cache.page_bytes());
  constexpr double kMost = 0x1p62;
  const size_t free = cache.allocated_bytes() - cache.used_bytes();
  const auto wanted = static_cast<size_t>(std::min(bytes, kMost));
  return wanted - std::min(wanted, free);
}

// Whether the machine has `bytes` for this rank and as many as they need for the others on it.
Status CheckMachineMemory(Transport& transport, size_t bytes) {
  std::vector<size_t> bytes_of_rank(static_cast<size_t>(transport.size()));
  if (Status status =
          transport.AllGather(std::as_bytes(std::span(&bytes, 1)), std::as_writable_bytes(std::span(bytes_of_rank)));
      !status.ok())
    return status;
  const std::vector<int>& nodes = transport.node_of_rank();
  const int mine = nodes[static_cast<size_t>(transport.rank())];
  size_t sum = 0;
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    constexpr size_t kMost = std::numeric_limits<size_t>::max();
    if (nodes[rank] == mine) sum = bytes_of_rank[rank] > kMost - sum ? kMost : sum + bytes_of_rank[rank];
  }
  const size_t available = AvailableMemoryBytes();
  if (sum <= available) return Status();
  return OutOfMemory(
      "the KV cache of the ranks on this machine needs {} and {} are available: use a shorter context (-c), "
      "more machines or a smaller KV type (--kv-type)",
      FormatBytes(sum), FormatBytes(available));
}

// A step's activations are on every rank: where many share a machine, steps are shorter and all of them together take
// as much memory as those of 4 ranks. The same on all ranks, whatever their own machine is.
int64_t DefaultStepTokens(const Transport& transport) {
  constexpr int64_t kMostTokens = 512;
  constexpr int64_t kLeastTokens = 32;
  constexpr int64_t kMachineTokens = 4 * kMostTokens;
  int64_t most_ranks = 1;
  for (const int node : transport.node_of_rank()) {
    most_ranks = std::max<int64_t>(most_ranks, std::ranges::count(transport.node_of_rank(), node));
  }
  return std::clamp(kMachineTokens / most_ranks, kLeastTokens, kMostTokens);
}

// What must be the same on all ranks: what they send follows from it, and what comes out.
std::string DescribeOptions(const Model& model, const TransformerOptions& options) {
  const ModelConfig& config = model.config();
  const RopeRule& rope = config.rope;
  constexpr size_t kMaxNameBytes = 60;
  return fmt::format(
      "the model '{}' ({} layers of {} and {}, {} tokens, {} bytes) -b {} -ctk {} -ctv {} --attention {} --slots {} "
      "--rope-scaling {} --rope-scale {} --rope-freq-base {} --yarn-orig-ctx {} --chunk-tokens {} --groups {}",
      Printable(config.name, kMaxNameBytes), config.num_layers, config.hidden, config.ffn, config.vocabulary,
      model.bytes_per_token(), options.max_tokens, KvTypeName(options.k_type), KvTypeName(options.v_type),
      options.strategy, options.tree.num_slots, RopeScalingName(rope.scaling), rope.factor, rope.base,
      rope.original_context, options.tree.chunk_tokens, options.num_groups);
}

Status CheckGroups(const TransformerOptions& options, int num_ranks) {
  const int64_t num_groups = options.division ? options.division->num_groups : options.num_groups;
  if (num_groups >= 0 && num_groups <= num_ranks && !(options.division && num_groups == 0)) return Status();
  return InvalidArgument("{} groups of ranks: there must be from 1 to {}, the number of ranks", num_groups, num_ranks);
}

}  // namespace

Result<std::unique_ptr<Transformer>> Transformer::Create(Communicator& communicator, std::shared_ptr<const Model> model,
                                                         const TransformerOptions& wanted) {
  Transport& transport = TransportOf(communicator);
  PANDO_RETURN_IF_ERROR(AgreeOnOptions(transport, DescribeOptions(*model, wanted)));
  constexpr int64_t kMostTokens = 1 << 16;
  if (wanted.max_tokens < 0 || wanted.max_tokens > kMostTokens) {
    return InvalidArgument("{} tokens per step: it must be from 1 to {}, or 0", wanted.max_tokens, kMostTokens);
  }
  PANDO_RETURN_IF_ERROR(CheckGroups(wanted, transport.size()));
  TransformerOptions options = wanted;
  if (options.max_tokens == 0) options.max_tokens = DefaultStepTokens(transport);
  const AttentionOptions attention = AttentionOptionsOf(model->config(), options);
  PANDO_RETURN_IF_ERROR(CacheOptionsOf(attention, {}).status());
  const size_t num_threads = NumThreadsOf(attention, transport.num_neighbours());
  std::unique_ptr<Transformer> transformer(new Transformer(communicator, std::move(model), options, num_threads));
  PANDO_ASSIGN_OR_RETURN(std::unique_ptr<RankAttention> rank,
                         RankAttention::Create(communicator, attention, &transformer->pool_));
  transformer->attention_ = std::move(rank);
  const Status grown = transformer->GrowBuffers();
  PANDO_RETURN_IF_ERROR(Agree(transport, grown));
  return transformer;
}

Transformer::Transformer(Communicator& communicator, std::shared_ptr<const Model> model,
                         const TransformerOptions& options, size_t num_threads)
    : model_(std::move(model)),
      options_(options),
      communicator_(communicator),
      pool_(num_threads),
      product_(TransportOf(communicator), pool_, model_->column_copies()),
      frequencies_(RopeFrequencies(model_->config().rope)),
      rope_magnitude_(RopeMagnitude(model_->config().rope)) {}

Status Transformer::GrowBuffers() {
  const ModelConfig& config = model_->config();
  const auto max_tokens = static_cast<size_t>(options_.max_tokens);
  const size_t qkv = config.q_rows() + 2 * config.kv_rows();
  const auto grow = [&](AlignedBuffer& buffer, size_t width) {
    return buffer.Grow(max_tokens * width * sizeof(float), "the activations of a step");
  };
  const size_t attending = 2 * (config.q_rows() + config.kv_rows());
  const std::array<std::pair<AlignedBuffer*, size_t>, 5> buffers = {{{&residual_, config.hidden},
                                                                     {&projected_, std::max(qkv, config.hidden)},
                                                                     {&inside_, attending},
                                                                     {&cosines_, frequencies_.size()},
                                                                     {&sines_, frequencies_.size()}}};
  for (const auto& [buffer, width] : buffers) {
    PANDO_RETURN_IF_ERROR(grow(*buffer, width));
  }
  q_ = inside_.as<float>();
  attended_ = q_ + max_tokens * config.q_rows();
  k_ = attended_ + max_tokens * config.q_rows();
  v_ = k_ + max_tokens * config.kv_rows();
  const size_t max_columns = std::max({config.hidden, config.q_rows(), config.ffn});
  return product_.Grow(max_tokens, std::max({qkv, config.hidden, config.ffn}), max_columns);
}

Status Transformer::Reserve(int64_t num_tokens) {
  if (num_tokens < 0) return InvalidArgument("{} tokens cannot be reserved: it must be 0 or more", num_tokens);
  // More than any memory holds stays so, and does not overflow.
  constexpr int64_t kTooMany = int64_t{1} << 56;
  num_tokens = std::min(num_tokens, kTooMany);
  KvCache& cache = attention_->cache();
  Transport& transport = TransportOf(communicator_);
  // Memory that was got and not yet touched is not missing to others: each rank alone may find enough for itself.
  const Status together = CheckMachineMemory(transport, BytesToReserve(cache, num_tokens, options_.max_tokens));
  PANDO_RETURN_IF_ERROR(Agree(transport, together));
  return Agree(transport, cache.Reserve(num_tokens, options_.max_tokens));
}

template <typename Function>
void Transformer::ForTokens(Function&& function) {
  constexpr size_t kTaskTokens = 8;
  const size_t num_tasks = (num_tokens_ + kTaskTokens - 1) / kTaskTokens;
  pool_.Run(num_tasks, [&](size_t task, size_t) {
    const size_t end = std::min(num_tokens_, (task + 1) * kTaskTokens);
    for (size_t token = task * kTaskTokens; token < end; ++token) function(token);
  });
}

// ---- A step

Status Transformer::CheckBatch(std::span<const SequenceTokens> batch) {
  if (batch.empty()) return InvalidArgument("a step of no tokens");
  size_t num_tokens = 0;
  sequences_.clear();
  for (const SequenceTokens& part : batch) {
    if (!attention_->cache().HasSequence(part.sequence))
      return InvalidArgument("there is no sequence {}", part.sequence);
    if (part.tokens.empty()) return InvalidArgument("sequence {} gets no tokens in this step", part.sequence);
    num_tokens += part.tokens.size();
    sequences_.push_back(part.sequence);
    for (const int32_t token : part.tokens) {
      if (token < 0 || static_cast<size_t>(token) >= model_->config().vocabulary) {
        return InvalidArgument("there is no token {}: the vocabulary has {}", token, model_->config().vocabulary);
      }
    }
  }
  if (num_tokens > static_cast<size_t>(options_.max_tokens)) {
    return InvalidArgument("a step of {} tokens: it takes at most {}", num_tokens, options_.max_tokens);
  }
  std::ranges::sort(sequences_);
  const auto twice = std::ranges::adjacent_find(sequences_);
  if (twice != sequences_.end()) return InvalidArgument("sequence {} occurs twice in a step", *twice);
  return Status();
}

Status Transformer::TakePages(std::span<const SequenceTokens> batch) {
  KvCache& cache = attention_->cache();
  const int64_t num_layers = cache.options().num_layers;
  const int64_t chunk_tokens = cache.options().tree.chunk_tokens;
  const size_t kv_rows = model_->config().kv_rows();
  bool begins_chunk = false;
  Status mine;
  for (const SequenceTokens& part : batch) {
    const int64_t num_tokens = cache.num_tokens(0, part.sequence);
    // All queries of the tokens so far are answered.
    for (int64_t layer = 0; layer < num_layers; ++layer) cache.ReleaseUnseen(layer, part.sequence, num_tokens);
    const int64_t room = (chunk_tokens - num_tokens % chunk_tokens) % chunk_tokens;
    if (static_cast<int64_t>(part.tokens.size()) <= room) continue;
    begins_chunk = true;
    const size_t floats = part.tokens.size() * kv_rows;
    for (int64_t layer = 0; layer < num_layers && mine.ok(); ++layer) {
      mine = cache.PrepareAppend(layer, part.sequence, floats, floats);
    }
  }
  // Whether a page is needed, all ranks know; whether there is one, each rank alone.
  return begins_chunk ? Agree(TransportOf(communicator_), mine) : Status();
}

Status Transformer::Step(std::span<const SequenceTokens> batch) {
  if (!in_step_) return Failed("an earlier step failed half-way: the ranks are out of step");
  PANDO_RETURN_IF_ERROR(CheckBatch(batch));
  PANDO_RETURN_IF_ERROR(TakePages(batch));
  Status status = RunStep(batch);
  in_step_ = status.ok();
  return status;
}

Status Transformer::RunStep(std::span<const SequenceTokens> batch) {
  const double start = NowSeconds();
  PANDO_RETURN_IF_ERROR(Divide(batch));
  const double divided = NowSeconds();
  Embed(batch);
  for (size_t layer = 0; layer < model_->config().num_layers; ++layer) {
    PANDO_RETURN_IF_ERROR(RunLayer(static_cast<int64_t>(layer), batch));
  }
  if (planner_) planner_->Report(NowSeconds() - divided);
  times_.gather_seconds += product_.TakeGatherSeconds();
  times_.total_seconds += NowSeconds() - start;
  return Status();
}

Result<StepDivision> Transformer::DivisionOf(std::span<const SequenceTokens> batch) {
  if (communicator_.size() == 1) return StepDivision();
  // Schedules that were asked for by name leave the result on all ranks.
  const bool can_divide = attention_->strategy().kind != Strategy::Kind::kSchedule;
  if (options_.division) {
    StepDivision division = *options_.division;
    const bool has_tokens_for_all = static_cast<size_t>(division.num_groups) <= num_step_tokens_;
    division.divides_tokens = division.divides_tokens && division.num_groups > 1 && can_divide && has_tokens_for_all;
    return division;
  }
  if (!planner_) {
    PANDO_ASSIGN_OR_RETURN(DivisionPlanner planner,
                           DivisionPlanner::Create(communicator_, attention_->ownership(), *model_, pool_));
    planner_ = std::move(planner);
  }
  int64_t context = 0;
  for (const SequenceTokens& part : batch) {
    context =
        std::max(context, attention_->cache().num_tokens(0, part.sequence) + static_cast<int64_t>(part.tokens.size()));
  }
  const auto num_sequences = static_cast<int64_t>(batch.size());
  const StepWork work = {
      .num_sequences = num_sequences,
      .tokens_per_sequence = (static_cast<int64_t>(num_step_tokens_) + num_sequences - 1) / num_sequences,
      .context_tokens = context,
      .kv_type = options_.k_type};
  DivisionRule rule;
  if (options_.num_groups > 0) rule.num_groups = static_cast<int>(options_.num_groups);
  if (!can_divide) rule.divides_tokens = false;
  Result<StepDivision> division = planner_->DivisionOf(work, rule);
  // Rounded up, there may have seemed to be more tokens than there are.
  if (division.ok() && num_step_tokens_ < static_cast<size_t>(division->num_groups)) division->divides_tokens = false;
  return division;
}

Status Transformer::Divide(std::span<const SequenceTokens> batch) {
  queries_.clear();
  num_step_tokens_ = 0;
  for (const SequenceTokens& part : batch) {
    queries_.push_back({part.sequence, static_cast<int64_t>(part.tokens.size())});
    num_step_tokens_ += part.tokens.size();
  }
  PANDO_ASSIGN_OR_RETURN(const StepDivision division, DivisionOf(batch));
  division_ = division;
  if (planner_ && planner_->has_changed()) product_.ForgetCopies();
  tokens_.Divide(OrderOf(communicator_), static_cast<int>(communicator_.rank()), division_, queries_);
  product_.SetGroup(tokens_.group_ranks());
  num_tokens_ = tokens_.num_of_group();
  return Status();
}

// Rows of the embedding, and the angles of the tokens' positions.
void Transformer::Embed(std::span<const SequenceTokens> batch) {
  const size_t hidden = model_->config().hidden;
  const size_t pairs = frequencies_.size();
  const size_t first_of_group = tokens_.first_of_group();
  size_t first = 0;  // of the run
  for (const DividedTokens::Run& run : tokens_.runs()) {
    const SequenceTokens& part = batch[run.part];
    const int64_t position = attention_->cache().num_tokens(0, part.sequence) + run.first;
    const size_t end = first + static_cast<size_t>(run.count);
    const size_t last = std::min(end, first_of_group + num_tokens_);
    for (size_t token = std::max(first, first_of_group); token < last; ++token) {
      const size_t row = token - first_of_group;
      const size_t of_run = token - first;
      DequantizeRow(model_->weights().embedding,
                    static_cast<size_t>(part.tokens[static_cast<size_t>(run.first) + of_run]),
                    residual_.as<float>() + row * hidden);
      RopeAngles(frequencies_, rope_magnitude_, position + static_cast<int64_t>(of_run),
                 {cosines_.as<float>() + row * pairs, pairs}, {sines_.as<float>() + row * pairs, pairs});
    }
    first = end;
  }
}

Status Transformer::RunLayer(int64_t layer_idx, std::span<const SequenceTokens> batch) {
  const LayerWeights& layer = model_->weights().layers[static_cast<size_t>(layer_idx)];
  PANDO_RETURN_IF_ERROR(Attend(layer_idx, layer, batch));
  return FeedForward(layer);
}

Status Transformer::Attend(int64_t layer_idx, const LayerWeights& layer, std::span<const SequenceTokens> batch) {
  Normalize(layer.attention_norm);
  const std::array<WeightMatrix, 3> qkv = {layer.q, layer.k, layer.v};
  product_.SetInput(qkv, projected_.as<float>(), num_tokens_);
  PANDO_RETURN_IF_ERROR(product_.Multiply(qkv, projected_.as<float>()));
  SplitHeads(layer);
  PANDO_RETURN_IF_ERROR(division_.divides_tokens ? AttendDivided(layer_idx) : AttendBatch(layer_idx, batch));
  product_.SetInput({&layer.o, 1}, attended_, num_tokens_);
  PANDO_RETURN_IF_ERROR(product_.Multiply({&layer.o, 1}, projected_.as<float>()));
  AddToResidual(layer.o_bias);
  return Status();
}

Status Transformer::FeedForward(const LayerWeights& layer) {
  Normalize(layer.ffn_norm);
  const std::array<WeightMatrix, 2> gate_and_up = {layer.gate, layer.up};
  product_.SetInput(gate_and_up, projected_.as<float>(), num_tokens_);
  PANDO_RETURN_IF_ERROR(product_.FeedForward(layer.gate, layer.up, layer.down, division_.down, projected_.as<float>()));
  AddToResidual({});
  return Status();
}

void Transformer::Normalize(std::span<const float> weight) {
  const size_t hidden = weight.size();
  ForTokens([&](size_t token) {
    RmsNorm(residual_.as<float>() + token * hidden, weight.data(), hidden, model_->config().rms_epsilon,
            projected_.as<float>() + token * hidden);
  });
}

void Transformer::AddToResidual(std::span<const float> bias) {
  const size_t hidden = model_->config().hidden;
  ForTokens([&](size_t token) {
    float* output = projected_.as<float>() + token * hidden;
    float* residual = residual_.as<float>() + token * hidden;
    if (!bias.empty()) AddVectors(output, bias.data(), hidden, output);
    AddVectors(residual, output, hidden, residual);
  });
}

void Transformer::SplitHeads(const LayerWeights& layer) {
  ForTokens([&](size_t token) { SplitHeadsOf(layer, token); });
}

void Transformer::SplitHeadsOf(const LayerWeights& layer, size_t token) {
  const ModelConfig& config = model_->config();
  const size_t q_rows = config.q_rows();
  const size_t kv_rows = config.kv_rows();
  float* projected = projected_.as<float>() + token * (q_rows + 2 * kv_rows);
  if (!layer.qkv_bias.empty()) AddVectors(projected, layer.qkv_bias.data(), layer.qkv_bias.size(), projected);
  const size_t pairs = frequencies_.size();
  const std::span<const float> cosines(cosines_.as<float>() + token * pairs, pairs);
  const std::span<const float> sines(sines_.as<float>() + token * pairs, pairs);
  const auto prepare = [&](const float* from, size_t num_heads, const std::vector<float>& norm, float* to) {
    for (size_t head = 0; head < num_heads; ++head, from += config.head_dim, to += config.head_dim) {
      if (norm.empty()) {
        std::copy_n(from, config.head_dim, to);
      } else {
        RmsNorm(from, norm.data(), config.head_dim, config.rms_epsilon, to);
      }
      RotatePairs(config.architecture.rope_pairs, cosines, sines, to);
    }
  };
  prepare(projected, config.num_heads, layer.q_norm, q_ + token * q_rows);
  prepare(projected + q_rows, config.num_kv_heads, layer.k_norm, k_ + token * kv_rows);
  std::copy_n(projected + q_rows + kv_rows, kv_rows, v_ + token * kv_rows);
}

Status Transformer::AttendBatch(int64_t layer_idx, std::span<const SequenceTokens> batch) {
  const size_t q_rows = model_->config().q_rows();
  const size_t kv_rows = model_->config().kv_rows();
  size_t first = 0;
  for (const SequenceTokens& part : batch) {
    const size_t count = part.tokens.size();
    PANDO_RETURN_IF_ERROR(attention_->Append(layer_idx, part.sequence, {k_ + first * kv_rows, count * kv_rows},
                                             {v_ + first * kv_rows, count * kv_rows}));
    first += count;
  }
  // Runs of short parts together, long ones one by one.
  for (size_t part = 0, token = 0; part < batch.size();) {
    const auto is_short = [&](size_t i) { return queries_[i].num_queries <= kMaxDecodeQueries; };
    const bool is_prompt = !is_short(part);
    size_t end = part;
    size_t count = 0;
    do {
      count += batch[end++].tokens.size();
    } while (!is_prompt && end < batch.size() && is_short(end));
    const std::span<const float> queries(q_ + token * q_rows, count * q_rows);
    const std::span<float> output(attended_ + token * q_rows, count * q_rows);
    Status status =
        is_prompt ? attention_->Prefill(layer_idx, queries_[part], queries, output, {})
                  : attention_->Decode(layer_idx, std::span(queries_).subspan(part, end - part), queries, output, {});
    if (!status.ok()) return status;
    times_.attention_seconds += attention_->last_step().compute_seconds;
    times_.merge_seconds += attention_->last_step().merge_seconds;
    part = end;
    token += count;
  }
  return Status();
}

Status Transformer::AttendDivided(int64_t layer_idx) {
  const size_t q_rows = model_->config().q_rows();
  const size_t kv_rows = model_->config().kv_rows();
  const auto rank = static_cast<int>(communicator_.rank());
  const size_t first = tokens_.first_of(rank) - tokens_.first_of_group();
  const std::span<float> mine(attended_ + first * q_rows, tokens_.num_of(rank) * q_rows);
  const TokenVectors vectors = {q_ + first * q_rows, k_ + first * kv_rows, v_ + first * kv_rows};
  Status status =
      attention_->AppendAndAttend(layer_idx, queries_, tokens_.runs(), tokens_.first_of_position(), vectors, mine);
  if (!status.ok()) return status;
  times_.attention_seconds += attention_->last_step().compute_seconds;
  times_.merge_seconds += attention_->last_step().merge_seconds;
  const std::span<const int> members = tokens_.group_ranks();
  if (members.size() == 1) return Status();
  const double start = NowSeconds();
  bytes_of_member_.clear();
  for (const int member : members) bytes_of_member_.push_back(tokens_.num_of(member) * q_rows * sizeof(float));
  const auto all = std::as_writable_bytes(std::span(attended_, num_tokens_ * q_rows));
  status = TransportOf(communicator_).AllGatherAmong(members, std::as_bytes(mine), all, bytes_of_member_);
  times_.gather_seconds += NowSeconds() - start;
  return status;
}

// ---- Logits

// Who answers for a token has its residual stream; where every group has all tokens, so has everyone.
Status Transformer::CollectResidual(std::span<const size_t> wanted) {
  const size_t hidden = model_->config().hidden;
  const auto row = [&](size_t place) { return residual_.as<float>() + (place - tokens_.first_of_group()) * hidden; };
  float* out = projected_.as<float>();
  if (!division_.divides_tokens) {
    for (size_t i = 0; i < wanted.size(); ++i) std::copy_n(row(tokens_.PlaceOf(wanted[i])), hidden, out + i * hidden);
    return Status();
  }
  // The ranks' rows one after the other.
  std::vector<int> rank_of;
  std::vector<size_t> bytes_of_rank(static_cast<size_t>(communicator_.size()));
  for (const size_t token : wanted) {
    rank_of.push_back(tokens_.RankOf(tokens_.PlaceOf(token)));
    bytes_of_rank[static_cast<size_t>(rank_of.back())] += hidden * sizeof(float);
  }
  std::vector<float> mine;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (rank_of[i] != communicator_.rank()) continue;
    const float* from = row(tokens_.PlaceOf(wanted[i]));
    mine.insert(mine.end(), from, from + hidden);
  }
  std::vector<float> all(wanted.size() * hidden);
  const double start = NowSeconds();
  Status status = TransportOf(communicator_)
                      .AllGather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), bytes_of_rank);
  times_.gather_seconds += NowSeconds() - start;
  if (!status.ok()) return status;
  std::vector<size_t> next(bytes_of_rank.size());  // row of a rank
  for (size_t rank = 1; rank < next.size(); ++rank)
    next[rank] = next[rank - 1] + bytes_of_rank[rank - 1] / (hidden * sizeof(float));
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::copy_n(all.data() + next[static_cast<size_t>(rank_of[i])]++ * hidden, hidden, out + i * hidden);
  }
  return Status();
}

Status Transformer::Logits(std::span<const size_t> tokens, std::span<float> logits) {
  const ModelConfig& config = model_->config();
  const bool is_front = communicator_.rank() == 0;
  if (tokens.size() > static_cast<size_t>(options_.max_tokens)) {
    return InvalidArgument("logits of {} tokens: at most {} at a time", tokens.size(), options_.max_tokens);
  }
  if (is_front && logits.size() != tokens.size() * config.vocabulary) {
    return InvalidArgument("logits have {} floats: they must have {} (tokens x vocabulary)", logits.size(),
                           tokens.size() * config.vocabulary);
  }
  for (const size_t token : tokens) {
    if (token >= num_step_tokens_)
      return InvalidArgument("the last step had {} tokens: no number {}", num_step_tokens_, token);
  }
  if (!in_step_) return Failed("an earlier step failed half-way: the ranks are out of step");
  const double start = NowSeconds();
  Status status = CollectResidual(tokens);
  in_step_ = status.ok();
  if (!status.ok()) return status;
  for (size_t i = 0; i < tokens.size(); ++i) {
    float* row = projected_.as<float>() + i * config.hidden;
    RmsNorm(row, model_->weights().output_norm.data(), config.hidden, config.rms_epsilon, row);
  }
  const WeightMatrix& output = model_->weights().output;
  product_.SetInput({&output, 1}, projected_.as<float>(), tokens.size());
  status = product_.MultiplyToFront(output, is_front ? logits.data() : nullptr);
  in_step_ = status.ok();
  if (!status.ok()) return status;
  times_.gather_seconds += product_.TakeGatherSeconds();
  times_.total_seconds += NowSeconds() - start;
  return Status();
}

TransformerTimes Transformer::TakeTimes() { return std::exchange(times_, {}); }

}  // namespace pando
