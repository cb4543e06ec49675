// pando demo: the same bits on any number of shards, and at what speed.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "src/base/errors.h"
#include "src/base/size_text.h"
#include "src/bench/shard_demo.h"
#include "src/cli/command.h"
#include "src/cli/commands/bench_attention_plan.h"
#include "src/cli/commands/model_demo.h"
#include "src/cli/reports/progress.h"
#include "src/cli/reports/table_output.h"
#include "src/cli/size_list.h"

namespace pando::cli {
namespace {

constexpr int64_t kShards[] = {1, 2, 3, 4, 7, 8};
constexpr int kRepeats = 11;
const std::string kDefaultContext = "64K";
const std::string kDefaultRanks = "1,4";

constexpr const char* kDemoExplanation =
    R"(With a model: a question about a document that is long for the model, answered on each number of ranks. The
fingerprint is of all logits that tokens were picked from: it is the same for every number of ranks.

Without: one decode step over a cache that is cut into 1, 2, 3, 4, 7 and 8 shards, as over that many devices. The
fingerprint is of all outputs and energies: it is the same for every number of shards. max_error is the largest distance
of an output from float64 attention on the same keys and values. Then the speed table of `pando bench attention`.

Examples:
  pando demo
  pando demo --context 8K
  pando demo -m model.gguf --document report.txt --question "Who wrote it?" --ranks 1,4)";

struct DemoFlags {
  std::string context;  // empty: not given
  std::string model;
  std::string document;
  std::string question;
  std::string ranks;  // empty: not given
};

// One row per number of shards; fails if the fingerprints differ.
Status ShowShards(int64_t context) {
  Progress progress;
  progress.Show("making random tokens and their attention in float64 ...");
  const AttentionOptions options{.num_heads = 8, .num_kv_heads = 2, .head_dim = 128};
  const Result<ShardDemo> demo = ShardDemo::Create(options, context);
  if (!demo.ok()) return demo.status();
  std::vector<Row> rows;
  std::string fingerprint;
  bool all_equal = true;
  for (const int64_t num_shards : kShards) {
    progress.Show(fmt::format("{} shards ...", num_shards));
    const Result<ShardDemoRow> row = demo->Run(num_shards);
    if (!row.ok()) return row.status();
    if (fingerprint.empty()) fingerprint = row->fingerprint;
    all_equal = all_equal && row->fingerprint == fingerprint;
    rows.push_back({{"shards", num_shards},
                    {"fingerprint", row->fingerprint},
                    {"max_error", fmt::format("{:.1e}", row->max_error)},
                    {"step_us", Decimal{row->microseconds, 0}}});
  }
  progress.Clear();
  fmt::print("Attention over {} tokens, f16, 8 heads on 2 KV heads of 128, on one machine:\n\n{}\n",
             FormatSize(context), RenderTable(rows, TableFormat::kMarkdown));
  if (!all_equal) return Failed("the fingerprints differ: this is a bug in Pando");
  fmt::print("All fingerprints are equal: the number of shards does not change a bit.\n\n");
  return Status();
}

Status ShowSpeed(int64_t context) {
  BenchAttentionFlags flags;
  flags.contexts = std::to_string(context);
  flags.kv_types = "f32,f16,bf16,q8_0";
  flags.repeats = std::to_string(kRepeats);
  fmt::print("One decode step, 32 heads on 8 KV heads of 128, with a cold cache:\n\n");
  return PrintBenchAttention(flags);
}

Status AskModel(const DemoFlags& flags) {
  if (!flags.context.empty()) {
    return InvalidArgument("--context is for the demo without a model: with one, the document is the context");
  }
  const std::string& list = flags.ranks.empty() ? kDefaultRanks : flags.ranks;
  const Result<std::vector<int64_t>> ranks = ParseSizeList("--ranks", list, {.min = 1, .max = 64});
  if (!ranks.ok()) return ranks.status();
  if (flags.document.empty() || flags.question.empty()) {
    return InvalidArgument("the demo of a model needs --document and --question");
  }
  return RunModelDemo(ModelDemo{flags.model, flags.document, flags.question, *ranks});
}

Status RunDemo(const DemoFlags& flags) {
  if (!flags.model.empty()) return AskModel(flags);
  if (!flags.ranks.empty() || !flags.document.empty() || !flags.question.empty()) {
    return InvalidArgument("--ranks, --document and --question are for the demo of a model: name one with -m");
  }
  // More tokens than this take minutes in float64.
  const Result<int64_t> context = ParseSize("--context", flags.context.empty() ? kDefaultContext : flags.context,
                                            {.min = 1, .max = int64_t{1} << 20});
  if (!context.ok()) return context.status();
  if (Status status = ShowShards(*context); !status.ok()) return status;
  return ShowSpeed(*context);
}

std::function<Status()> AddDemo(CLI::App& app) {
  auto flags = std::make_shared<DemoFlags>();
  AddTextOption(app, "--context", "N", flags->context, "Without a model: tokens in the KV cache; K is 1024 [64K]");
  AddTextOption(app, "-m,--model", "FILE", flags->model, "A GGUF model, for the demo of a model");
  AddTextOption(app, "--document", "FILE", flags->document, "What it reads");
  AddTextOption(app, "--question", "TEXT", flags->question, "What it is asked then");
  AddTextOption(app, "--ranks", "LIST", flags->ranks, "Numbers of ranks to answer on [1,4]");
  app.footer(kDemoExplanation);
  return [flags] { return RunDemo(*flags); };
}

}  // namespace

const Command kDemoCommand = {"demo", "The same bits on any number of shards, and at what speed", AddDemo};

}  // namespace pando::cli
