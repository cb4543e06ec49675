#include "src/cli/generation.h"

#include <utility>

#include "src/base/errors.h"
#include "src/cli/reports/prefill_progress.h"
#include "src/engine/bytes_read.h"

namespace pando::cli {
namespace {

void FillReport(const Engine& engine, GenerationResult result, GenerationReport& report) {
  report.text = std::move(result.generation.text);
  report.tokens = std::move(result.generation.tokens);
  const EndReason reason = result.generation.reason;
  report.stop_reason = reason == EndReason::kCancelled ? "interrupted" : EndReasonName(reason);
  report.fingerprint = result.fingerprint;
  report.times = result.times;
  report.attention = engine.options().strategy;
  report.schedule = engine.schedule();
  report.context_tokens = result.context_tokens;
  report.bytes_read_per_token =
      BytesReadPerToken(engine.model(), engine.options(), report.times.prompt_tokens, report.times.decode_tokens);
}

// If the prompt does not fit, which flag changes that.
Status WithContextFlag(const Status& status, const Engine& engine, const GenerationRequest& request) {
  const int64_t context = request.options.context.value_or(engine.model().config().training_context);
  if (static_cast<int64_t>(request.prompt.size()) < context) return status;
  return {status.code(), status.message() + " (raise -c)"};
}

}  // namespace

Result<GenerationReport> RunGeneration(Engine& engine, const Tokenizer& tokenizer, GenerationRequest request,
                                       const InterruptGuard& interrupt,
                                       const std::function<Status(std::string_view piece)>& on_text) {
  PrefillProgress progress(request.prompt.size());
  request.on_progress = [&](size_t done) { progress.Show(done); };
  request.is_cancelled = [&] { return interrupt.WasInterrupted(); };
  Status written;
  request.options.on_text = [&](std::string_view piece) {
    written = on_text(piece);
    return written.ok();
  };
  if (request.prompt.empty()) {
    return InvalidArgument(
        "the prompt is empty, and this model begins texts with no token of its own: give a text with -p, -f or on "
        "standard input");
  }
  GenerationReport report;
  const auto take_figures = [&]() -> Status {
    PANDO_ASSIGN_OR_RETURN(report.ranks, engine.TakeFigures());
    return Status();
  };
  Result<std::vector<GenerationResult>> results = Generate(engine, tokenizer, {&request, 1}, take_figures);
  progress.Show(request.prompt.size());
  PANDO_RETURN_IF_ERROR(written);
  if (!results.ok()) return WithContextFlag(results.status(), engine, request);
  FillReport(engine, std::move(results->front()), report);
  return report;
}

}  // namespace pando::cli
