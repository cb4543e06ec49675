#include "src/cli/generation.h"

#include <algorithm>
#include <utility>

#include "src/base/errors.h"
#include "src/cli/reports/prefill_progress.h"
#include "src/engine/bytes_read.h"
#include "src/engine/chat_session.h"
#include "src/engine/generator.h"
#include "src/tokenizer/chat_template.h"
#include "src/tokenizer/stream_decoder.h"

namespace pando::cli {
namespace {

// Tokens there is room for.
Result<int64_t> ContextOf(const Engine& engine, const GenerationRequest& request) {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t trained = engine.model().config().training_context;
  const int64_t context = request.context.value_or(std::min(trained, prompt + std::min(request.max_tokens, trained)));
  if (prompt < context) return context;
  return InvalidArgument("the prompt has {} tokens, and the context room for {} with at least one of an answer: {}",
                         prompt, context,
                         request.context.has_value() ? "raise -c or shorten the prompt"
                                                     : "shorten it, or raise -c beyond what the model was trained for");
}

// Why generation ended.
Result<std::string> DecodeLoop(Generator& generator, const Tokenizer& tokenizer, const GenerationRequest& request,
                               int64_t context, const InterruptGuard& interrupt,
                               const std::function<Status(int32_t token)>& on_token) {
  Sampler sampler(request.sampling);
  for (int64_t made = 0; made < request.max_tokens; ++made) {
    if (interrupt.WasInterrupted()) return std::string("interrupted");
    // The last token need not be computed: nothing comes after it.
    if (static_cast<int64_t>(generator.history().size()) > context) return std::string("context");
    const Result<int32_t> token = generator.Next(sampler);
    if (!token.ok()) return token.status();
    if (tokenizer.IsEndOfGeneration(*token) && !request.ignore_eos) return std::string("end");
    if (Status status = on_token(*token); !status.ok()) return status;
  }
  return std::string("length");
}

Status FillFigures(Engine& engine, const Generator& generator, GenerationReport& report) {
  Result<std::vector<RankFigures>> figures = engine.TakeFigures();
  if (!figures.ok()) return figures.status();
  report.ranks = std::move(figures).value();
  report.fingerprint = generator.fingerprint();
  report.times = generator.times();
  report.attention = engine.options().strategy;
  report.schedule = engine.schedule();
  report.context_tokens = static_cast<int64_t>(generator.history().size());
  report.bytes_read_per_token =
      BytesReadPerToken(engine.model(), engine.options(), report.times.prompt_tokens, report.times.decode_tokens);
  return Status();
}

}  // namespace

Result<std::vector<int32_t>> ChatPrompt(const Tokenizer& tokenizer, const std::string& template_name,
                                        const std::string& system, const std::string& question) {
  const Result<ChatTemplate> chat = FindChatTemplate(tokenizer, template_name);
  if (!chat.ok()) return chat.status();
  std::vector<ChatMessage> messages;
  if (!system.empty()) messages.push_back({"system", system});
  messages.push_back({"user", question});
  const Result<std::vector<TextPiece>> pieces = chat->Render(messages);
  if (!pieces.ok()) return pieces.status();
  return EncodeChat(tokenizer, *pieces);
}

Result<GenerationReport> Generate(Engine& engine, const Tokenizer& tokenizer, const GenerationRequest& request,
                                  const InterruptGuard& interrupt,
                                  const std::function<Status(const std::string& piece)>& on_text) {
  if (request.prompt.empty()) {
    return InvalidArgument(
        "the prompt is empty, and this model begins texts with no token of its own: give a text with -p, -f or on "
        "standard input");
  }
  const Result<int64_t> context = ContextOf(engine, request);
  if (!context.ok()) return context.status();
  const int64_t most = static_cast<int64_t>(request.prompt.size()) + std::min(request.max_tokens, *context);
  if (Status status = engine.Reserve(std::min(*context, most)); !status.ok()) return status;
  const Result<int64_t> sequence = engine.AddSequence();
  if (!sequence.ok()) return sequence.status();

  Generator generator(engine, *sequence, request.with_fingerprint);
  PrefillProgress progress(request.prompt.size());
  Status status = generator.Prefill(request.prompt, [&](size_t done) {
    progress.Show(done);
    return !interrupt.WasInterrupted();
  });
  progress.Show(request.prompt.size());
  if (!status.ok()) return status;

  GenerationReport report;
  StreamDecoder decoder(tokenizer, {.special = request.show_special, .is_continuation = true});
  const auto give = [&](const std::string& piece) {
    report.text += piece;
    return piece.empty() ? Status() : on_text(piece);
  };
  Result<std::string> reason = DecodeLoop(generator, tokenizer, request, *context, interrupt, [&](int32_t token) {
    report.tokens.push_back(token);
    return give(decoder.Push(token));
  });
  if (!reason.ok()) return reason.status();
  report.stop_reason = std::move(reason).value();
  if (status = give(decoder.Finish()); !status.ok()) return status;
  if (status = FillFigures(engine, generator, report); !status.ok()) return status;
  if (status = engine.RemoveSequence(*sequence); !status.ok()) return status;
  return report;
}

}  // namespace pando::cli
