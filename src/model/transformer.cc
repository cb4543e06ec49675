#include "src/model/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "src/attention/agreement.h"
#include "src/attention/attention_options.h"
#include "src/attention/communicator_state.h"
#include "src/base/clock.h"
#include "src/base/errors.h"
#include "src/base/memory.h"
#include "src/base/printable.h"
#include "src/kernels/vector_ops.h"
#include "src/kv_cache/owned_chunks.h"

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
  const int64_t pages = OwnedChunks(options.tree, options.slots).CountBefore(NumChunks(options.tree, held));
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
      "--rope-scaling {} --rope-scale {} --rope-freq-base {} --yarn-orig-ctx {} --chunk-tokens {}",
      Printable(config.name, kMaxNameBytes), config.num_layers, config.hidden, config.ffn, config.vocabulary,
      model.bytes_per_token(), options.max_tokens, KvTypeName(options.k_type), KvTypeName(options.v_type),
      options.strategy, options.tree.num_slots, RopeScalingName(rope.scaling), rope.factor, rope.base,
      rope.original_context, options.tree.chunk_tokens);
}

// Up to this many queries of one sequence go through the kernel for decoding, which reads keys and values once for all
// of them and divides its work finely; more go through the one for prompts. Both give the same bits.
constexpr size_t kMaxDecodeQueries = 4;

}  // namespace

Result<std::unique_ptr<Transformer>> Transformer::Create(Communicator& communicator, std::shared_ptr<const Model> model,
                                                         const TransformerOptions& wanted) {
  Transport& transport = *StateOf(communicator).transport;
  if (Status status = AgreeOnOptions(transport, DescribeOptions(*model, wanted)); !status.ok()) return status;
  constexpr int64_t kMostTokens = 1 << 16;
  if (wanted.max_tokens < 0 || wanted.max_tokens > kMostTokens) {
    return InvalidArgument("{} tokens per step: it must be from 1 to {}, or 0", wanted.max_tokens, kMostTokens);
  }
  TransformerOptions options = wanted;
  if (options.max_tokens == 0) options.max_tokens = DefaultStepTokens(transport);
  const AttentionOptions attention = AttentionOptionsOf(model->config(), options);
  if (Status status = CacheOptionsOf(attention, {}).status(); !status.ok()) return status;
  const size_t num_threads = NumThreadsOf(attention, transport.num_neighbours());
  std::unique_ptr<Transformer> transformer(new Transformer(communicator, std::move(model), options, num_threads));
  Result<std::unique_ptr<RankAttention>> rank = RankAttention::Create(communicator, attention, &transformer->pool_);
  if (!rank.ok()) return rank.status();
  transformer->attention_ = std::move(rank).value();
  const Status grown = transformer->GrowBuffers();
  if (Status status = Agree(transport, grown); !status.ok()) return status;
  return transformer;
}

Transformer::Transformer(Communicator& communicator, std::shared_ptr<const Model> model,
                         const TransformerOptions& options, size_t num_threads)
    : model_(std::move(model)),
      options_(options),
      communicator_(communicator),
      pool_(num_threads),
      product_(*StateOf(communicator).transport, pool_),
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
                                                                     {&inside_, std::max(attending, config.ffn)},
                                                                     {&cosines_, frequencies_.size()},
                                                                     {&sines_, frequencies_.size()}}};
  for (const auto& [buffer, width] : buffers) {
    if (Status status = grow(*buffer, width); !status.ok()) return status;
  }
  inner_ = q_ = inside_.as<float>();
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
  Transport& transport = *StateOf(communicator_).transport;
  // Memory that was got and not yet touched is not missing to others: each rank alone may find enough for itself.
  const Status together = CheckMachineMemory(transport, BytesToReserve(cache, num_tokens, options_.max_tokens));
  if (Status status = Agree(transport, together); !status.ok()) return status;
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
  return begins_chunk ? Agree(*StateOf(communicator_).transport, mine) : Status();
}

Status Transformer::Step(std::span<const SequenceTokens> batch) {
  if (!in_step_) return Failed("an earlier step failed half-way: the ranks are out of step");
  if (Status status = CheckBatch(batch); !status.ok()) return status;
  if (Status status = TakePages(batch); !status.ok()) return status;
  Status status = RunStep(batch);
  in_step_ = status.ok();
  return status;
}

Status Transformer::RunStep(std::span<const SequenceTokens> batch) {
  const double start = NowSeconds();
  Embed(batch);
  for (size_t layer = 0; layer < model_->config().num_layers; ++layer) {
    if (Status status = RunLayer(static_cast<int64_t>(layer), batch); !status.ok()) return status;
  }
  times_.gather_seconds += product_.TakeGatherSeconds();
  times_.total_seconds += NowSeconds() - start;
  return Status();
}

// Rows of the embedding, and the angles of the tokens' positions.
void Transformer::Embed(std::span<const SequenceTokens> batch) {
  const size_t hidden = model_->config().hidden;
  const size_t pairs = frequencies_.size();
  num_tokens_ = 0;
  queries_.clear();
  for (const SequenceTokens& part : batch) {
    const int64_t first_position = attention_->cache().num_tokens(0, part.sequence);
    queries_.push_back({part.sequence, static_cast<int64_t>(part.tokens.size())});
    for (size_t i = 0; i < part.tokens.size(); ++i, ++num_tokens_) {
      DequantizeRow(model_->weights().embedding, static_cast<size_t>(part.tokens[i]),
                    residual_.as<float>() + num_tokens_ * hidden);
      RopeAngles(frequencies_, rope_magnitude_, first_position + static_cast<int64_t>(i),
                 {cosines_.as<float>() + num_tokens_ * pairs, pairs},
                 {sines_.as<float>() + num_tokens_ * pairs, pairs});
    }
  }
}

Status Transformer::RunLayer(int64_t layer_idx, std::span<const SequenceTokens> batch) {
  const LayerWeights& layer = model_->weights().layers[static_cast<size_t>(layer_idx)];
  if (Status status = Attend(layer_idx, layer, batch); !status.ok()) return status;
  return FeedForward(layer);
}

Status Transformer::Attend(int64_t layer_idx, const LayerWeights& layer, std::span<const SequenceTokens> batch) {
  Normalize(layer.attention_norm);
  const std::array<WeightMatrix, 3> qkv = {layer.q, layer.k, layer.v};
  product_.SetInput(qkv, projected_.as<float>(), num_tokens_);
  if (Status status = product_.Multiply(qkv, projected_.as<float>()); !status.ok()) return status;
  SplitHeads(layer);
  if (Status status = AttendBatch(layer_idx, batch); !status.ok()) return status;
  product_.SetInput({&layer.o, 1}, attended_, num_tokens_);
  if (Status status = product_.Multiply({&layer.o, 1}, projected_.as<float>()); !status.ok()) return status;
  AddToResidual(layer.o_bias);
  return Status();
}

Status Transformer::FeedForward(const LayerWeights& layer) {
  Normalize(layer.ffn_norm);
  const std::array<WeightMatrix, 2> gate_and_up = {layer.gate, layer.up};
  product_.SetInput(gate_and_up, projected_.as<float>(), num_tokens_);
  if (Status status = product_.MultiplyGated(layer.gate, layer.up, inner_); !status.ok()) return status;
  product_.SetInput({&layer.down, 1}, inner_, num_tokens_);
  if (Status status = product_.Multiply({&layer.down, 1}, projected_.as<float>()); !status.ok()) return status;
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
    if (Status status = attention_->Append(layer_idx, part.sequence, {k_ + first * kv_rows, count * kv_rows},
                                           {v_ + first * kv_rows, count * kv_rows});
        !status.ok())
      return status;
    first += count;
  }
  // Runs of short parts together, long ones one by one.
  for (size_t part = 0, token = 0; part < batch.size();) {
    const bool is_prompt = batch[part].tokens.size() > kMaxDecodeQueries;
    size_t end = part;
    size_t count = 0;
    do {
      count += batch[end++].tokens.size();
    } while (!is_prompt && end < batch.size() && batch[end].tokens.size() <= kMaxDecodeQueries);
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

// ---- Logits

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
    if (token >= num_tokens_) return InvalidArgument("the last step had {} tokens: no number {}", num_tokens_, token);
  }
  if (!in_step_) return Failed("an earlier step failed half-way: the ranks are out of step");
  const double start = NowSeconds();
  for (size_t i = 0; i < tokens.size(); ++i) {
    RmsNorm(residual_.as<float>() + tokens[i] * config.hidden, model_->weights().output_norm.data(), config.hidden,
            config.rms_epsilon, projected_.as<float>() + i * config.hidden);
  }
  const WeightMatrix& output = model_->weights().output;
  product_.SetInput({&output, 1}, projected_.as<float>(), tokens.size());
  Status status = product_.MultiplyToFront(output, is_front ? logits.data() : nullptr);
  in_step_ = status.ok();
  if (!status.ok()) return status;
  times_.gather_seconds += product_.TakeGatherSeconds();
  times_.total_seconds += NowSeconds() - start;
  return Status();
}

TransformerTimes Transformer::TakeTimes() { return std::exchange(times_, {}); }

}  // namespace pando
