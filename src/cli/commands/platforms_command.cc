// pando platforms: the machines that plans and simulations know by name.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "src/base/errors.h"
#include "src/cli/command.h"
#include "src/cli/reports/table_output.h"
#include "src/planning/platform_file.h"

namespace pando::cli {
namespace {

constexpr const char* kPlatformsExplanation =
    R"(With a name, prints the platform's file, in which every group of figures says where it is from. Change a copy of it to
describe machines of your own: plan and simulate take a file in place of a name. docs/planning.md explains the keys.

Examples:
  pando platforms
  pando platforms dgx-h100 > my-cluster.json
  pando plan -m llama-3.1-8b --platform ./my-cluster.json)";

struct PlatformsFlags {
  std::string name;
  std::string output = "md";
};

Row RowOf(const Platform& platform) {
  const LinkModel& link = platform.max_nodes > 1 ? platform.between_nodes : LinkModel{};
  const auto if_nodes = [&](double value) {
    return platform.max_nodes > 1 ? Field{"", Decimal{value, 1}} : Field{"", Absent{}};
  };
  return {{"platform", platform.name},
          {"ranks", int64_t{platform.max_ranks()}},
          {"ranks_per_node", int64_t{platform.ranks_per_node}},
          {"memory_gb", Decimal{platform.device.memory_bytes / 1e9, 0}},
          {"memory_gb_per_s", Decimal{platform.device.memory_bytes_per_second / 1e9, 0}},
          {"tflops", Decimal{platform.device.flops_per_second / 1e12, 2}},
          {"node_gb_per_s", Decimal{platform.within_node.bytes_per_second / 1e9, 1}},
          {"node_us", Decimal{platform.within_node.latency_seconds * 1e6, 1}},
          {"network_gb_per_s", if_nodes(link.bytes_per_second / 1e9 * platform.ports_per_node).value},
          {"network_us", if_nodes(link.latency_seconds * 1e6).value},
          {"description", platform.description}};
}

Status ListPlatforms(TableFormat format) {
  std::vector<Row> rows;
  for (const ShippedPlatform& shipped : ShippedPlatforms()) {
    const Result<Platform> platform = ParsePlatform(shipped.json, shipped.name);
    if (!platform.ok()) return platform.status();
    rows.push_back(RowOf(*platform));
  }
  fmt::print("{}", RenderTable(rows, format, "platforms"));
  return Status();
}

Status RunPlatforms(const PlatformsFlags& flags) {
  const Result<TableFormat> format = ParseTableFormat("-o", flags.output);
  if (!format.ok()) return format.status();
  if (flags.name.empty()) return ListPlatforms(*format);
  const auto found = std::ranges::find(ShippedPlatforms(), flags.name, &ShippedPlatform::name);
  if (found == ShippedPlatforms().end()) {
    const Result<Platform> file = FindPlatform(flags.name);  // a file that is right is still not one of these
    if (!file.ok()) return file.status();
    return InvalidArgument("'{}' is a file: platforms shows those that are known by name", flags.name);
  }
  fmt::print("{}", found->json);
  return Status();
}

std::function<Status()> AddPlatforms(CLI::App& app) {
  auto flags = std::make_shared<PlatformsFlags>();
  AddTextOption(app, "name", "NAME", flags->name, "The platform whose file to print; else all are listed");
  AddTextOption(app, "-o,--output", "FORMAT", flags->output, "Of the list: md, csv, json, jsonl or sql");
  app.footer(kPlatformsExplanation);
  return [flags] { return RunPlatforms(*flags); };
}

}  // namespace

const Command kPlatformsCommand = {"platforms", "List the machines that can be planned for by name, or print one",
                                   AddPlatforms, /*for_one_process=*/true};

}  // namespace pando::cli
