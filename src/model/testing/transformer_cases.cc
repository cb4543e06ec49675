#include "src/model/testing/transformer_cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "src/model/testing/tiny_model.h"

namespace pando::test_support {
namespace {

std::shared_ptr<const Model> LoadOrDie(const TinyModel& tiny, const RopeOverrides& overrides = {}) {
  return tiny.Load(overrides).value();
}

TinyModel MixedTypes() {
  TinyModel tiny = MakeTinyModel({.hidden = 256, .ffn = 256, .heads = 8, .kv_heads = 2, .head_dim = 32});
  size_t next = 0;
  for (auto& [name, tensor] : tiny.tensors) {
    if (!name.starts_with("blk.") || tensor.shape.size() < 2) continue;
    const WeightType type = AllWeightTypes()[next++ % AllWeightTypes().size()];
    tensor = RandomMatrix(type, tensor.shape[1], tensor.shape[0], 1.0 / 16, next);
  }
  return tiny;
}

TransformerOptions OptionsOf(const Division& division, KvType kv_type) {
  return {.max_tokens = std::max<int64_t>(8, division.step_tokens),
          .k_type = kv_type,
          .v_type = kv_type,
          .tree = {.num_slots = division.num_slots, .chunk_tokens = 16},
          .strategy = division.strategy,
          .num_threads = division.num_threads,
          .division = division.step};
}

}  // namespace

const std::vector<NamedModel>& Models() {
  static const std::vector<NamedModel> models = [] {
    TinyModel part_turns = MakeTinyModel({.architecture = "qwen2", .heads = 3, .kv_heads = 3, .head_dim = 24});
    part_turns.keys["rope.dimension_count"] = uint32_t{10};
    TinyModel yarn = MakeTinyModel({.heads = 6, .kv_heads = 3, .vocabulary = 33});
    yarn.keys["rope.scaling.type"] = std::string("yarn");
    yarn.keys["rope.scaling.factor"] = 4.0f;
    yarn.keys["rope.scaling.original_context_length"] = uint32_t{40};
    return std::vector<NamedModel>{
        {"llama", LoadOrDie(MakeTinyModel({}))},
        {"llama, 9 heads on 3",
         LoadOrDie(
             MakeTinyModel({.hidden = 40, .ffn = 56, .heads = 9, .kv_heads = 3, .head_dim = 8, .vocabulary = 1}))},
        {"llama, biases, divisors, tied",
         LoadOrDie(MakeTinyModel({.has_output = false, .has_biases = true, .has_divisors = true}))},
        {"llama, window", LoadOrDie(MakeTinyModel({.vocabulary = 19, .window = 21}))},
        {"llama, linear", LoadOrDie(MakeTinyModel({}), {.scaling = RopeScaling::kLinear, .factor = 3.0})},
        {"llama, yarn", LoadOrDie(yarn)},
        {"llama, q4_0 and q8_0",
         LoadOrDie(
             MakeTinyModel({.type = WeightType::kQ4_0, .embedding_type = WeightType::kQ8_0, .has_output = false}))},
        {"llama, all types", LoadOrDie(MixedTypes())},
        {"qwen2", LoadOrDie(MakeTinyModel({.architecture = "qwen2", .type = WeightType::kQ5_1}))},
        {"qwen2, part of a head turns", LoadOrDie(part_turns)},
        {"qwen3", LoadOrDie(MakeTinyModel({.architecture = "qwen3", .head_dim = 32}))},
        {"qwen3, bf16", LoadOrDie(MakeTinyModel({.architecture = "qwen3", .type = WeightType::kBF16}))},
    };
  }();
  return models;
}

std::string NameOf(const Division& division) {
  const StepDivision step = division.step.value_or(StepDivision());
  return fmt::format("{} ranks, {} threads, steps of {}, {}, {} groups{}, down {}", division.num_ranks,
                     division.num_threads, division.step_tokens, division.strategy, step.num_groups,
                     step.divides_tokens ? " with tokens of their own" : "", static_cast<int>(step.down));
}

void RunOnRanks(const std::shared_ptr<const Model>& model, const Division& division, KvType kv_type,
                const std::function<Status(Transformer& transformer, bool is_front)>& function) {
  const Status status = RunInProcess(division.num_ranks, {}, [&](Communicator& communicator) {
    Result<std::unique_ptr<Transformer>> transformer =
        Transformer::Create(communicator, model, OptionsOf(division, kv_type));
    if (!transformer.ok()) return transformer.status();
    return function(**transformer, communicator.rank() == 0);
  });
  ASSERT_TRUE(status.ok()) << NameOf(division) << ": " << status.message();
}

Feed::Feed(Transformer& transformer, bool is_front)
    : Feed(transformer, is_front, transformer.attention().cache().AddSequence()) {}

Feed::Feed(Transformer& transformer, bool is_front, int64_t sequence)
    : transformer_(transformer), is_front_(is_front), sequence_(sequence) {}

Status Feed::Add(std::span<const int32_t> tokens, size_t step_tokens) {
  for (size_t first = 0; first < tokens.size(); first += step_tokens) {
    const SequenceTokens part = {sequence_, tokens.subspan(first, std::min(step_tokens, tokens.size() - first))};
    if (Status status = transformer_.Step({&part, 1}); !status.ok()) return status;
    last_ = part.tokens.size() - 1;
  }
  return Status();
}

Status Feed::AppendLogits(std::vector<float>& logits) {
  std::vector<float> more(is_front_ ? transformer_.model().config().vocabulary : 0);
  Status status = transformer_.Logits({&last_, 1}, more);
  logits.insert(logits.end(), more.begin(), more.end());
  return status;
}

std::vector<float> LogitsOf(const std::shared_ptr<const Model>& model, std::span<const int32_t> prompt,
                            const Division& division, KvType kv_type) {
  std::vector<float> logits;
  RunOnRanks(model, division, kv_type, [&](Transformer& transformer, bool is_front) -> Status {
    std::vector<float> mine;
    Feed feed(transformer, is_front);
    if (Status status = feed.Add(prompt, static_cast<size_t>(division.step_tokens)); !status.ok()) return status;
    if (Status status = feed.AppendLogits(mine); !status.ok()) return status;
    for (const int32_t token : {0, 0, static_cast<int32_t>(model->config().vocabulary) - 1}) {
      if (Status status = feed.Add({&token, 1}, 1); !status.ok()) return status;
      if (Status status = feed.AppendLogits(mine); !status.ok()) return status;
    }
    if (is_front) logits = mine;
    return Status();
  });
  return logits;
}

std::vector<int32_t> PromptFor(const NamedModel& named, size_t count) {
  return RandomPrompt(count, named.model->config().vocabulary, 17);
}

}  // namespace pando::test_support
