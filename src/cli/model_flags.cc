#include "src/cli/model_flags.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "src/attention/attention_options.h"
#include "src/base/errors.h"
#include "src/cli/command.h"
#include "src/cli/decimal_list.h"
#include "src/cli/default_model.h"
#include "src/cli/interrupt.h"
#include "src/cli/llama_flags.h"
#include "src/cli/size_list.h"
#include "src/ranks/agreement.h"
#include "src/ranks/rank_access.h"
#include "src/reduction/schedule.h"

namespace pando::cli {
namespace {

constexpr int64_t kMaxContext = int64_t{1} << 31;

Result<KvType> ParseKvTypeOption(std::string_view option, std::string_view name) {
  Result<KvType> type = ParseKvType(name);
  if (type.ok()) return type;
  return InvalidArgument("{}: {}", option, type.status().message());
}

Result<RopeScaling> ParseRopeScaling(std::string_view name) {
  if (const std::optional<RopeScaling> scaling = FindRopeScaling(name); scaling.has_value()) return *scaling;
  return InvalidArgument("--rope-scaling is '{}': it must be none, linear or yarn", name);
}

// Numbers that replace what the file says, where they are given.
Status ParseRopeNumber(std::string_view option, const std::string& text, std::optional<double>& value) {
  if (text.empty()) return Status();
  const Result<double> number = ParseDecimal(option, text, {.min = 1e-6, .max = 1e12});
  if (!number.ok()) return number.status();
  value = *number;
  return Status();
}

Result<RopeOverrides> ParseRope(const ModelFlags& flags) {
  RopeOverrides rope;
  if (!flags.rope_scaling.empty()) {
    const Result<RopeScaling> scaling = ParseRopeScaling(flags.rope_scaling);
    if (!scaling.ok()) return scaling.status();
    rope.scaling = *scaling;
  }
  if (Status status = ParseRopeNumber("--rope-scale", flags.rope_scale, rope.factor); !status.ok()) return status;
  if (Status status = ParseRopeNumber("--rope-freq-base", flags.rope_base, rope.base); !status.ok()) return status;
  Status status = ParseRopeNumber("--yarn-orig-ctx", flags.yarn_original_context, rope.original_context);
  if (!status.ok()) return status;
  return rope;
}

Result<TransformerOptions> ParseTransformer(const ModelFlags& flags) {
  TransformerOptions options;
  const Result<int64_t> batch = ParseSize("--batch-size", flags.batch, {.min = 0, .max = 1 << 16});
  if (!batch.ok()) return batch.status();
  options.max_tokens = *batch;
  const Result<int64_t> threads = ParseSize("--threads", flags.threads, {.min = 0, .max = 1024});
  if (!threads.ok()) return threads.status();
  options.num_threads = *threads;
  const auto parse_kv_type = [&](std::string_view option, const std::string& name) {
    return name.empty() ? ParseKvTypeOption("--kv-type", flags.kv_type) : ParseKvTypeOption(option, name);
  };
  const Result<KvType> k = parse_kv_type("-ctk", flags.k_type);
  if (!k.ok()) return k.status();
  options.k_type = *k;
  const Result<KvType> v = parse_kv_type("-ctv", flags.v_type);
  if (!v.ok()) return v.status();
  options.v_type = *v;
  const Result<Strategy> strategy = ParseStrategy(flags.attention);
  if (!strategy.ok()) return InvalidArgument("--attention: {}", strategy.status().message());
  options.strategy = flags.attention;
  const Result<int64_t> slots = ParseSize("--slots", flags.slots, {.min = 1, .max = kMaxSlots});
  if (!slots.ok()) return slots.status();
  options.tree.num_slots = *slots;
  if (Status status = ValidateTreeShape(options.tree); !status.ok()) {
    return InvalidArgument("--slots: {}", status.message());
  }
  const Result<int64_t> groups = ParseSize("--groups", flags.groups, {.min = 0, .max = 65536});
  if (!groups.ok()) return groups.status();
  options.num_groups = *groups;
  return options;
}

}  // namespace

void AddModelOptions(CLI::App& app, ModelFlags& flags) {
  AddTextOption(app, "-m,--model", "FILE", flags.model, kModelHelp);
  AddTextOption(app, "-c,--ctx-size", "N", flags.context,
                "Tokens of context; 0: as many as needed, up to what the model was trained for");
  AddTextOption(app, "-t,--threads", "N", flags.threads, "Threads of each rank; 0: the cores, shared by the ranks");
  AddTextOption(app, "-b,--batch-size", "N", flags.batch,
                "Tokens of the prompt computed at once; 0: 512, fewer where many ranks share a machine");
  AddTextOption(app, "--kv-type", "TYPE", flags.kv_type, "How keys and values are stored: f32, f16, bf16, q8_0");
  AddTextOption(app, "--cache-type-k", "TYPE", flags.k_type, "The same for keys alone");
  AddTextOption(app, "--cache-type-v", "TYPE", flags.v_type, "The same for values alone");
  AddTextOption(app, "--attention", "NAME", flags.attention,
                fmt::format("Merged by tree, {} or ring", ScheduleNames()));
  AddTextOption(app, "--groups", "N", flags.groups,
                "Groups of ranks that each hold the weights once; 0: as the planner finds best");
  AddTreeAndRopeOptions(app, flags);
  AddLlamaOptions(app);
}

void AddTreeAndRopeOptions(CLI::App& app, ModelFlags& flags) {
  AddTextOption(app, "--slots", "N", flags.slots, "Slots of the tree, a power of two: at most so many ranks");
  AddTextOption(app, "--rope-scaling", "NAME", flags.rope_scaling,
                "How positions are stretched: none, linear or yarn; as the file says if not given");
  AddTextOption(app, "--rope-scale", "N", flags.rope_scale, "By what factor");
  AddTextOption(app, "--rope-freq-base", "N", flags.rope_base, "The base of the rotation's frequencies");
  AddTextOption(app, "--yarn-orig-ctx", "N", flags.yarn_original_context, "The context of training, for yarn");
}

Result<ModelPlan> MakeModelPlan(const ModelFlags& flags) {
  Result<TransformerOptions> transformer = ParseTransformer(flags);
  if (!transformer.ok()) return transformer.status();
  const Result<int64_t> context = ParseSize("-c", flags.context, {.min = 0, .max = kMaxContext});
  if (!context.ok()) return context.status();
  const Result<RopeOverrides> rope = ParseRope(flags);
  if (!rope.ok()) return rope.status();
  const Result<RankPlan> ranks = PlanRanks(flags.ranks);
  if (!ranks.ok()) return ranks.status();
  PANDO_ASSIGN_OR_RETURN(std::string path, ChooseModel(flags.model));
  ModelPlan plan{
      .path = std::move(path), .transformer = std::move(transformer).value(), .rope = *rope, .ranks = *ranks};
  if (*context > 0) plan.context = *context;
  return plan;
}

Status RunModel(const ModelPlan& plan, const std::function<Status(Engine& engine)>& front) {
  return RunModel(plan, plan.ranks, Model::Load(plan.path, plan.rope), front);
}

Status RunModel(const ModelPlan& plan, const RankPlan& ranks, const Result<std::shared_ptr<const Model>>& model,
                const std::function<Status(Engine& engine)>& front) {
  return RunRanks(ranks, [&](Communicator& communicator) {
    // A machine may lack the file that the others have.
    if (Status status = Agree(TransportOf(communicator), model.status()); !status.ok()) return status;
    // A Ctrl-C is the front's matter, which tells its workers when to end.
    std::optional<WorkerPatience> patience;
    if (ranks.with_mpi && communicator.rank() != 0) patience.emplace();
    return Engine::Run(communicator, *model, plan.transformer, front);
  });
}

}  // namespace pando::cli
