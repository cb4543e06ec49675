#include "src/kernels/read_limit.h"

#include <algorithm>
#include <array>
#include <thread>

#include "src/base/thread_pool.h"
#include "src/kernels/machine_limits.h"

namespace pando {

std::optional<double> MeasureReadLimit() {
  Result<ReadBandwidthProbe> probe = ReadBandwidthProbe::Create();
  if (!probe.ok()) return std::nullopt;
  ThreadPool pool(std::max(1u, std::thread::hardware_concurrency()));
  std::array<double, 5> passes;
  for (double& pass : passes) pass = probe->MeasureGbPerSecond(pool);
  std::ranges::sort(passes);
  return passes[passes.size() / 2];
}

}  // namespace pando
