#include "pando/language_model.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "src/base/errors.h"
#include "src/engine/chat_session.h"
#include "src/engine/engine_thread.h"
#include "src/engine/generate.h"
#include "src/engine/load_tokenizer.h"
#include "src/model/model.h"
#include "src/tokenizer/stream_decoder.h"

namespace pando {
namespace {

ModelFacts FactsOf(const Model& model, const Tokenizer& tokenizer) {
  const ModelConfig& config = model.config();
  return {.architecture = std::string(config.architecture.name),
          .name = config.name,
          .num_layers = static_cast<int64_t>(config.num_layers),
          .hidden_size = static_cast<int64_t>(config.hidden),
          .num_heads = static_cast<int64_t>(config.num_heads),
          .num_kv_heads = static_cast<int64_t>(config.num_kv_heads),
          .head_dim = static_cast<int64_t>(config.head_dim),
          .vocabulary_size = static_cast<int64_t>(config.vocabulary),
          .trained_context = config.training_context,
          .chat_template = tokenizer.chat_template()};
}

Status CheckTextBytes(std::string_view text) {
  if (text.size() <= Tokenizer::kMaxTextBytes) return Status();
  return InvalidArgument("the text has {} bytes: at most {} can be encoded", text.size(), Tokenizer::kMaxTextBytes);
}

Status CheckPositions(std::span<const int32_t> tokens, std::span<const int64_t> positions) {
  int64_t last = -1;
  for (const int64_t position : positions) {
    if (position <= last || position >= static_cast<int64_t>(tokens.size())) {
      return InvalidArgument("position {} follows {} in a text of {} tokens: positions must ascend from 0", position,
                             last, tokens.size());
    }
    last = position;
  }
  return Status();
}

// The logits of a new sequence's tokens at `positions`, into `logits`.
Status ComputeLogits(Engine& engine, int64_t sequence, std::span<const int32_t> tokens,
                     std::span<const int64_t> positions, std::span<float> logits) {
  const auto step = static_cast<size_t>(engine.options().max_tokens);
  const size_t vocabulary = engine.model().config().vocabulary;
  for (size_t first = 0; first < tokens.size() && !positions.empty(); first += step) {
    const SequenceTokens part = {sequence, tokens.subspan(first, std::min(step, tokens.size() - first))};
    std::vector<size_t> wanted;
    while (wanted.size() < positions.size() &&
           static_cast<size_t>(positions[wanted.size()]) < first + part.tokens.size()) {
      wanted.push_back(static_cast<size_t>(positions[wanted.size()]) - first);
    }
    PANDO_RETURN_IF_ERROR(engine.Step({&part, 1}, wanted, logits.first(wanted.size() * vocabulary)));
    positions = positions.subspan(wanted.size());
    logits = logits.subspan(wanted.size() * vocabulary);
  }
  return Status();
}

}  // namespace

class TextStream::Implementation {
 public:
  explicit Implementation(const Tokenizer& tokenizer) : decoder(tokenizer) {}
  StreamDecoder decoder;
};

class LanguageModel::Implementation {
 public:
  Status Start(const std::string& path, const LanguageModelOptions& options) {
    Result<std::shared_ptr<const Model>> model = Model::Load(path, {});
    if (model.ok()) {
      Result<Tokenizer> tokenizer = LoadTokenizer((*model)->file());
      if (tokenizer.ok()) {
        facts_ = FactsOf(**model, *tokenizer);
        tokenizer_.emplace(std::move(tokenizer).value());
      } else {
        model = tokenizer.status();
      }
    }
    const EngineThreadOptions ranks = {.num_ranks = options.num_ranks,
                                       .with_mpi = Communicator::StartedByMpirun(),
                                       .communicator = {.timeout = options.timeout, .on_stuck = options.on_stuck}};
    return thread_.Start(std::move(model),
                         {.max_tokens = options.batch_tokens,
                          .k_type = options.k_type,
                          .v_type = options.v_type,
                          .strategy = options.strategy,
                          .num_threads = options.num_threads},
                         ranks);
  }

  const ModelFacts& facts() const { return facts_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  EngineThread& thread() { return thread_; }

 private:
  ModelFacts facts_;
  std::optional<Tokenizer> tokenizer_;
  EngineThread thread_;
};

class Conversation::Implementation {
 public:
  explicit Implementation(LanguageModel::Implementation& model) : model_(model) {}
  ~Implementation() {
    if (session_.has_value()) (void)model_.thread().Call([&](Engine&) { return session_->End(); });
  }
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  Status Start(const ConversationOptions& options) {
    PANDO_RETURN_IF_ERROR(ValidateSamplerOptions(options.sampling));
    PANDO_ASSIGN_OR_RETURN(ChatTemplate found, FindChatTemplate(model_.tokenizer(), options.template_name));
    template_.emplace(std::move(found));
    const ChatOptions chat = {.sampling = options.sampling,
                              .context = model_.facts().trained_context,
                              .max_answer = options.max_answer_tokens,
                              .system = options.system,
                              .stop = options.stop};
    return model_.thread().Call([&](Engine& engine) {
      session_.emplace(engine, model_.tokenizer(), *template_, chat);
      return session_->Start();
    });
  }

  Result<Generation> Say(const std::string& text, const std::function<bool(std::string_view)>& on_text,
                         const Cancellation& cancellation) {
    Generation generation;
    const ChatCallbacks callbacks = {
        .on_progress = [&](size_t, size_t) { return !cancellation.is_cancelled(); },
        .on_text =
            [&](const std::string& piece) { return (!on_text || on_text(piece)) && !cancellation.is_cancelled(); }};
    PANDO_RETURN_IF_ERROR(model_.thread().Call([&](Engine&) -> Status {
      PANDO_ASSIGN_OR_RETURN(ChatTurn turn, session_->Say(text, callbacks));
      generation.reason = turn.reason;
      generation.prompt_tokens = turn.prompt_tokens;
      generation.tokens = std::move(turn.tokens);
      if (turn.prompt_tokens > 0) generation.text = session_->messages().back().content;
      messages_ = session_->messages();
      return Status();
    }));
    return generation;
  }

  const std::vector<ChatMessage>& messages() const { return messages_; }

 private:
  LanguageModel::Implementation& model_;
  std::optional<ChatTemplate> template_;
  std::optional<ChatSession> session_;
  std::vector<ChatMessage> messages_;
};

TextStream::TextStream(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;
TextStream::~TextStream() = default;
std::string TextStream::Push(int32_t token) { return implementation_->decoder.Push(token); }
std::string TextStream::Finish() { return implementation_->decoder.Finish(); }

Conversation::Conversation(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
Conversation::Conversation(Conversation&&) noexcept = default;
Conversation& Conversation::operator=(Conversation&&) noexcept = default;
Conversation::~Conversation() = default;
std::vector<ChatMessage> Conversation::messages() const { return implementation_->messages(); }

Result<Generation> Conversation::Say(const std::string& text, const std::function<bool(std::string_view)>& on_text,
                                     const Cancellation& cancellation) {
  return implementation_->Say(text, on_text, cancellation);
}

LanguageModel::LanguageModel(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
LanguageModel::LanguageModel(LanguageModel&&) noexcept = default;
LanguageModel& LanguageModel::operator=(LanguageModel&&) noexcept = default;
LanguageModel::~LanguageModel() = default;

Result<LanguageModel> LanguageModel::Load(const std::string& path, const LanguageModelOptions& options) {
  auto implementation = std::make_unique<Implementation>();
  PANDO_RETURN_IF_ERROR(implementation->Start(path, options));
  return LanguageModel(std::move(implementation));
}

const ModelFacts& LanguageModel::facts() const { return implementation_->facts(); }
bool LanguageModel::is_front() const { return implementation_->thread().is_front(); }
int64_t LanguageModel::num_ranks() const { return implementation_->thread().num_ranks(); }
Status LanguageModel::Serve() { return implementation_->thread().Serve(); }

Result<std::vector<int32_t>> LanguageModel::Encode(std::string_view text) const {
  PANDO_RETURN_IF_ERROR(CheckTextBytes(text));
  return implementation_->tokenizer().Encode(text);
}

Result<std::string> LanguageModel::Decode(std::span<const int32_t> tokens) const {
  return implementation_->tokenizer().Decode(tokens);
}

TextStream LanguageModel::StreamText() const {
  return TextStream(std::make_unique<TextStream::Implementation>(implementation_->tokenizer()));
}

Result<Generation> LanguageModel::Generate(std::string_view prompt, const GenerationOptions& options) {
  const std::string text(prompt);
  PANDO_ASSIGN_OR_RETURN(std::vector<Generation> generations, GenerateAll({&text, 1}, {&options, 1}));
  return std::move(generations.front());
}

Result<std::vector<Generation>> LanguageModel::GenerateAll(std::span<const std::string> prompts,
                                                           std::span<const GenerationOptions> options) {
  if (prompts.size() != options.size()) {
    return InvalidArgument("there are {} prompts and {} options: give one for each prompt", prompts.size(),
                           options.size());
  }
  std::vector<GenerationRequest> requests;
  for (size_t i = 0; i < prompts.size(); ++i) {
    PANDO_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, Encode(prompts[i]));
    requests.push_back({.prompt = std::move(tokens), .options = options[i]});
  }
  std::vector<Generation> generations;
  PANDO_RETURN_IF_ERROR(implementation_->thread().Call([&](Engine& engine) -> Status {
    PANDO_ASSIGN_OR_RETURN(std::vector<GenerationResult> results,
                           pando::Generate(engine, implementation_->tokenizer(), requests));
    for (GenerationResult& result : results) generations.push_back(std::move(result.generation));
    return Status();
  }));
  return generations;
}

Result<Conversation> LanguageModel::StartConversation(const ConversationOptions& options) {
  auto conversation = std::make_unique<Conversation::Implementation>(*implementation_);
  PANDO_RETURN_IF_ERROR(conversation->Start(options));
  return Conversation(std::move(conversation));
}

Result<std::vector<float>> LanguageModel::Logits(std::span<const int32_t> tokens, std::span<const int64_t> positions) {
  PANDO_RETURN_IF_ERROR(CheckPositions(tokens, positions));
  std::vector<float> logits(positions.size() * static_cast<size_t>(facts().vocabulary_size));
  PANDO_RETURN_IF_ERROR(implementation_->thread().Call([&](Engine& engine) -> Status {
    PANDO_ASSIGN_OR_RETURN(const int64_t sequence, engine.AddSequence());
    const Status status = ComputeLogits(engine, sequence, tokens, positions, logits);
    const Status removed = engine.RemoveSequence(sequence);
    return status.ok() ? removed : status;
  }));
  return logits;
}

}  // namespace pando
