// LanguageModel: a model file that generates text on one rank, on ranks as threads of this process, or on the processes
// that mpirun started.
//
//   pando::Result<pando::LanguageModel> model = pando::LanguageModel::Load("model.gguf", {.num_ranks = 4});
//   if (!model.ok()) return Fail(model.status().message());
//   pando::Result<pando::Generation> generation = model->Generate("The capital of France is", {.max_tokens = 16});
//   if (generation.ok()) std::puts(generation->text.c_str());
//
// The object owns its ranks: it starts them, keeps them alive while nothing is asked of them, and ends them when it is
// destroyed. Under mpirun every process loads the model. Rank 0 is the front and makes all calls; the others call
// Serve(), which returns when the front's object is destroyed:
//
//   if (!model->is_front()) return model->Serve().ok() ? 0 : 1;
//
// Any thread may call; calls run one after the other. A callback runs while its call waits, and must not call the
// model. The text is the same, to the bit of every logit, on any number of ranks and threads, alone or in a batch.
// Nothing throws. If a call fails under mpirun because a rank was lost, leave by std::_Exit: MPI would wait for that
// rank.
#ifndef PANDO_LANGUAGE_MODEL_H_
#define PANDO_LANGUAGE_MODEL_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pando/chat_message.h"
#include "pando/generation.h"
#include "pando/kv_type.h"
#include "pando/status.h"

namespace pando {

struct LanguageModelOptions {
  int64_t num_ranks = 1;    // threads of this process that share the KV cache; under mpirun its processes are the ranks
  int64_t num_threads = 0;  // of each rank; 0: the machine's cores, shared by the ranks on it
  int64_t batch_tokens = 0;  // of a prompt that are computed at once; 0: 512, or fewer if many ranks share a machine
  KvType k_type = KvType::kF16;
  KvType v_type = KvType::kF16;
  std::string strategy = "tree";              // AttentionOptions::strategy
  std::chrono::milliseconds timeout{30'000};  // for each wait for another rank
  // Under mpirun: CommunicatorOptions::on_stuck.
  std::function<void(const std::string& sentence)> on_stuck;
};

// What the file says.
struct ModelFacts {
  std::string architecture;  // "llama", "qwen2", ...
  std::string name;
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocabulary_size = 0;
  int64_t trained_context = 0;  // tokens
  std::string chat_template;    // in Jinja; empty: none
};

struct ConversationOptions {
  SamplerOptions sampling;
  int64_t max_answer_tokens = 1024;
  std::string system;             // what the model is told first; may be empty
  std::string template_name;      // "chatml", "llama3", ...; empty: as the file says
  std::vector<std::string> stop;  // GenerationOptions::stop, for every answer
};

class LanguageModel;

// The text of tokens as they come, in whole UTF-8 characters. It must not outlive its model.
class TextStream {
 public:
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;
  ~TextStream();

  std::string Push(int32_t token);  // the text that is complete now
  std::string Finish();             // what was held back

 private:
  friend class LanguageModel;
  class Implementation;
  explicit TextStream(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

// A chat that keeps its cache, so that a turn costs what is new in it. It must not outlive its model.
class Conversation {
 public:
  Conversation(Conversation&&) noexcept;
  Conversation& operator=(Conversation&&) noexcept;
  ~Conversation();

  // A person's turn. The result is the answer, which `on_text` (may be empty) gets as it is made; if `on_text` returns
  // false or `cancellation` is cancelled, the answer ends there. If the call fails, the chat is as it was before.
  Result<Generation> Say(const std::string& text, const std::function<bool(std::string_view piece)>& on_text = {},
                         const Cancellation& cancellation = {});
  std::vector<ChatMessage> messages() const;

 private:
  friend class LanguageModel;
  class Implementation;
  explicit Conversation(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

class LanguageModel {
 public:
  static Result<LanguageModel> Load(const std::string& path, const LanguageModelOptions& options = {});
  LanguageModel(LanguageModel&&) noexcept;
  LanguageModel& operator=(LanguageModel&&) noexcept;
  ~LanguageModel();

  const ModelFacts& facts() const;
  bool is_front() const;  // false in the processes of mpirun that are not rank 0
  int64_t num_ranks() const;
  // In a process that is not the front: works for the front until it ends. In the front: returns at once.
  Status Serve();

  // With the tokens that begin and end a text, where the model wants them. Control tokens in the text are found.
  Result<std::vector<int32_t>> Encode(std::string_view text) const;
  Result<std::string> Decode(std::span<const int32_t> tokens) const;
  TextStream StreamText() const;

  Result<Generation> Generate(std::string_view prompt, const GenerationOptions& options = {});
  // Several at once, in one batch: faster than one after the other, and the same texts. options: one for each prompt.
  Result<std::vector<Generation>> GenerateAll(std::span<const std::string> prompts,
                                              std::span<const GenerationOptions> options);
  Result<Conversation> StartConversation(const ConversationOptions& options = {});

  // The logits of the token after each of `positions` of `tokens`, [positions][vocabulary_size]. Positions ascend.
  Result<std::vector<float>> Logits(std::span<const int32_t> tokens, std::span<const int64_t> positions);

 private:
  class Implementation;
  friend class Conversation;
  explicit LanguageModel(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace pando

#endif  // PANDO_LANGUAGE_MODEL_H_
