#include "src/cli/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "src/base/memory.h"
#include "src/base/printable.h"
#include "src/cli/report_text.h"
#include "src/cli/size_list.h"
#include "src/reduction/schedule.h"

namespace pando::cli {
namespace {

constexpr double kGibi = 1024.0 * 1024.0 * 1024.0;
constexpr size_t kNameWidth = 10;

std::string Bytes(double bytes) { return FormatBytes(static_cast<size_t>(bytes)); }

// Three digits, whatever the size.
std::string FormatMilliseconds(double seconds) {
  const double ms = seconds * 1e3;
  return fmt::format("{:.{}f} ms", ms, ms >= 100 ? 0 : ms >= 10 ? 1 : ms >= 1 ? 2 : 3);
}

std::string AdviceOf(const ClusterPlan& plan, size_t index) {
  std::vector<std::string_view> advice;
  if (plan.fewest_ranks == plan.steps[index].num_ranks) advice.emplace_back("fewest");
  if (plan.recommended == index) advice.emplace_back("recommended");
  if (plan.fastest == index) advice.emplace_back("fastest");
  return fmt::format("{}", fmt::join(advice, ", "));
}

std::string ModelLine(const ModelShape& model) {
  return Line("model",
              fmt::format("{}: {} layers, {} wide, {} heads and {} KV heads of {}; weights {}, mostly {}",
                          Printable(model.name), model.num_layers, model.hidden_size, model.num_heads,
                          model.num_kv_heads, model.head_dim, Bytes(model.weights.total()), model.weight_type),
              kNameWidth);
}

std::string ContextLine(const PlanReport& report) {
  const StepTask& task = report.task;
  std::string line = fmt::format("{} tokens", FormatSize(task.context_tokens));
  if (task.batch > 1) line += fmt::format(" in each of {} sequences", task.batch);
  line += fmt::format(", keys and values in {}", KvTypeName(task.kv_type));
  if (report.model.window > 0) line += fmt::format(", of which a token sees {}", report.model.window);
  if (task.context_tokens > report.model.context_length && report.model.context_length > 0) {
    line += fmt::format("; the model was trained for {}", FormatSize(report.model.context_length));
  }
  return Line("context", line, kNameWidth);
}

// What the keys and values of all ranks would take in each type.
std::string KvLine(const PlanReport& report) {
  std::vector<std::string> types;
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8_0}) {
    StepTask task = report.task;
    task.kv_type = type;
    const Result<RankMemory> memory = PredictMemory(report.model, task, /*num_ranks=*/1, /*ranks_per_node=*/1, false);
    if (memory.ok()) types.push_back(fmt::format("{} in {}", Bytes(memory->kv), KvTypeName(type)));
  }
  return Line("KV cache", fmt::format("{}, on all ranks together", fmt::join(types, ", ")), kNameWidth);
}

std::string MachineLine(const PlanReport& report) {
  const std::string memory = Bytes(report.device.memory_bytes);
  const std::string speed = fmt::format("{:.4g} GB/s", report.device.memory_bytes_per_second / 1e9);
  if (report.platform.empty()) {
    return Line("machines",
                fmt::format("those at hand, measured now: {} of memory available, read at {}, shared by a "
                            "machine's ranks",
                            memory, speed),
                kNameWidth);
  }
  return Line(
      "platform",
      fmt::format("{}: {}\n{:<{}}{} of memory, read at {}, for each of up to {}", Printable(report.platform),
                  Printable(report.description), "", kNameWidth, memory, speed, Count(report.max_ranks, "rank")),
      kNameWidth);
}

// "gather 61 %": what takes most of a step.
std::string LargestPart(const StepSeconds& seconds) {
  const std::array<std::pair<std::string_view, double>, 4> parts = {{{"reading weights", seconds.weights},
                                                                     {"reading keys and values", seconds.kv},
                                                                     {"merging", seconds.merge},
                                                                     {"gathering rows", seconds.gather}}};
  const auto most = std::ranges::max_element(parts, {}, [](const auto& part) { return part.second; });
  return fmt::format("{:.0f} % of it {}", 100 * most->second / std::max(seconds.total(), 1e-300), most->first);
}

std::string FitSentence(const PlanReport& report) {
  const ClusterPlan& plan = report.plan;
  if (plan.fewest_ranks) {
    return *plan.fewest_ranks == 1 ? std::string("It fits on one rank.\n")
                                   : fmt::format("It fits on {} ranks or more.\n", *plan.fewest_ranks);
  }
  const StepPrediction& last = plan.steps.back();
  return fmt::format(
      "It does not fit: a rank of {} needs {} and has {} of its memory to use. Take a shorter context, a smaller "
      "--kv-type "
      "or --weight-type, or larger machines.\n",
      last.num_ranks, Bytes(last.memory.total()), Bytes(last.usable_bytes));
}

std::string RecommendSentence(const PlanReport& report) {
  const StepPrediction& step = report.plan.steps[*report.plan.recommended];
  const double seconds = step.seconds.total();
  std::string text = step.num_ranks == 1
                         ? std::string("Take one rank")
                         : fmt::format("Take {} ranks on {}, with --slots {} and the schedule {}", step.num_ranks,
                                       Count(step.num_nodes, "node"), step.num_slots, NameOf(step.schedule));
  text += fmt::format(": {} per token, {}", FormatMilliseconds(seconds), LargestPart(step.seconds));
  if (report.task.batch > 1) {
    text += fmt::format("; {:.4g} tokens/s in all", static_cast<double>(report.task.batch) / seconds);
  }
  return text + ".\n";
}

std::string LimitSentence(const PlanReport& report) {
  const ClusterPlan& plan = report.plan;
  const StepPrediction& recommended = plan.steps[*plan.recommended];
  const StepPrediction& fastest = plan.steps[*plan.fastest];
  const StepPrediction& last = plan.steps.back();
  if (last.num_ranks == recommended.num_ranks) {
    return plan.steps.size() == 1 ? "" : fmt::format("Up to {} ranks, more ranks help.\n", last.num_ranks);
  }
  if (fastest.num_ranks == recommended.num_ranks) {
    return fmt::format("More ranks than {} do not help: on {} a token takes {}, {}.\n", recommended.num_ranks,
                       last.num_ranks, FormatMilliseconds(last.seconds.total()), LargestPart(last.seconds));
  }
  return fmt::format("More ranks than {} hardly help: the fastest, {}, make a token {:.1f} % faster.\n",
                     recommended.num_ranks, fastest.num_ranks,
                     100 * (1 - fastest.seconds.total() / recommended.seconds.total()));
}

std::string_view Assumptions(const PlanReport& report) {
  if (report.platform.empty()) {
    return "Predicted, not run: from the memory bandwidth and the links measured now. docs/planning.md says how.\n";
  }
  return "Predicted, not measured: from the platform's figures (pando platforms NAME shows them and where they are "
         "from), as fast as its\nmemory and links allow; a device uses 90 % of its memory. docs/planning.md says "
         "how.\n";
}

}  // namespace

std::vector<Row> PlanRows(const PlanReport& report, TableFormat format) {
  const auto gib = [](double bytes) { return Decimal{bytes / kGibi, 3}; };
  const auto memory = [&](const char* name, double bytes) {
    if (format == TableFormat::kMarkdown) return Field{fmt::format("{}_gib", name), gib(bytes)};
    return Field{fmt::format("{}_bytes", name), std::llround(bytes)};
  };
  const auto ms = [](double seconds) { return Decimal{seconds * 1e3, 3}; };
  std::vector<Row> rows;
  for (size_t i = 0; i < report.plan.steps.size(); ++i) {
    const StepPrediction& step = report.plan.steps[i];
    rows.push_back({{"ranks", int64_t{step.num_ranks}},
                    {"nodes", int64_t{step.num_nodes}},
                    {"slots", step.num_slots},
                    {"fits", step.fits ? "yes" : "no"},
                    memory("weights", step.memory.weights),
                    memory("kv", step.memory.kv),
                    memory("states", step.memory.states),
                    memory("activations", step.memory.activations),
                    {"weights_ms", ms(step.seconds.weights)},
                    {"kv_ms", ms(step.seconds.kv)},
                    {"merge_ms", ms(step.seconds.merge)},
                    {"gather_ms", ms(step.seconds.gather)},
                    {"ms_per_token", ms(step.seconds.total())},
                    {"tokens_per_s", Decimal{static_cast<double>(report.task.batch) / step.seconds.total(), 2}},
                    {"schedule", std::string(NameOf(step.schedule))},
                    {"advice", AdviceOf(report.plan, i)}});
  }
  return rows;
}

std::string RenderPlanText(const PlanReport& report) {
  std::string text = ModelLine(report.model) + ContextLine(report) + KvLine(report) + MachineLine(report);
  text += fmt::format("\nOf one rank, in GiB, and of one token, in milliseconds:\n\n{}\n",
                      RenderTable(PlanRows(report, TableFormat::kMarkdown), TableFormat::kMarkdown));
  text += FitSentence(report);
  if (report.plan.recommended) text += RecommendSentence(report) + LimitSentence(report);
  return text + fmt::format("{}", Assumptions(report));
}

}  // namespace pando::cli
