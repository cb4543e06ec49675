// An engine of a few ranks as threads, with the tiny model: what the tests of the engine share.
//
//   const Status status = RunOn(3, [&](Engine& engine) { return engine.AddSequence().status(); });
#ifndef PANDO_SRC_ENGINE_TESTING_TINY_ENGINE_H_
#define PANDO_SRC_ENGINE_TESTING_TINY_ENGINE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "src/engine/engine.h"
#include "src/model/testing/tiny_model.h"

namespace pando::test_support {

inline constexpr size_t kVocabulary = 101;  // of the tiny model

inline std::shared_ptr<const Model> Tiny() {
  static const std::shared_ptr<const Model> model = MakeTinyModel({}).Load().value();
  return model;
}

inline TransformerOptions SmallSteps(int64_t max_tokens = 32) {
  return {.max_tokens = max_tokens, .tree = {.num_slots = 8, .chunk_tokens = 16}, .num_threads = 1};
}

inline Status RunOn(int64_t num_ranks, const std::function<Status(Engine& engine)>& front,
                    const TransformerOptions& options = SmallSteps(),
                    std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
  return RunInProcess(num_ranks, {.timeout = timeout},
                      [&](Communicator& communicator) { return Engine::Run(communicator, Tiny(), options, front); });
}

// In steps of at most `max_tokens`.
inline Status RunOn(int64_t num_ranks, int64_t max_tokens, const std::function<Status(Engine& engine)>& front) {
  return RunOn(num_ranks, front, SmallSteps(max_tokens));
}

}  // namespace pando::test_support

#endif  // PANDO_SRC_ENGINE_TESTING_TINY_ENGINE_H_
