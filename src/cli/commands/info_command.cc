// pando info: what this machine is and how fast it is.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "src/base/errors.h"
#include "src/cli/command.h"
#include "src/cli/reports/info_report.h"
#include "src/cli/reports/progress.h"

namespace pando::cli {
namespace {

constexpr const char* kInfoExamples =
    R"(The read bandwidth is what decoding is measured against, the multiply-add rate what prefill is measured against.

Examples:
  pando info
  pando info -o json | jq '.limits[].read_gb_per_s')";

Status RunInfo(const std::string& output) {
  if (output != "text" && output != "json") {
    return InvalidArgument("-o has the value \"{}\": it must be text or json", output);
  }
  Progress progress;
  progress.Show("measuring the machine ...");
  const Result<InfoReport> report = GatherInfo();
  progress.Clear();
  if (!report.ok()) return report.status();
  fmt::print("{}", output == "json" ? RenderInfoJson(*report) : RenderInfoText(*report));
  return Status();
}

std::function<Status()> AddInfo(CLI::App& app) {
  auto output = std::make_shared<std::string>("text");
  AddTextOption(app, "-o,--output", "FORMAT", *output, "text or json");
  app.footer(kInfoExamples);
  return [output] { return RunInfo(*output); };
}

}  // namespace

const Command kInfoCommand = {"info", "Show the CPU, its SIMD targets, caches and memory, and measure its limits",
                              AddInfo, /*for_one_process=*/true};

}  // namespace pando::cli
