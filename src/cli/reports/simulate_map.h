// `pando simulate --map`: which schedule merges fastest, over message sizes and numbers of ranks, and what the planner
// chooses there.
#ifndef PANDO_SRC_CLI_REPORTS_SIMULATE_MAP_H_
#define PANDO_SRC_CLI_REPORTS_SIMULATE_MAP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/cli/commands/simulate_plan.h"
#include "src/cli/reports/simulate_report.h"
#include "src/cli/reports/table_output.h"
#include "src/plot/svg_grid.h"

namespace pando::cli {

struct ScheduleTime {
  std::string schedule;
  double merge_seconds = 0;  // from when partial results are there until the result is
};

// A number of ranks and a batch.
struct MapCell {
  int num_ranks = 0;
  int num_nodes = 0;
  int64_t batch = 0;
  int64_t message_bytes = 0;        // of one partial result: a rank's state, all heads and sequences
  std::vector<ScheduleTime> times;  // of all schedules that can be chosen, but for IsLeftOut
  std::string winner;               // the fastest, or the chosen one where it is as good
  double best_seconds = 0;          // of the fastest
  std::string chosen;               // by the planner
  double chosen_seconds = 0;
};

// What takes at most so many times as long as the fastest is as good: the simulation does not tell them apart.
inline constexpr double kAsGood = 1.01;

// What a map simulates of each cell: "tree", and all that the planner chooses from.
std::vector<std::string> MapStrategies();

// Whether this point of a map is not simulated: an allreduce of more than kMaxMapBytes. Its operands have room for many
// states; where messages are so large that this counts, others send far less.
bool IsLeftOut(const SimulationJob& job);
inline constexpr double kMaxMapBytes = 4e9;

// Tokens, few and equally many on all ranks that the slots can be dealt to equally: what is mapped is the merge.
int64_t MapContext(int64_t num_slots);

// Those of `plan` of which all points are there.
std::vector<MapCell> MakeMap(const SimulatePlan& plan, const std::vector<SimulatedPoint>& points);

Row ToTableRow(const SimulatePlan& plan, const MapCell& cell);

// What is mapped: "the merge of 16 heads of 128".
std::string DescribeMapTask(const SimulatePlan& plan);

// In a sentence: how far the planner's choice is from the best. Of at least one cell.
std::string DescribeMap(const std::vector<MapCell>& cells);

// Of at least one cell.
GridFigure MakeMapFigure(const SimulatePlan& plan, const std::vector<MapCell>& cells);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_REPORTS_SIMULATE_MAP_H_
