#include "src/planning/prompt_prediction.h"

#include <algorithm>

#include "src/base/errors.h"

namespace pando {
namespace {

// Of very many steps, several are taken together, by the one in their middle.
constexpr int64_t kMostRuns = 4096;

// Equal steps of a prompt, one after the other.
struct Steps {
  int64_t first_token = 0;
  int64_t num_steps = 0;
  int64_t num_tokens = 0;  // of each
  bool is_last = false;

  int64_t ContextAfter(int64_t step) const { return first_token + (step + 1) * num_tokens; }
};

// The division is one for all of them; attention takes longer from one to the next.
Result<DivisionChoice> AddSteps(const Steps& steps, const CostModel& costs, const DeviceModel& device,
                                const ModelShape& model, KvType kv_type, const DivisionOptions& options,
                                PromptPrediction& prediction) {
  const StepWork work = {.tokens_per_sequence = steps.num_tokens,
                         .context_tokens = steps.ContextAfter(steps.num_steps / 2),
                         .num_logits = steps.is_last ? 1 : 0,
                         .kv_type = kv_type};
  PANDO_ASSIGN_OR_RETURN(DivisionCosts prices, DivisionCosts::Create(costs, device, model, work, options.merging));
  const DivisionChoice choice = ChooseDivision(prices, options);
  const int64_t num_runs = std::min(steps.num_steps, kMostRuns);
  for (int64_t run = 0; run < num_runs; ++run) {
    const int64_t begin = PartBegin(steps.num_steps, run, num_runs);
    const int64_t end = PartBegin(steps.num_steps, run + 1, num_runs);
    PANDO_RETURN_IF_ERROR(prices.SetContext(steps.ContextAfter((begin + end - 1) / 2)));
    const auto num_steps = static_cast<double>(end - begin);
    prediction.seconds += prices.SecondsOf(choice.division) * num_steps;
    prediction.one_group += prices.SecondsOf(kOneGroup) * num_steps;
  }
  prediction.weight_bytes = std::max(prediction.weight_bytes, choice.weight_bytes);
  return choice;
}

}  // namespace

Result<PromptPrediction> PredictPrompt(const Machines& machines, const ModelShape& model, const StepTask& task,
                                       const Prompt& prompt) {
  if (prompt.num_tokens < 1)
    return InvalidArgument("a prompt of {} tokens: it must have at least 1", prompt.num_tokens);
  const int ranks_per_node = MostRanksOfANode(machines.topology);
  const int64_t step_tokens = prompt.step_tokens > 0 ? prompt.step_tokens : PromptStepTokens(ranks_per_node);
  PANDO_ASSIGN_OR_RETURN(const RankMemory memory, PredictMemory(model, task, machines.num_ranks(), ranks_per_node,
                                                                machines.nodes_share_weights));
  const CostModel costs = CostsOf(machines);
  const DivisionOptions options = DivisionOptionsOf(machines, task, memory);
  PromptPrediction prediction = {.num_tokens = prompt.num_tokens, .step_tokens = step_tokens};
  // The last one has logits, and may be shorter.
  const int64_t num_before = (prompt.num_tokens - 1) / step_tokens;
  const Steps last = {.first_token = num_before * step_tokens,
                      .num_steps = 1,
                      .num_tokens = prompt.num_tokens - num_before * step_tokens,
                      .is_last = true};
  for (const Steps& steps : {last, Steps{.num_steps = num_before, .num_tokens = step_tokens}}) {
    if (steps.num_steps == 0) continue;
    PANDO_ASSIGN_OR_RETURN(const DivisionChoice choice,
                           AddSteps(steps, costs, machines.device, model, task.kv_type, options, prediction));
    prediction.division = choice.division;
  }
  return prediction;
}

}  // namespace pando
