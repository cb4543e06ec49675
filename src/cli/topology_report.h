// What `pando topology` says: plain data, written as text or JSON. A test can invent it.
#ifndef PANDO_SRC_CLI_TOPOLOGY_REPORT_H_
#define PANDO_SRC_CLI_TOPOLOGY_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/reduction/cost_model.h"
#include "src/reduction/schedule.h"

namespace pando::cli {

struct ScheduleReport {
  Schedule schedule = Schedule::kButterfly;
  double predicted_seconds = 0;
  double measured_seconds = 0;
  bool can_be_chosen = true;  // false: for comparison only
};

struct TopologyReport {
  std::string transport;  // "inproc", "mpi"
  CostModel costs;        // places, order, links, ownership
  int64_t num_heads = 0;
  int64_t head_dim = 0;
  int64_t batch = 0;
  std::vector<ScheduleReport> schedules;  // none with one rank: there is nothing to send
  Schedule chosen = Schedule::kButterfly;

  int64_t num_slots() const { return costs.ownership.back().end; }
};

// The ranks in the order of the tree, under their nodes, sockets and processes (where there is more than one), each
// with the slots it owns.
std::string DrawRanks(const CostModel& costs);

std::string RenderTopologyText(const TopologyReport& report);
std::string RenderTopologyJson(const TopologyReport& report);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_TOPOLOGY_REPORT_H_
