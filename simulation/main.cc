// pando-simulator: one job as JSON on standard input, its result as a line of JSON on standard output. `pando simulate`
// runs it; see src/planning/simulation_job.h.
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>

#include "simulation/simulate.h"

namespace {

int Fail(const pando::Status& status) {
  fmt::print(stderr, "{}\n", status.message());
  const bool asks_too_much =
      status.code() == pando::StatusCode::kInvalidArgument || status.code() == pando::StatusCode::kOutOfMemory;
  return asks_too_much ? 2 : 1;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what could be thrown, that there is no memory, is the end of it anyway.
int main() {
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  const pando::Result<pando::SimulationJob> job = pando::ParseSimulationJob(input);
  if (!job.ok()) return Fail(job.status());
  const pando::Result<pando::SimulationResult> result =
      pando::Simulate(*job, [](const pando::Status& status) { std::_Exit(Fail(status)); });
  if (!result.ok()) return Fail(result.status());
  fmt::print("{}\n", pando::ToJson(*result));
  return std::fflush(stdout) == 0 ? 0 : 1;
}
