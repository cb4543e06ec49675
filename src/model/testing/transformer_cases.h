// What the tests of the forward pass share: tiny models of every kind, ways to divide the work, and a sequence that is
// fed to the ranks.
//
//   const std::vector<float> logits = LogitsOf(Models()[0].model, prompt, {.num_ranks = 3, .step_tokens = 7});
#ifndef PANDO_SRC_MODEL_TESTING_TRANSFORMER_CASES_H_
#define PANDO_SRC_MODEL_TESTING_TRANSFORMER_CASES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/model/model.h"
#include "src/model/transformer.h"

namespace pando::test_support {

struct NamedModel {
  std::string name;
  std::shared_ptr<const Model> model;
};

// All architectures, and what else a file may ask for. Vocabularies and head counts are odd where they may be.
const std::vector<NamedModel>& Models();

// How the work is divided.
struct Division {
  int64_t num_ranks = 1;
  int64_t num_threads = 1;
  int64_t step_tokens = 64;
  std::string strategy = "tree";
  std::optional<StepDivision> step = {};
  int64_t num_slots = 8;  // part of what the bits depend on
};

std::string NameOf(const Division& division);

// Runs `function` with a transformer on each rank.
void RunOnRanks(const std::shared_ptr<const Model>& model, const Division& division, KvType kv_type,
                const std::function<Status(Transformer& transformer, bool is_front)>& function);

// A sequence whose tokens come in steps, and the logits of some of them, on the front.
class Feed {
 public:
  Feed(Transformer& transformer, bool is_front);
  Feed(Transformer& transformer, bool is_front, int64_t sequence);

  int64_t sequence() const { return sequence_; }

  Status Add(std::span<const int32_t> tokens, size_t step_tokens);

  // Of the last token of the last step; none on other ranks.
  Status AppendLogits(std::vector<float>& logits);

 private:
  Transformer& transformer_;
  const bool is_front_;
  const int64_t sequence_;
  size_t last_ = 0;
};

// The logits of the prompt's last token, and of three more that come one by one.
std::vector<float> LogitsOf(const std::shared_ptr<const Model>& model, std::span<const int32_t> prompt,
                            const Division& division, KvType kv_type = KvType::kF16);

std::vector<int32_t> PromptFor(const NamedModel& named, size_t count);

}  // namespace pando::test_support

#endif  // PANDO_SRC_MODEL_TESTING_TRANSFORMER_CASES_H_
