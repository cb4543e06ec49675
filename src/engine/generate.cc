#include "src/engine/generate.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "src/base/errors.h"
#include "src/engine/chat_session.h"
#include "src/engine/decode_loop.h"
#include "src/engine/sampler.h"
#include "src/engine/stop_sequences.h"
#include "src/tokenizer/chat_template.h"

namespace pando {
namespace {

// Tokens there is room for.
Result<int64_t> ContextOf(const Engine& engine, const GenerationRequest& request) {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t trained = engine.model().config().training_context;
  const int64_t context =
      request.options.context.value_or(std::min(trained, prompt + std::min(request.options.max_tokens, trained)));
  if (prompt < context) return context;
  return InvalidArgument(
      "the prompt has {} tokens, and the context room for {} with at least one of an answer: {}", prompt, context,
      request.options.context.has_value() ? "use a larger context or shorten the prompt"
                                          : "shorten it, or ask for a larger context than the model was trained for");
}

Status CheckRequest(const GenerationRequest& request) {
  if (request.prompt.empty()) {
    return InvalidArgument("the prompt is empty, and this model begins texts with no token of its own: give a text");
  }
  if (request.options.max_tokens < 0) {
    return InvalidArgument("the number of tokens to generate is {}: it must be 0 or more", request.options.max_tokens);
  }
  PANDO_RETURN_IF_ERROR(ValidateSamplerOptions(request.options.sampling));
  return ValidateStopSequences(request.options.stop);
}

// One request with its sequence, which is removed when the work is given up.
class Work {
 public:
  Work(Engine& engine, const GenerationRequest& request)
      : engine_(engine), request_(request), sampler_(request.options.sampling) {}
  ~Work() {
    try {
      (void)Release();
    } catch (...) {  // no memory for the message to the workers: the sequence stays until the engine ends
    }
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  Status Prepare() {
    PANDO_RETURN_IF_ERROR(CheckRequest(request_));
    PANDO_ASSIGN_OR_RETURN(context_, ContextOf(engine_, request_));
    const int64_t most = static_cast<int64_t>(request_.prompt.size()) + std::min(request_.options.max_tokens, context_);
    PANDO_RETURN_IF_ERROR(engine_.Reserve(std::min(context_, most)));
    PANDO_ASSIGN_OR_RETURN(sequence_, engine_.AddSequence());
    generator_ = std::make_unique<Generator>(engine_, sequence_, request_.with_fingerprint);
    return Status();
  }

  Status ReadPrompt() {
    return generator_->Prefill(request_.prompt, [&](size_t done) {
      if (request_.on_progress) request_.on_progress(done);
      is_stopped_ = IsCancelled();
      return !is_stopped_;
    });
  }

  DecodeJob Job() {
    const GenerationOptions& options = request_.options;
    return {.generator = generator_.get(),
            .sampler = &sampler_,
            .max_tokens = options.max_tokens,
            .context = context_,
            .stop = options.stop,
            .ignore_end = options.ignore_end,
            .show_special = options.show_special,
            .on_text =
                [this](const std::string& piece) {
                  const auto& on_text = request_.options.on_text;
                  is_stopped_ = is_stopped_ || (on_text && !on_text(piece));
                  return Status();
                },
            .is_cancelled = [this] { return IsCancelled(); }};
  }

  GenerationResult ResultOf(DecodeOutcome outcome) const {
    return {.generation = {std::move(outcome.text), std::move(outcome.tokens), outcome.reason,
                           static_cast<int64_t>(request_.prompt.size())},
            .fingerprint = generator_->fingerprint(),
            .times = generator_->times(),
            .context_tokens = static_cast<int64_t>(generator_->history().size())};
  }

  Status Release() {
    if (generator_ == nullptr) return Status();
    generator_.reset();
    return engine_.RemoveSequence(sequence_);
  }

 private:
  bool IsCancelled() const {
    return is_stopped_ || request_.options.cancellation.is_cancelled() ||
           (request_.is_cancelled && request_.is_cancelled());
  }

  Engine& engine_;
  const GenerationRequest& request_;
  Sampler sampler_;
  int64_t context_ = 0;
  int64_t sequence_ = 0;
  std::unique_ptr<Generator> generator_;
  bool is_stopped_ = false;
};

}  // namespace

Result<std::vector<int32_t>> ChatPrompt(const Tokenizer& tokenizer, const std::string& template_name,
                                        const std::string& system, const std::string& question) {
  PANDO_ASSIGN_OR_RETURN(const ChatTemplate chat, FindChatTemplate(tokenizer, template_name));
  std::vector<ChatMessage> messages;
  if (!system.empty()) messages.push_back({"system", system});
  messages.push_back({"user", question});
  PANDO_ASSIGN_OR_RETURN(const std::vector<TextPiece> pieces, chat.Render(messages));
  return EncodeChat(tokenizer, pieces);
}

Result<std::vector<GenerationResult>> Generate(Engine& engine, const Tokenizer& tokenizer,
                                               std::span<const GenerationRequest> requests,
                                               const std::function<Status()>& before_release) {
  std::vector<std::unique_ptr<Work>> works;
  for (const GenerationRequest& request : requests) {
    works.push_back(std::make_unique<Work>(engine, request));
    PANDO_RETURN_IF_ERROR(works.back()->Prepare());
  }
  std::vector<DecodeJob> jobs;
  for (const std::unique_ptr<Work>& work : works) {
    PANDO_RETURN_IF_ERROR(work->ReadPrompt());
    jobs.push_back(work->Job());
  }
  PANDO_ASSIGN_OR_RETURN(std::vector<DecodeOutcome> outcomes, RunDecodeLoop(engine, tokenizer, jobs));
  std::vector<GenerationResult> results;
  for (size_t i = 0; i < works.size(); ++i) results.push_back(works[i]->ResultOf(std::move(outcomes[i])));
  if (before_release) PANDO_RETURN_IF_ERROR(before_release());
  for (const std::unique_ptr<Work>& work : works) PANDO_RETURN_IF_ERROR(work->Release());
  return results;
}

}  // namespace pando
