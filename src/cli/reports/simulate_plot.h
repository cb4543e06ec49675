// The figure of `pando simulate --plot`: time per step and bytes sent per rank, a line for each strategy. Over the
// context, with a row of panels for each number of ranks; where there is one context and several numbers of ranks, over
// the ranks.
#ifndef PANDO_SRC_CLI_REPORTS_SIMULATE_PLOT_H_
#define PANDO_SRC_CLI_REPORTS_SIMULATE_PLOT_H_

#include <vector>

#include "src/cli/commands/simulate_plan.h"
#include "src/cli/reports/simulate_report.h"
#include "src/plot/svg_plot.h"

namespace pando::cli {

// Of at least one point.
PlotFigure MakeSimulateFigure(const SimulatePlan& plan, const std::vector<SimulatedPoint>& points);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_REPORTS_SIMULATE_PLOT_H_
