#include "src/cli/commands/model_demo.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "src/base/errors.h"
#include "src/cli/generation.h"
#include "src/cli/model_flags.h"
#include "src/cli/prompt_input.h"
#include "src/cli/reports/table_output.h"
#include "src/engine/load_tokenizer.h"

namespace pando::cli {
namespace {

constexpr int64_t kMaxAnswer = 64;

Row TableRow(int64_t num_ranks, const GenerationReport& report) {
  double merge = 0;
  double gather = 0;
  int64_t kv_bytes = 0;
  for (const RankFigures& rank : report.ranks) {
    merge = std::max(merge, rank.times.merge_seconds);
    gather = std::max(gather, rank.times.gather_seconds);
    kv_bytes = std::max(kv_bytes, rank.memory.used);
  }
  return {{"ranks", num_ranks},
          {"prompt_tokens_per_s", Decimal{report.times.prompt_tokens_per_s(), 1}},
          {"decode_tokens_per_s", Decimal{report.times.decode_tokens_per_s(), 1}},
          {"merge_ms", Decimal{merge * 1e3, 0}},
          {"gather_ms", Decimal{gather * 1e3, 0}},
          {"kv_mb_per_rank", Decimal{static_cast<double>(kv_bytes) / 1e6, 1}},
          {"logits_fingerprint", fmt::format("{:016x}", report.fingerprint)}};
}

Result<GenerationReport> Answer(const ModelDemo& demo, const std::shared_ptr<const Model>& model,
                                const std::string& document, int64_t num_ranks) {
  std::optional<Result<GenerationReport>> report;
  const auto front = [&](Engine& engine) -> Status {
    const Result<Tokenizer> tokenizer = LoadTokenizer(engine.model().file());
    if (!tokenizer.ok()) return tokenizer.status();
    Result<std::vector<int32_t>> prompt =
        ChatPrompt(*tokenizer, "", "", fmt::format("{}\n\nQuestion: {}", document, demo.question));
    if (!prompt.ok()) return prompt.status();
    GenerationRequest request = {.prompt = std::move(prompt).value(),
                                 .options = {.sampling = {.temperature = 0}, .max_tokens = kMaxAnswer},
                                 .with_fingerprint = true};
    fmt::print("Answer on {} rank{}: ", num_ranks, num_ranks == 1 ? "" : "s");
    std::fflush(stdout);
    const InterruptGuard interrupt;
    report = RunGeneration(engine, *tokenizer, std::move(request), interrupt, [](std::string_view piece) {
      fmt::print("{}", piece);
      std::fflush(stdout);
      return Status();
    });
    fmt::print("\n");
    return report->status();
  };
  Status status = RunModel({}, {.num_ranks = num_ranks}, model, front);
  if (!status.ok()) return status;
  return std::move(*report);
}

}  // namespace

Status RunModelDemo(const ModelDemo& demo) {
  const Result<std::shared_ptr<const Model>> model = Model::Load(demo.model, {});
  if (!model.ok()) return model.status();
  const Result<std::string> document = ReadTextFile(demo.document);
  if (!document.ok()) return document.status();
  fmt::print("{} reads {} and is asked: {}\n\n", (*model)->config().name, demo.document, demo.question);
  std::vector<Row> rows;
  std::optional<GenerationReport> first;
  bool all_equal = true;
  for (const int64_t num_ranks : demo.ranks) {
    Result<GenerationReport> report = Answer(demo, *model, *document, num_ranks);
    if (!report.ok()) return report.status();
    if (WasInterrupted()) return Failed("interrupted: the answers were not compared");
    rows.push_back(TableRow(num_ranks, *report));
    if (!first.has_value()) first = *report;
    all_equal = all_equal && report->fingerprint == first->fingerprint && report->tokens == first->tokens;
  }
  fmt::print("\nThe document and the question are {} tokens.\n\n{}\n", first->times.prompt_tokens,
             RenderTable(rows, TableFormat::kMarkdown));
  if (!all_equal) return Failed("the fingerprints differ: this is a bug in Pando");
  fmt::print("All fingerprints are equal: the number of ranks does not change a bit of any logit.\n");
  return Status();
}

}  // namespace pando::cli
