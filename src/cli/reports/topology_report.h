// What `pando topology` says: plain data, written as text or JSON. A test can invent it.
#ifndef PANDO_SRC_CLI_REPORTS_TOPOLOGY_REPORT_H_
#define PANDO_SRC_CLI_REPORTS_TOPOLOGY_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/reduction/cost_model.h"
#include "src/reduction/schedule.h"
#include "src/reduction/step_division.h"

namespace pando::cli {

struct ScheduleReport {
  Schedule schedule = Schedule::kButterfly;
  double predicted_seconds = 0;
  double measured_seconds = 0;
  bool can_be_chosen = true;  // false: for comparison only
};

// In which groups the ranks would compute a model.
struct GroupsReport {
  std::string model;
  int64_t batch = 1;           // sequences that decode at once; a prompt is one sequence
  int64_t context_tokens = 0;  // of each, and of a prompt
  StepDivision decoding;
  StepDivision prompts;
  bool fits = true;  // the memory of the machines

  bool are_several() const { return decoding.num_groups > 1 || prompts.num_groups > 1; }
  bool differ() const { return decoding.num_groups != prompts.num_groups; }
};

struct TopologyReport {
  std::string transport;  // "inproc", "mpi"
  CostModel costs;        // places, order, links, ownership
  int64_t num_heads = 0;
  int64_t head_dim = 0;
  int64_t batch = 0;
  std::vector<ScheduleReport> schedules;  // none with one rank: there is nothing to send
  Schedule chosen = Schedule::kButterfly;
  std::optional<GroupsReport> groups;  // where a model was named

  int64_t num_slots() const { return costs.ownership.back().end; }
};

// The ranks in the order of the tree, under their nodes, sockets and processes (where there is more than one), each
// with the slots it owns, and with the groups it is in.
std::string DrawRanks(const CostModel& costs, const GroupsReport* groups_of_model = nullptr);

std::string RenderTopologyText(const TopologyReport& report);
std::string RenderTopologyJson(const TopologyReport& report);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_REPORTS_TOPOLOGY_REPORT_H_
