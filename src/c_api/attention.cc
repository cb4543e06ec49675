// The attention of pando.h.
#include "pando/attention.h"

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "src/c_api/call.h"

struct pando_attention {  // NOLINT(readability-identifier-naming)
  // Destroyed after the attention that uses it.
  std::shared_ptr<pando::Communicator> communicator;
  pando::Attention attention;
  std::vector<pando::SequenceQueries> sequences;  // of the decode step, kept for its memory
  std::string schedule;                           // of the last report
};

namespace pando::c_api {
namespace {

Result<KvType> KvTypeOf(const char* name, int32_t type) {
  switch (type) {
    case PANDO_KV_F32:
      return KvType::kF32;
    case PANDO_KV_F16:
      return KvType::kF16;
    case PANDO_KV_BF16:
      return KvType::kBF16;
    case PANDO_KV_Q8_0:
      return KvType::kQ8_0;
    default:
      return InvalidArgument("{} is {}: it must be one of PANDO_KV_F32, PANDO_KV_F16, PANDO_KV_BF16, PANDO_KV_Q8_0",
                             name, type);
  }
}

int32_t CTypeOf(KvType type) {
  switch (type) {
    case KvType::kF32:
      return PANDO_KV_F32;
    case KvType::kF16:
      return PANDO_KV_F16;
    case KvType::kBF16:
      return PANDO_KV_BF16;
    case KvType::kQ8_0:
      break;
  }
  return PANDO_KV_Q8_0;
}

pando_attention_options Defaults() {
  static const AttentionOptions kDefaults;
  return {.struct_size = sizeof(pando_attention_options),
          .num_heads = kDefaults.num_heads,
          .num_kv_heads = kDefaults.num_kv_heads,
          .head_dim = kDefaults.head_dim,
          .num_layers = kDefaults.num_layers,
          .k_type = CTypeOf(kDefaults.k_type),
          .v_type = CTypeOf(kDefaults.v_type),
          .scale = std::numeric_limits<float>::quiet_NaN(),
          .softcap = kDefaults.softcap,
          .window = 0,
          .sinks = nullptr,
          .num_sinks = 0,
          .num_slots = kDefaults.tree.num_slots,
          .chunk_tokens = kDefaults.tree.chunk_tokens,
          .strategy = kDefaults.strategy.c_str(),
          .rank_weights = nullptr,
          .num_rank_weights = 0,
          .num_threads = kDefaults.num_threads};
}

// Before anything is read from the arrays: a wrong number may be a wild one.
Status CheckArrays(const char* function, const pando_attention_options& options, int64_t num_ranks) {
  Status status = CheckPointers(function, {{options.strategy, "strategy"},
                                           {options.sinks, "sinks", options.num_sinks},
                                           {options.rank_weights, "rank_weights", options.num_rank_weights}});
  if (!status.ok()) return status;
  if (options.num_sinks != 0 && std::cmp_not_equal(options.num_sinks, options.num_heads)) {
    return InvalidArgument("num_sinks is {} for {} heads: it must be one per head, or 0", options.num_sinks,
                           options.num_heads);
  }
  if (options.num_rank_weights != 0 && std::cmp_not_equal(options.num_rank_weights, num_ranks)) {
    return InvalidArgument("num_rank_weights is {} for {} ranks: it must be one per rank, or 0",
                           options.num_rank_weights, num_ranks);
  }
  return Status();
}

Result<AttentionOptions> OptionsOf(const char* function, const pando_attention_options& options, int64_t num_ranks) {
  if (Status status = CheckSize("attention options", options, "call pando_attention_options_init first"); !status.ok())
    return status;
  if (Status status = CheckArrays(function, options, num_ranks); !status.ok()) return status;
  const Result<KvType> k_type = KvTypeOf("k_type", options.k_type);
  if (!k_type.ok()) return k_type.status();
  const Result<KvType> v_type = KvTypeOf("v_type", options.v_type);
  if (!v_type.ok()) return v_type.status();
  AttentionOptions result{.num_heads = options.num_heads,
                          .num_kv_heads = options.num_kv_heads,
                          .head_dim = options.head_dim,
                          .num_layers = options.num_layers,
                          .k_type = *k_type,
                          .v_type = *v_type,
                          .softcap = options.softcap,
                          .tree = {.num_slots = options.num_slots, .chunk_tokens = options.chunk_tokens},
                          .strategy = options.strategy,
                          .num_threads = options.num_threads};
  if (!std::isnan(options.scale)) result.scale = options.scale;
  if (options.window != 0) result.window = options.window;
  result.sinks.assign(options.sinks, options.sinks + options.num_sinks);
  result.rank_weights.assign(options.rank_weights, options.rank_weights + options.num_rank_weights);
  return result;
}

Status Create(const char* function, std::shared_ptr<Communicator> communicator,
              const pando_attention_options& c_options, pando_attention** place) {
  const Result<AttentionOptions> options = OptionsOf(function, c_options, communicator->size());
  if (!options.ok()) return options.status();
  Result<Attention> attention = Attention::Create(*communicator, *options);
  if (!attention.ok()) return attention.status();
  *place = new pando_attention{std::move(communicator), std::move(attention).value(), {}, {}};
  return Status();
}

// The batch in C++, in memory that stays.
std::span<const SequenceQueries> BatchOf(pando_attention& attention,
                                         std::span<const pando_sequence_queries> sequences) {
  attention.sequences.clear();
  for (const pando_sequence_queries& queries : sequences) {
    attention.sequences.push_back({queries.sequence, queries.num_queries});
  }
  return attention.sequences;
}

Status FillReport(pando_attention& attention, pando_step_report& place) {
  if (Status status = CheckSize("the step report", place, "set it to sizeof(pando_step_report)"); !status.ok())
    return status;
  const StepReport& report = attention.attention.last_step();
  attention.schedule = report.schedule;
  place = {.struct_size = sizeof(pando_step_report),
           .schedule = attention.schedule.c_str(),
           .compute_seconds = report.compute_seconds,
           .merge_seconds = report.merge_seconds,
           .messages_sent = report.messages_sent,
           .bytes_sent = report.bytes_sent};
  return Status();
}

Status FillMemory(const pando_attention& attention, pando_memory& place) {
  if (Status status = CheckSize("the memory report", place, "set it to sizeof(pando_memory)"); !status.ok())
    return status;
  const AttentionMemory memory = attention.attention.memory();
  place = {.struct_size = sizeof(pando_memory),
           .used = memory.used,
           .shared = memory.shared,
           .allocated = memory.allocated,
           .buffers = memory.buffers};
  return Status();
}

}  // namespace
}  // namespace pando::c_api

using pando::Status;
using pando::c_api::RunCall;

pando_status pando_attention_options_init_size(pando_attention_options* options, size_t struct_size) {
  return RunCall(__func__, {{options, "options"}}, [&] {
    return pando::c_api::InitStruct("pando_attention_options", options, struct_size, pando::c_api::Defaults());
  });
}

pando_status pando_attention_create(pando_communicator* communicator, const pando_attention_options* options,
                                    pando_attention** attention) {
  const char* function = __func__;
  return RunCall(function, {{communicator, "communicator"}, {options, "options"}, {attention, "attention"}},
                 [&] { return pando::c_api::Create(function, communicator->communicator, *options, attention); });
}

pando_status pando_attention_create_alone(const pando_attention_options* options, pando_attention** attention) {
  const char* function = __func__;
  return RunCall(function, {{options, "options"}, {attention, "attention"}}, [&] {
    auto alone = std::make_shared<pando::Communicator>(pando::Communicator::Alone());
    return pando::c_api::Create(function, std::move(alone), *options, attention);
  });
}

void pando_attention_destroy(pando_attention* attention) { delete attention; }

pando_status pando_attention_add_sequence(pando_attention* attention, int64_t* sequence) {
  return RunCall(__func__, {{attention, "attention"}, {sequence, "sequence"}}, [&] {
    *sequence = attention->attention.AddSequence();
    return Status();
  });
}

pando_status pando_attention_fork_sequence(pando_attention* attention, int64_t parent, int64_t* sequence) {
  return RunCall(__func__, {{attention, "attention"}, {sequence, "sequence"}},
                 [&] { return pando::c_api::Give(attention->attention.ForkSequence(parent), sequence); });
}

pando_status pando_attention_remove_sequence(pando_attention* attention, int64_t sequence) {
  return RunCall(__func__, {{attention, "attention"}}, [&] { return attention->attention.RemoveSequence(sequence); });
}

pando_status pando_attention_truncate(pando_attention* attention, int64_t sequence, int64_t num_tokens) {
  return RunCall(__func__, {{attention, "attention"}},
                 [&] { return attention->attention.Truncate(sequence, num_tokens); });
}

pando_status pando_attention_reserve(pando_attention* attention, int64_t num_tokens) {
  return RunCall(__func__, {{attention, "attention"}}, [&] { return attention->attention.Reserve(num_tokens); });
}

pando_status pando_attention_append(pando_attention* attention, int64_t layer, int64_t sequence, const float* k,
                                    size_t num_k, const float* v, size_t num_v) {
  return RunCall(__func__, {{attention, "attention"}, {k, "k", num_k}, {v, "v", num_v}}, [&] {
    return attention->attention.Append(layer, sequence, {k, num_k}, {v, num_v});
  });
}

pando_status pando_attention_get_num_tokens(const pando_attention* attention, int64_t layer, int64_t sequence,
                                            int64_t* num_tokens) {
  return RunCall(__func__, {{attention, "attention"}, {num_tokens, "num_tokens"}},
                 [&] { return pando::c_api::Give(attention->attention.NumTokens(layer, sequence), num_tokens); });
}

pando_status pando_attention_decode(pando_attention* attention, int64_t layer, const pando_sequence_queries* sequences,
                                    size_t num_sequences, const float* queries, size_t num_queries, float* output,
                                    size_t num_output, float* lse, size_t num_lse) {
  return RunCall(__func__,
                 {{attention, "attention"},
                  {sequences, "sequences", num_sequences},
                  {queries, "queries", num_queries},
                  {output, "output", num_output},
                  {lse, "lse", num_lse}},
                 [&] {
                   return attention->attention.Decode(layer,
                                                      pando::c_api::BatchOf(*attention, {sequences, num_sequences}),
                                                      {queries, num_queries}, {output, num_output}, {lse, num_lse});
                 });
}

pando_status pando_attention_prefill(pando_attention* attention, int64_t layer, pando_sequence_queries sequence,
                                     const float* queries, size_t num_queries, float* output, size_t num_output,
                                     float* lse, size_t num_lse) {
  return RunCall(__func__,
                 {{attention, "attention"},
                  {queries, "queries", num_queries},
                  {output, "output", num_output},
                  {lse, "lse", num_lse}},
                 [&] {
                   return attention->attention.Prefill(layer, {sequence.sequence, sequence.num_queries},
                                                       {queries, num_queries}, {output, num_output}, {lse, num_lse});
                 });
}

pando_status pando_attention_set_strategy(pando_attention* attention, const char* strategy) {
  return RunCall(__func__, {{attention, "attention"}, {strategy, "strategy"}},
                 [&] { return attention->attention.SetStrategy(strategy); });
}

pando_status pando_attention_rebalance(pando_attention* attention, const double* rank_weights,
                                       size_t num_rank_weights) {
  return RunCall(__func__, {{attention, "attention"}, {rank_weights, "rank_weights", num_rank_weights}}, [&] {
    return attention->attention.Rebalance({rank_weights, num_rank_weights});
  });
}

pando_status pando_attention_save(pando_attention* attention, const char* prefix) {
  return RunCall(__func__, {{attention, "attention"}, {prefix, "prefix"}},
                 [&] { return attention->attention.Save(prefix); });
}

pando_status pando_attention_load(pando_attention* attention, const char* prefix) {
  return RunCall(__func__, {{attention, "attention"}, {prefix, "prefix"}},
                 [&] { return attention->attention.Load(prefix); });
}

pando_status pando_attention_get_slots(const pando_attention* attention, int64_t* begin, int64_t* end) {
  return RunCall(__func__, {{attention, "attention"}, {begin, "begin"}, {end, "end"}}, [&] {
    const pando::SlotRange slots = attention->attention.slots();
    *begin = slots.begin;
    *end = slots.end;
    return Status();
  });
}

pando_status pando_attention_get_memory(const pando_attention* attention, pando_memory* memory) {
  return RunCall(__func__, {{attention, "attention"}, {memory, "memory"}},
                 [&] { return pando::c_api::FillMemory(*attention, *memory); });
}

pando_status pando_attention_get_last_step(pando_attention* attention, pando_step_report* report) {
  return RunCall(__func__, {{attention, "attention"}, {report, "report"}},
                 [&] { return pando::c_api::FillReport(*attention, *report); });
}
