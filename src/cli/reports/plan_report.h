// What `pando plan` says: plain data, written as text or as rows. A test can invent it.
#ifndef PANDO_SRC_CLI_REPORTS_PLAN_REPORT_H_
#define PANDO_SRC_CLI_REPORTS_PLAN_REPORT_H_

#include <string>
#include <vector>

#include "src/cli/reports/table_output.h"
#include "src/planning/cluster_plan.h"
#include "src/planning/model_shape.h"
#include "src/planning/step_prediction.h"

namespace pando::cli {

struct PlanReport {
  std::string platform;  // "dgx-h100", or empty for the machines at hand
  std::string description;
  DeviceModel device;  // of a rank; of the machines at hand, of a whole one
  int max_ranks = 1;
  ModelShape model;
  StepTask task;
  ClusterPlan plan;
};

// "16 groups of 8", "one group", "a group for each rank, with all weights".
std::string DescribeGroups(const StepDivision& division, int num_ranks);

// One for each number of ranks. Memory in GiB for people and in bytes for programs, milliseconds per token (a step
// gives each sequence of the batch one), and tokens per second of all sequences; of a prompt, seconds to the first
// token. "advice" is "fewest", "recommended", "fastest", several of them, or empty.
std::vector<Row> PlanRows(const PlanReport& report, TableFormat format);

// The rows with what was asked above, and the answer below.
std::string RenderPlanText(const PlanReport& report);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_REPORTS_PLAN_REPORT_H_
