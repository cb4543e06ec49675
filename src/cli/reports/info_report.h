// What `pando info` says: gathered once, then written as text or JSON.
#ifndef PANDO_SRC_CLI_REPORTS_INFO_REPORT_H_
#define PANDO_SRC_CLI_REPORTS_INFO_REPORT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "pando/status.h"
#include "src/topology/machine.h"

namespace pando::cli {

// What so many threads reached together.
struct MeasuredLimits {
  size_t num_threads = 0;
  double read_gb_per_s = 0;
  double fma_gflops = 0;
};

struct InfoReport {
  std::string version;
  Machine machine;
  size_t available_memory_bytes = 0;
  std::vector<std::string> simd_targets;  // best first
  std::string simd_target_in_use;
  std::vector<MeasuredLimits> limits;
};

// 1, 2, 4, ... and all: {1, 2, 4, 6} for 6.
std::vector<size_t> ThreadCountsToMeasure(size_t num_hardware_threads);

// Takes about half a second, plus as much again for every doubling of the thread count.
Result<InfoReport> GatherInfo();

std::string RenderInfoText(const InfoReport& report);
std::string RenderInfoJson(const InfoReport& report);

}  // namespace pando::cli

#endif  // PANDO_SRC_CLI_REPORTS_INFO_REPORT_H_
