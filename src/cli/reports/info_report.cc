#include "src/cli/reports/info_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "pando/contract.h"
#include "src/base/memory.h"
#include "src/base/thread_pool.h"
#include "src/cli/reports/report_text.h"
#include "src/kernels/machine_limits.h"
#include "src/kernels/simd_target.h"

namespace pando::cli {
namespace {

// Odd, so that the median is one of them.
constexpr int kNumPasses = 9;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

MeasuredLimits Measure(ReadBandwidthProbe& probe, size_t num_threads) {
  ThreadPool pool(num_threads);
  std::vector<double> read, fma;
  probe.MeasureGbPerSecond(pool);  // wakes the threads and the clock
  for (int pass = 0; pass < kNumPasses; ++pass) {
    read.push_back(probe.MeasureGbPerSecond(pool));
    fma.push_back(MeasureFmaGflops(pool));
  }
  return {.num_threads = num_threads, .read_gb_per_s = Median(read), .fma_gflops = Median(fma)};
}

std::string CacheLine(const CacheGroup& cache) {
  return Line(fmt::format("L{} cache", cache.level),
              fmt::format("{} x {}, {}-byte lines, {} each", cache.count, FormatBytes(cache.bytes), cache.line_bytes,
                          Count(cache.shared_by, "thread")));
}

std::string NumaLine(const NumaNode& node) {
  return Line(fmt::format("NUMA node {}", node.index),
              fmt::format("{}, {}", FormatBytes(node.memory_bytes), Count(node.num_hardware_threads, "thread")));
}

double Rounded(double value) { return std::round(value * 10) / 10; }

}  // namespace

std::vector<size_t> ThreadCountsToMeasure(size_t num_hardware_threads) {
  std::vector<size_t> counts;
  for (size_t count = 1; count < num_hardware_threads; count *= 2) counts.push_back(count);
  counts.push_back(num_hardware_threads);
  return counts;
}

Result<InfoReport> GatherInfo() {
  Result<Machine> machine = DetectMachine();
  if (!machine.ok()) return machine.status();
  Result<ReadBandwidthProbe> probe =
      ReadBandwidthProbe::Create(std::max(ReadBandwidthProbe::DefaultBytes(), 4 * LastLevelCacheBytes(*machine)));
  if (!probe.ok()) return probe.status();
  InfoReport report;
  report.version = PANDO_VERSION;
  report.machine = std::move(machine).value();
  report.available_memory_bytes = AvailableMemoryBytes() + probe->bytes();
  report.simd_targets = SupportedSimdTargets();
  report.simd_target_in_use = ChosenSimdTarget();
  for (const size_t num_threads : ThreadCountsToMeasure(report.machine.num_hardware_threads)) {
    report.limits.push_back(Measure(*probe, num_threads));
  }
  return report;
}

std::string RenderInfoText(const InfoReport& report) {
  const Machine& machine = report.machine;
  std::string out = Line("pando", fmt::format("{}, version {} of the order of sums", report.version, kContractVersion));
  out += Line("CPU", machine.cpu_model.empty() ? "unknown" : machine.cpu_model);
  out += Line("usable here", fmt::format("{}, {}, {}", Count(machine.num_hardware_threads, "thread"),
                                         Count(machine.num_cores, "core"), Count(machine.num_packages, "package")));
  out += Line("SIMD targets",
              fmt::format("{} (in use: {})", fmt::join(report.simd_targets, ", "), report.simd_target_in_use));
  for (const CacheGroup& cache : machine.caches) out += CacheLine(cache);
  out += Line("memory", fmt::format("{}, {} available", FormatBytes(TotalMemoryBytes(machine)),
                                    FormatBytes(report.available_memory_bytes)));
  for (const NumaNode& node : machine.numa_nodes) out += NumaLine(node);
  for (const MeasuredLimits& limits : report.limits) {
    out += Line(Count(limits.num_threads, "thread"),
                fmt::format("reads {:.1f} GB/s, multiplies and adds {:.0f} GFLOP/s (f32)", limits.read_gb_per_s,
                            limits.fma_gflops));
  }
  return out;
}

std::string RenderInfoJson(const InfoReport& report) {
  using InfoJson = nlohmann::ordered_json;
  const Machine& machine = report.machine;
  InfoJson caches = InfoJson::array(), nodes = InfoJson::array(), limits = InfoJson::array();
  for (const CacheGroup& cache : machine.caches) {
    caches.push_back({{"level", cache.level},
                      {"bytes", cache.bytes},
                      {"line_bytes", cache.line_bytes},
                      {"shared_by_threads", cache.shared_by},
                      {"count", cache.count}});
  }
  for (const NumaNode& node : machine.numa_nodes) {
    nodes.push_back(
        {{"index", node.index}, {"memory_bytes", node.memory_bytes}, {"threads", node.num_hardware_threads}});
  }
  for (const MeasuredLimits& limit : report.limits) {
    limits.push_back({{"threads", limit.num_threads},
                      {"read_gb_per_s", Rounded(limit.read_gb_per_s)},
                      {"fma_gflops", Rounded(limit.fma_gflops)}});
  }
  const InfoJson json = {{"version", report.version},
                         {"contract_version", kContractVersion},
                         {"cpu_model", machine.cpu_model},
                         {"packages", machine.num_packages},
                         {"cores", machine.num_cores},
                         {"threads", machine.num_hardware_threads},
                         {"simd_targets", report.simd_targets},
                         {"simd_target_in_use", report.simd_target_in_use},
                         {"caches", caches},
                         {"memory_bytes", TotalMemoryBytes(machine)},
                         {"available_memory_bytes", report.available_memory_bytes},
                         {"numa_nodes", nodes},
                         {"limits", limits}};
  return json.dump(2) + "\n";
}

}  // namespace pando::cli
