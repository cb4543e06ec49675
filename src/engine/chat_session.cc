#include "src/engine/chat_session.h"

#include <algorithm>
#include <utility>

#include "src/base/errors.h"

namespace pando {
namespace {

GeneratorTimes Sum(const GeneratorTimes& a, const GeneratorTimes& b) {
  return {a.prompt_tokens + b.prompt_tokens, a.prompt_seconds + b.prompt_seconds, a.decode_tokens + b.decode_tokens,
          a.decode_seconds + b.decode_seconds};
}

GeneratorTimes Difference(const GeneratorTimes& a, const GeneratorTimes& b) {
  return {a.prompt_tokens - b.prompt_tokens, a.prompt_seconds - b.prompt_seconds, a.decode_tokens - b.decode_tokens,
          a.decode_seconds - b.decode_seconds};
}

// The pieces without their first `num_bytes`.
std::vector<TextPiece> DropFront(std::vector<TextPiece> pieces, size_t num_bytes) {
  size_t first = 0;
  while (first < pieces.size() && pieces[first].text.size() <= num_bytes) num_bytes -= pieces[first++].text.size();
  pieces.erase(pieces.begin(), pieces.begin() + static_cast<ptrdiff_t>(first));
  if (num_bytes > 0 && !pieces.empty()) pieces.front().text.erase(0, num_bytes);
  return pieces;
}

}  // namespace

Status CheckChatBytes(size_t num_bytes) {
  if (num_bytes <= Tokenizer::kMaxTextBytes) return Status();
  return InvalidArgument("the chat has {} bytes with what its template writes: at most {}, so say less", num_bytes,
                         Tokenizer::kMaxTextBytes);
}

Result<std::vector<int32_t>> EncodeChat(const Tokenizer& tokenizer, std::span<const TextPiece> pieces,
                                        const EncodeOptions& options) {
  size_t num_bytes = 0;
  for (const TextPiece& piece : pieces) num_bytes += piece.text.size();
  if (Status status = CheckChatBytes(num_bytes); !status.ok()) return status;
  return tokenizer.EncodePieces(pieces, options);
}

Result<ChatTemplate> FindChatTemplate(const Tokenizer& tokenizer, std::string_view name) {
  const ChatTokens tokens = ChatTokensOf(tokenizer);
  return name.empty() ? ChatTemplate::Recognise(tokenizer.chat_template(), tokens) : ChatTemplate::Named(name, tokens);
}

ChatSession::ChatSession(Engine& engine, const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                         const ChatOptions& options)
    : engine_(engine), tokenizer_(tokenizer), template_(chat_template), options_(options), sampler_(options.sampling) {}

Status ChatSession::Start() {
  messages_.clear();
  if (!options_.system.empty()) messages_.push_back({"system", options_.system});
  return Restart();
}

Status ChatSession::Restart() {
  if (generator_.has_value()) past_times_ = Sum(past_times_, generator_->times());
  generator_.reset();
  if (sequence_.has_value()) {
    if (Status status = engine_.RemoveSequence(*std::exchange(sequence_, std::nullopt)); !status.ok()) return status;
  }
  const Result<int64_t> sequence = engine_.AddSequence();
  if (!sequence.ok()) return sequence.status();
  sequence_ = *sequence;
  generator_.emplace(engine_, *sequence_, /*with_fingerprint=*/false);
  return Status();
}

Status ChatSession::End() {
  generator_.reset();
  if (!sequence_.has_value()) return Status();
  return engine_.RemoveSequence(*std::exchange(sequence_, std::nullopt));
}

Status ChatSession::Unsay(const Status& why) {
  messages_.pop_back();
  const Status status = Restart();
  return why.ok() ? status : why;
}

GeneratorTimes ChatSession::AllTimes() const { return Sum(past_times_, generator_->times()); }

int64_t ChatSession::num_tokens() const { return static_cast<int64_t>(generator_->history().size()); }

// The cache holds the chat up to the last answer, as it was prompted for, and that answer.
std::optional<std::vector<TextPiece>> ChatSession::RestAfterCache(std::vector<TextPiece> all) const {
  if (messages_.size() < 2 || messages_[messages_.size() - 2].role != "assistant") return std::nullopt;
  const std::span<const ChatMessage> before = std::span(messages_).first(messages_.size() - 2);
  const Result<std::vector<TextPiece>> prompted = template_.Render(before);
  if (!prompted.ok()) return std::nullopt;
  const std::string cached = TextOf(*prompted) + messages_[messages_.size() - 2].content;
  if (!TextOf(all).starts_with(cached)) return std::nullopt;
  return DropFront(std::move(all), cached.size());
}

Result<std::vector<int32_t>> ChatSession::NewTokens() {
  const Result<std::vector<TextPiece>> all = template_.Render(messages_);
  if (!all.ok()) return all.status();
  if (!generator_->history().empty()) {
    if (const std::optional<std::vector<TextPiece>> rest = RestAfterCache(*all)) {
      Result<std::vector<int32_t>> tokens = EncodeChat(tokenizer_, *rest, {.add_special = false});
      // The token that ended the answer is there already.
      const int32_t last = generator_->history().back();
      const bool is_there = tokens.ok() && !tokens->empty() && tokens->front() == last;
      if (is_there && tokenizer_.IsEndOfGeneration(last)) tokens->erase(tokens->begin());
      return tokens;
    }
    if (Status status = Restart(); !status.ok()) return status;
  }
  return EncodeChat(tokenizer_, *all);
}

Result<ChatTurn> ChatSession::Say(const std::string& text, const ChatCallbacks& callbacks) {
  const GeneratorTimes before = AllTimes();
  messages_.push_back({"user", text});
  const Result<std::vector<int32_t>> tokens = NewTokens();
  if (!tokens.ok()) {
    messages_.pop_back();
    return tokens.status();
  }
  const auto count = static_cast<int64_t>(tokens->size());
  if (num_tokens() + count >= options_.context) {
    messages_.pop_back();
    return InvalidArgument(
        "the chat would have {} tokens with this and the context has room for {}: say less, begin anew, "
        "or use a larger context",
        num_tokens() + count, options_.context);
  }
  const auto on_progress = [&](size_t done) {
    return !callbacks.on_progress || callbacks.on_progress(done, tokens->size());
  };
  const int64_t whole = num_tokens() + count;
  if (Status status = generator_->Prefill(*tokens, on_progress); !status.ok()) return Unsay(status);
  if (num_tokens() < whole) {  // stopped before it was read
    if (Status status = Unsay(Status()); !status.ok()) return status;
    return ChatTurn{.times = Difference(AllTimes(), before)};
  }
  ChatTurn turn{.prompt_tokens = count};
  Result<DecodeOutcome> answer = Answer(callbacks);
  if (!answer.ok()) return Unsay(answer.status());
  turn.answer_tokens = static_cast<int64_t>(answer->tokens.size());
  turn.tokens = std::move(answer->tokens);
  turn.reason = answer->reason;
  messages_.push_back({"assistant", std::move(answer->text)});
  // The cache has the stop sequence too, which is no part of the answer: the chat is read again with the next turn.
  if (turn.reason == EndReason::kStopSequence) PANDO_RETURN_IF_ERROR(Restart());
  turn.times = Difference(AllTimes(), before);
  return turn;
}

Result<DecodeOutcome> ChatSession::Answer(const ChatCallbacks& callbacks) {
  bool is_stopped = false;
  const DecodeJob job = {.generator = &*generator_,
                         .sampler = &sampler_,
                         .max_tokens = options_.max_answer,
                         .context = options_.context,
                         .stop = options_.stop,
                         .on_text =
                             [&](const std::string& piece) {
                               is_stopped = is_stopped || (callbacks.on_text && !callbacks.on_text(piece));
                               return Status();
                             },
                         .is_cancelled = [&] { return is_stopped; }};
  PANDO_ASSIGN_OR_RETURN(std::vector<DecodeOutcome> outcomes, RunDecodeLoop(engine_, tokenizer_, {&job, 1}));
  return std::move(outcomes.front());
}

Result<ChatState> ChatSession::Freeze() {
  if (Status status = generator_->Finish(); !status.ok()) return status;
  const std::span<const int32_t> history = generator_->history();
  return ChatState{messages_, {history.begin(), history.end()}, *sequence_, sampler_.random_state()};
}

Status ChatSession::Thaw(ChatState state) {
  const int64_t num_cached = engine_.NumTokens(state.sequence);
  if (num_cached == 0 || num_cached != static_cast<int64_t>(state.tokens.size())) {
    sequence_.reset();  // gone with the cache that was there before
    if (Status status = Start(); !status.ok()) return status;
    return InvalidArgument("the saved chat has {} tokens and its cache {}: they do not belong together",
                           state.tokens.size(), num_cached);
  }
  if (generator_.has_value()) past_times_ = Sum(past_times_, generator_->times());
  messages_ = std::move(state.messages);
  sequence_ = state.sequence;
  sampler_.set_random_state(state.random_state);
  generator_.emplace(engine_, *sequence_, /*with_fingerprint=*/false, std::move(state.tokens));
  return Status();
}

}  // namespace pando
