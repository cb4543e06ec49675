#include "src/cli/reports/simulate_report.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "pando/kv_type.h"
#include "src/planning/step_prediction.h"

namespace pando::cli {
namespace {

// To the nanosecond.
Decimal Microseconds(double seconds) { return {seconds * 1e6, 3}; }

Row CommonFields(const SimulatePlan& plan, const SimulationPoint& point) {
  const SimulationJob& job = point.job;
  return {{"platform", plan.platform.name},
          {"nodes", int64_t{point.num_nodes}},
          {"ranks", int64_t{job.num_ranks}},
          {"model", plan.model ? plan.model->name : ""},
          {"heads", job.num_heads},
          {"kv_heads", job.num_kv_heads},
          {"head_dim", job.head_dim},
          {"kv_type", std::string(KvTypeName(job.kv_type))},
          {"batch", job.batch},
          {"tokens", job.layers ? job.layers->tokens_per_sequence : 1},
          {"context", job.context}};
}

}  // namespace

double PeakKvBytes(const SimulatedPoint& simulated) {
  const SimulationJob& job = simulated.point.job;
  // One layer was simulated; Ring Attention needs its buffers once for all of them.
  const auto simulated_bytes = static_cast<double>(simulated.result.peak_kv_bytes);
  const double num_layers = job.layers ? static_cast<double>(job.layers->num_layers) : 1;
  return simulated_bytes + simulated.point.kv_bytes * (1 - 1 / num_layers);
}

bool FitsDevice(const SimulatedPoint& simulated) {
  return PeakKvBytes(simulated) + simulated.point.other_bytes <= UsableBytes(simulated.point.job.platform.device);
}

Row ToTableRow(const SimulatePlan& plan, const SimulatedPoint& simulated) {
  const SimulationJob& job = simulated.point.job;
  const SimulationResult& result = simulated.result;
  const bool is_for_people = plan.format == TableFormat::kMarkdown;
  Row row = is_for_people ? Row{{"nodes", int64_t{simulated.point.num_nodes}},
                                {"ranks", int64_t{job.num_ranks}},
                                {"batch", job.batch},
                                {"context", job.context}}
                          : CommonFields(plan, simulated.point);
  if (plan.model || !is_for_people) {
    row.push_back({"groups", int64_t{job.layers ? job.layers->division.num_groups : 1}});
  }
  row.insert(
      row.end(),
      {{"strategy", job.strategy}, {"schedule", result.schedule}, {"step_us", Microseconds(result.step_seconds)}});
  if (plan.model || !is_for_people) row.push_back({"weight_us", Microseconds(result.weight_seconds)});
  row.insert(row.end(), {{"kv_us", Microseconds(result.kv_seconds)}, {"merge_us", Microseconds(result.merge_seconds)}});
  if (plan.model || !is_for_people) row.push_back({"gather_us", Microseconds(result.gather_seconds)});
  row.insert(row.end(), {{"messages_per_rank", result.messages_per_rank},
                         {"bytes_per_rank", result.bytes_per_rank},
                         {"mpi_collectives", result.mpi_collectives},
                         {"peak_kv_bytes", std::llround(PeakKvBytes(simulated))}});
  if (is_for_people) {
    row.push_back({"memory", FitsDevice(simulated) ? "fits" : "does not fit"});
  } else {
    row.push_back({"fits", FitsDevice(simulated)});
  }
  return row;
}

std::string DescribeTask(const SimulatePlan& plan) {
  const SimulationJob& job = plan.points.front().job;
  const int64_t num_tokens = job.layers ? job.layers->tokens_per_sequence : 1;
  const std::string tokens = num_tokens == 1 ? "one token" : fmt::format("a step of {} tokens", num_tokens);
  const std::string what = plan.model ? fmt::format("{} of {} in {}", tokens, plan.model->name, plan.model->weight_type)
                                      : fmt::format("one attention block, {} heads on {} KV heads of {}", job.num_heads,
                                                    job.num_kv_heads, job.head_dim);
  return fmt::format("{}, keys and values in {}", what, KvTypeName(job.kv_type));
}

}  // namespace pando::cli
