// Simulated points as rows of the table.
#ifndef PANDO_SRC_CLI_REPORTS_SIMULATE_REPORT_H_
#define PANDO_SRC_CLI_REPORTS_SIMULATE_REPORT_H_

#include <string>

#include "src/cli/commands/simulate_plan.h"
#include "src/cli/reports/table_output.h"
#include "src/planning/simulation_job.h"

namespace pando::cli {

struct SimulatedPoint {
  SimulationPoint point;
  SimulationResult result;
};

// Keys and values on the rank with most, of all layers, with what Ring Attention receives.
double PeakKvBytes(const SimulatedPoint& simulated);

// Whether a rank has the memory for it. What does not fit can be simulated all the same.
bool FitsDevice(const SimulatedPoint& simulated);

// In the formats for programs with all that says what was simulated; in the table for people, which has it above, not.
Row ToTableRow(const SimulatePlan& plan, const SimulatedPoint& simulated);

// What all points have in common: "16 heads on 16 KV heads of 128, keys and values in f16".
std::string DescribeTask(const SimulatePlan& plan);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_REPORTS_SIMULATE_REPORT_H_
