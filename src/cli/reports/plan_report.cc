#include "src/cli/reports/plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "src/base/memory.h"
#include "src/base/printable.h"
#include "src/base/size_text.h"
#include "src/cli/reports/report_text.h"
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

// Of prompts: seconds, minutes or hours.
std::string FormatDuration(double seconds) {
  if (seconds < 1) return FormatMilliseconds(seconds);
  if (seconds < 600) return fmt::format("{:.3g} s", seconds);
  return seconds < 7200 ? fmt::format("{:.1f} minutes", seconds / 60) : fmt::format("{:.1f} hours", seconds / 3600);
}

// "; one group by rows takes 7.05 ms", or nothing where that is the same. It is slower, unless groups are forced.
std::string Comparison(const StepSeconds& seconds, const StepSeconds& one_group, std::string (*format)(double)) {
  if (std::abs(one_group.total() / seconds.total() - 1) < 0.005) return "";
  return fmt::format("; one group by rows takes {}", format(one_group.total()));
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
  const std::string speed =
      fmt::format("{:.4g} GB/s and computed with at {:.3g} Tflop/s", report.device.memory_bytes_per_second / 1e9,
                  report.device.flops_per_second / 1e12);
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

std::string GroupsSentence(const PlanReport& report) {
  const StepPrediction& step = report.plan.steps[*report.plan.recommended];
  if (step.num_ranks == 1) return "";
  return fmt::format("Decode in {}{}.\n", DescribeGroups(step.division, step.num_ranks),
                     Comparison(step.seconds, step.one_group, FormatMilliseconds));
}

std::string PromptSentence(const PlanReport& report) {
  if (report.plan.prompts.empty()) return "";
  const PromptPrediction& prompt = report.plan.prompts[*report.plan.recommended];
  const int num_ranks = report.plan.steps[*report.plan.recommended].num_ranks;
  std::string text =
      fmt::format("Read a prompt of {}{}: the first token comes after {}, at {:.4g} tokens/s{}",
                  prompt.num_tokens == 1 ? "1 token" : FormatSize(prompt.num_tokens) + " tokens",
                  num_ranks == 1 ? "" : fmt::format(" in {}", DescribeGroups(prompt.division, num_ranks)),
                  FormatDuration(prompt.seconds.total()), prompt.tokens_per_second(),
                  Comparison(prompt.seconds, prompt.one_group, FormatDuration));
  if (prompt.sequential_seconds() > 1.005 * prompt.seconds.total()) {
    text += fmt::format(".\nIf no message travelled during attention, it would come after {}",
                        FormatDuration(prompt.sequential_seconds()));
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

std::string ScheduleOf(const StepPrediction& step) {
  return step.division.divides_tokens ? "exchange" : std::string(NameOf(step.schedule));
}

void AddPromptFields(const PromptPrediction& prompt, TableFormat format, Row& row) {
  const auto seconds = [](double value) { return Decimal{value, 3}; };
  row.insert(row.end(), {{"prompt_groups", int64_t{prompt.division.num_groups}},
                         {"prompt_s", seconds(prompt.seconds.total())},
                         {"prompt_tokens_per_s", Decimal{prompt.tokens_per_second(), 1}}});
  if (format == TableFormat::kMarkdown) return;
  row.insert(row.end(), {{"prompt_tokens", prompt.num_tokens},
                         {"prompt_step_tokens", prompt.step_tokens},
                         {"prompt_divides_tokens", prompt.division.divides_tokens ? "yes" : "no"},
                         {"prompt_down", std::string(NameOf(prompt.division.down))},
                         {"prompt_weights_s", seconds(prompt.seconds.weights)},
                         {"prompt_kv_s", seconds(prompt.seconds.kv)},
                         {"prompt_merge_s", seconds(prompt.seconds.merge)},
                         {"prompt_gather_s", seconds(prompt.seconds.gather)},
                         {"prompt_sequential_s", seconds(prompt.sequential_seconds())},
                         {"prompt_one_group_s", seconds(prompt.one_group.total())}});
}

}  // namespace

std::string DescribeGroups(const StepDivision& division, int num_ranks) {
  if (division.num_groups == 1) return "one group";
  if (division.num_groups == num_ranks) return "a group for each rank, with all weights";
  const int fewest = FewestMembers(num_ranks, division.num_groups);
  const bool are_equal = num_ranks % division.num_groups == 0;
  return fmt::format("{} groups of {}{}", division.num_groups, fewest,
                     are_equal ? "" : fmt::format(" and {}", fewest + 1));
}

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
                    {"groups", int64_t{step.division.num_groups}},
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
                    {"schedule", ScheduleOf(step)}});
    if (format != TableFormat::kMarkdown) {
      rows.back().push_back({"down", std::string(NameOf(step.division.down))});
      rows.back().push_back({"one_group_ms", ms(step.one_group.total())});
    }
    if (!report.plan.prompts.empty()) AddPromptFields(report.plan.prompts[i], format, rows.back());
    rows.back().push_back({"advice", AdviceOf(report.plan, i)});
  }
  return rows;
}

namespace {

// A table of these columns, as far as there are such.
std::string TableOf(const std::vector<Row>& rows, std::span<const std::string_view> names) {
  std::vector<Row> chosen;
  for (const Row& row : rows) {
    chosen.emplace_back();
    for (const std::string_view name : names) {
      const auto field = std::ranges::find(row, name, &Field::name);
      if (field != row.end()) chosen.back().push_back(*field);
    }
  }
  return RenderTable(chosen, TableFormat::kMarkdown);
}

// In tables that fit a terminal.
std::string PlanTables(const PlanReport& report) {
  constexpr std::array<std::string_view, 8> kMemory = {"ranks",       "nodes",  "slots",      "fits",
                                                       "weights_gib", "kv_gib", "states_gib", "activations_gib"};
  constexpr std::array<std::string_view, 8> kToken = {"ranks", "groups",   "schedule",  "weights_ms",
                                                      "kv_ms", "merge_ms", "gather_ms", "ms_per_token"};
  constexpr std::array<std::string_view, 6> kPrompt = {"ranks",    "tokens_per_s",        "prompt_groups",
                                                       "prompt_s", "prompt_tokens_per_s", "advice"};
  const std::vector<Row> rows = PlanRows(report, TableFormat::kMarkdown);
  return fmt::format("The memory of one rank, in GiB:\n\n{}\n", TableOf(rows, kMemory)) +
         fmt::format("A token, in milliseconds:\n\n{}\n", TableOf(rows, kToken)) +
         fmt::format("Tokens of all sequences; the prompt, in seconds:\n\n{}\n", TableOf(rows, kPrompt));
}

}  // namespace

std::string RenderPlanText(const PlanReport& report) {
  std::string text = ModelLine(report.model) + ContextLine(report) + KvLine(report) + MachineLine(report);
  text += "\n" + PlanTables(report) + FitSentence(report);
  if (report.plan.recommended) {
    text += RecommendSentence(report) + GroupsSentence(report) + PromptSentence(report) + LimitSentence(report);
  }
  return text + fmt::format("{}", Assumptions(report));
}

}  // namespace pando::cli
