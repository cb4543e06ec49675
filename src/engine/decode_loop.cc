#include "src/engine/decode_loop.h"

#include <memory>
#include <optional>
#include <utility>

#include "src/base/errors.h"
#include "src/engine/stop_sequences.h"
#include "src/tokenizer/stream_decoder.h"

namespace pando {
namespace {

// One job on its way.
class RunningJob {
 public:
  RunningJob(const DecodeJob& job, const Tokenizer& tokenizer)
      : job_(job),
        tokenizer_(tokenizer),
        decoder_(tokenizer, {.special = job.show_special, .is_continuation = true}),
        stops_(job.stop) {}

  Generator* generator() const { return job_.generator; }

  // Why no further token is wanted, if that is so.
  std::optional<EndReason> ReasonToEnd() const {
    if (stops_.found()) return EndReason::kStopSequence;
    if (static_cast<int64_t>(outcome_.tokens.size()) >= job_.max_tokens) return EndReason::kLength;
    if (job_.is_cancelled && job_.is_cancelled()) return EndReason::kCancelled;
    // The last token need not be computed: nothing comes after it.
    if (static_cast<int64_t>(job_.generator->history().size()) > job_.context) return EndReason::kContext;
    return std::nullopt;
  }

  // Picks a token from the logits that are there.
  Result<std::optional<EndReason>> Pick() {
    PANDO_ASSIGN_OR_RETURN(const int32_t token, job_.generator->Next(*job_.sampler));
    if (tokenizer_.IsEndOfGeneration(token) && !job_.ignore_end) {
      return std::optional<EndReason>(EndReason::kEndOfGeneration);
    }
    outcome_.tokens.push_back(token);
    PANDO_RETURN_IF_ERROR(Give(stops_.Push(decoder_.Push(token))));
    return ReasonToEnd();
  }

  Result<DecodeOutcome> End(EndReason reason) {
    PANDO_RETURN_IF_ERROR(Give(stops_.Push(decoder_.Finish())));
    PANDO_RETURN_IF_ERROR(Give(stops_.Finish()));
    outcome_.reason = reason;
    return std::move(outcome_);
  }

 private:
  Status Give(const std::string& piece) {
    outcome_.text += piece;
    return piece.empty() || !job_.on_text ? Status() : job_.on_text(piece);
  }

  const DecodeJob& job_;
  const Tokenizer& tokenizer_;
  StreamDecoder decoder_;
  StopSequences stops_;
  DecodeOutcome outcome_;
};

}  // namespace

std::string_view EndReasonName(EndReason reason) {
  switch (reason) {
    case EndReason::kEndOfGeneration:
      return "end";
    case EndReason::kLength:
      return "length";
    case EndReason::kContext:
      return "context";
    case EndReason::kStopSequence:
      return "stop";
    case EndReason::kCancelled:
      break;
  }
  return "cancelled";
}

Result<std::vector<DecodeOutcome>> RunDecodeLoop(Engine& engine, const Tokenizer& tokenizer,
                                                 std::span<const DecodeJob> jobs) {
  std::vector<DecodeOutcome> outcomes(jobs.size());
  std::vector<std::unique_ptr<RunningJob>> running;
  size_t num_running = 0;
  const auto end = [&](size_t idx, EndReason reason) -> Status {
    PANDO_ASSIGN_OR_RETURN(outcomes[idx], running[idx]->End(reason));
    running[idx].reset();
    --num_running;
    return Status();
  };
  for (const DecodeJob& job : jobs) {
    PANDO_RETURN_IF_ERROR(ValidateStopSequences(job.stop));
    running.push_back(std::make_unique<RunningJob>(job, tokenizer));
  }
  num_running = jobs.size();
  for (size_t idx = 0; idx < jobs.size(); ++idx) {
    if (const std::optional<EndReason> reason = running[idx]->ReasonToEnd()) PANDO_RETURN_IF_ERROR(end(idx, *reason));
  }
  std::vector<Generator*> generators;
  while (num_running > 0) {
    generators.clear();
    for (const std::unique_ptr<RunningJob>& job : running) {
      if (job) generators.push_back(job->generator());
    }
    PANDO_RETURN_IF_ERROR(Generator::Advance(engine, generators));
    for (size_t idx = 0; idx < jobs.size(); ++idx) {
      if (!running[idx]) continue;
      PANDO_ASSIGN_OR_RETURN(const std::optional<EndReason> reason, running[idx]->Pick());
      if (reason.has_value()) PANDO_RETURN_IF_ERROR(end(idx, *reason));
    }
  }
  return outcomes;
}

}  // namespace pando
