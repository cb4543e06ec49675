// What `pando bench model` measures, as llama-bench does: prompts (`pp`) and generated tokens (`tg`), after a context
// that is there already.
//
//   ModelBenchmark benchmark(engine);
//   benchmark.SetDepth(8192, /*num_more=*/128, should_go_on);
//   Result<ModelMeasurement> row = benchmark.Measure({.num_generated = 128}, 5, "tree", should_go_on);
//
// The tokens are random and always the same, so that the logits of a test have the same bits in every run of it.
#ifndef PANDO_SRC_BENCH_MODEL_BENCHMARK_H_
#define PANDO_SRC_BENCH_MODEL_BENCHMARK_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pando/status.h"
#include "src/engine/engine.h"

namespace pando {

// One of the two is 0.
struct ModelTest {
  int64_t num_prompt = 0;     // tokens computed as a prompt, with the logits of the last
  int64_t num_generated = 0;  // tokens computed one by one, each with its logits

  int64_t num_tokens() const { return num_prompt + num_generated; }
};

// "pp512", "tg128 @ d8192".
std::string TestName(const ModelTest& test, int64_t depth);

struct ModelMeasurement {
  std::vector<double> seconds;  // of each repeat; fewer than asked for where it was told to stop
  std::string schedule;         // how the ranks' attention met
  uint64_t fingerprint = 0;     // of the last logits of the first repeat
};

class ModelBenchmark {
 public:
  // Asked before every step: false ends a measurement early.
  using GoOn = std::function<bool(int64_t tokens_done)>;

  // On the front.
  explicit ModelBenchmark(Engine& engine);

  // Gets the memory for `depth` tokens and tests of up to `num_more`, and computes the `depth` tokens before all that
  // is measured next, by the strategy `tree`: whatever is measured finds the same keys and values.
  Status SetDepth(int64_t depth, int64_t num_more, const GoOn& go_on);

  // A warm-up, then `repeats` measurements, each from the depth. Forking a sequence for each, and its removal, do not
  // count. Where nothing could be measured because of `go_on` there are no seconds.
  Result<ModelMeasurement> Measure(const ModelTest& test, int64_t repeats, std::string_view strategy,
                                   const GoOn& go_on);

 private:
  // Adds tokens to a sequence in steps of at most `step_tokens`, with the logits of the last token of each step, or of
  // the last step. False if it was told to stop.
  enum class Wanted { kNone, kLast, kAll };
  Result<bool> AddTokens(int64_t sequence, int64_t num_tokens, int64_t step_tokens, Wanted wanted, const GoOn& go_on);
  Result<bool> RunTest(int64_t sequence, const ModelTest& test, const GoOn& go_on);
  // RunTest on a fork of the base. No seconds: it was told to stop.
  Result<std::optional<double>> RunOnce(const ModelTest& test, const GoOn& go_on);

  Engine& engine_;
  std::optional<int64_t> base_;  // the sequence of the depth's tokens
  std::vector<int32_t> tokens_;  // of all sequences, by position
  std::vector<float> logits_;
};

}  // namespace pando

#endif  // PANDO_SRC_BENCH_MODEL_BENCHMARK_H_
