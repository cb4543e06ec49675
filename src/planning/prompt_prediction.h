// What reading a prompt would take: seconds until the first token comes out. As step_prediction.h, step by step.
//
//   Result<PromptPrediction> prompt = PredictPrompt(machines, model, {}, {.num_tokens = 131072});
//   prompt->tokens_per_second()
#ifndef PANDO_SRC_PLANNING_PROMPT_PREDICTION_H_
#define PANDO_SRC_PLANNING_PROMPT_PREDICTION_H_

#include <cstdint>

#include "pando/status.h"
#include "src/planning/model_shape.h"
#include "src/planning/step_prediction.h"
#include "src/reduction/step_division.h"

namespace pando {

struct Prompt {
  int64_t num_tokens = 0;   // at least 1
  int64_t step_tokens = 0;  // that go through the model at a time; 0: as many as usual (PromptStepTokens)
};

struct PromptPrediction {
  int64_t num_tokens = 0;
  int64_t step_tokens = 0;
  StepDivision division;    // of a step of `step_tokens`
  double weight_bytes = 0;  // of the rank that holds most
  StepSeconds seconds;      // of all steps, to the logits of the last token
  StepSeconds one_group;    // the same by rows over all ranks

  // If no message travelled while attention is computed.
  double sequential_seconds() const { return seconds.total() + seconds.hidden; }
  double tokens_per_second() const { return static_cast<double>(num_tokens) / seconds.total(); }
};

// One sequence that is empty before. The division of each size of step is chosen as at run time. `task` says what keys
// and values are, which schedule or groups to take, and what else takes memory.
Result<PromptPrediction> PredictPrompt(const Machines& machines, const ModelShape& model, const StepTask& task,
                                       const Prompt& prompt);

}  // namespace pando

#endif  // PANDO_SRC_PLANNING_PROMPT_PREDICTION_H_
