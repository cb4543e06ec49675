// pando inspect: what a model file is, and what a context takes in memory.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "pando/canonical_tree.h"
#include "src/base/errors.h"
#include "src/cli/command.h"
#include "src/cli/default_model.h"
#include "src/cli/kv_type_list.h"
#include "src/cli/reports/inspect_report.h"
#include "src/cli/size_list.h"

namespace pando::cli {
namespace {

constexpr const char* kInspectExplanation =
    R"(Of a model split over files, give the first. A file that holds only a vocabulary is fine too.

Examples:
  pando inspect ./model.gguf
  pando inspect -m model.gguf -c 128K --ranks 1,4,16 --kv-type f16,q8_0
  pando inspect -m model.gguf --tensors --metadata
  pando inspect -m model.gguf -o json | jq .shape.layers)";

// Each owns at least one slot of the tree.
constexpr SizeRange kRankRange = {.min = 1, .max = TreeShape().num_slots};

struct InspectFlags {
  std::string model;
  std::string context;  // empty: the training context
  std::string ranks = "1,2,4,8";
  std::string kv_types = "f16";
  bool tensors = false;
  bool metadata = false;
  std::string output = "md";
};

Result<InspectOptions> ReadFlags(const InspectFlags& flags) {
  InspectOptions options;
  if (flags.output != "md" && flags.output != "json") {
    return InvalidArgument("-o has the value \"{}\": it must be md or json", flags.output);
  }
  if (!flags.context.empty()) {
    const Result<int64_t> context = ParseSize("-c", flags.context);
    if (!context.ok()) return context.status();
    options.context = *context;
  }
  const Result<std::vector<int64_t>> ranks = ParseSizeList("--ranks", flags.ranks, kRankRange);
  if (!ranks.ok()) return ranks.status();
  options.num_ranks = *ranks;
  const Result<std::vector<KvType>> kv_types = ParseKvTypeList("--kv-type", flags.kv_types);
  if (!kv_types.ok()) return kv_types.status();
  options.kv_types = *kv_types;
  options.with_tensors = flags.tensors;
  options.with_metadata = flags.metadata;
  return options;
}

Status RunInspect(const InspectFlags& flags) {
  const Result<InspectOptions> options = ReadFlags(flags);
  if (!options.ok()) return options.status();
  PANDO_ASSIGN_OR_RETURN(const std::string path, ChooseModel(flags.model));
  const Result<GgufFile> file = GgufFile::Open(path);
  if (!file.ok()) return file.status();
  const Result<InspectReport> report = GatherInspect(*file, *options);
  if (!report.ok()) return report.status();
  fmt::print("{}", flags.output == "json" ? RenderInspectJson(*report) : RenderInspectText(*report));
  return Status();
}

std::function<Status()> AddInspect(CLI::App& app) {
  auto flags = std::make_shared<InspectFlags>();
  AddTextOption(app, "model,-m,--model", "FILE", flags->model, kModelHelp);
  AddTextOption(app, "-c,--context", "N", flags->context, "Tokens of a context; K is 1024. Else as in training");
  AddTextOption(app, "--ranks", "LIST", flags->ranks, "Ranks that share the context");
  AddTextOption(app, "--kv-type", "LIST", flags->kv_types, "How keys and values are stored: f32, f16, bf16, q8_0");
  app.add_flag("--tensors", flags->tensors, "List all tensors");
  app.add_flag("--metadata", flags->metadata, "List all keys and values");
  AddTextOption(app, "-o,--output", "FORMAT", flags->output, "md or json");
  app.footer(kInspectExplanation);
  return [flags] { return RunInspect(*flags); };
}

}  // namespace

const Command kInspectCommand = {"inspect", "Show what a model file is, and what a context takes in memory", AddInspect,
                                 /*for_one_process=*/true};

}  // namespace pando::cli
