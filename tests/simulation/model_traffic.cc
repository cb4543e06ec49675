// What one decode step of a small model sends, counted by a real engine: a line "messages bytes" for each rank.
//
//   model_traffic NUM_RANKS BATCH SCHEDULE
//
// prediction_test.py holds it against pando-simulator.
#include <fmt/core.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "pando/communicator.h"
#include "src/attention/communicator_state.h"
#include "src/engine/engine.h"
#include "src/model/testing/tiny_model.h"

namespace pando {
namespace {

struct Traffic {
  uint64_t messages = 0;
  uint64_t bytes = 0;
};

// Of each rank, for the prompts of all sequences and `num_steps` decode steps.
Status Count(int num_ranks, size_t batch, const std::string& schedule, int num_steps, std::vector<Traffic>& of_rank) {
  const std::shared_ptr<const Model> model =
      test_support::MakeTinyModel({.hidden = 128, .ffn = 192, .heads = 8, .vocabulary = 512}).Load().value();
  const TransformerOptions options = {.strategy = schedule, .num_threads = 1};
  return RunInProcess(num_ranks, {}, [&](Communicator& communicator) {
    const Status status = Engine::Run(communicator, model, options, [&](Engine& engine) -> Status {
      const std::vector<int32_t> prompt(5, 1);
      std::vector<SequenceTokens> step;
      std::vector<size_t> wanted;
      for (size_t i = 0; i < batch; ++i) {
        const Result<int64_t> sequence = engine.AddSequence();
        if (!sequence.ok()) return sequence.status();
        const SequenceTokens part = {*sequence, prompt};
        if (Status done = engine.Step({&part, 1}, {}, {}); !done.ok()) return done;
        step.push_back({*sequence, std::span(prompt).first(1)});
        wanted.push_back(i);
      }
      std::vector<float> logits(batch * model->config().vocabulary);
      for (int i = 0; i < num_steps; ++i) {
        if (Status done = engine.Step(step, wanted, logits); !done.ok()) return done;
      }
      return Status();
    });
    const TrafficCounters& counted = StateOf(communicator).transport->traffic();
    of_rank[static_cast<size_t>(communicator.rank())] = {counted.messages_sent, counted.bytes_sent};
    return status;
  });
}

int Main(int num_ranks, size_t batch, const std::string& schedule) {
  std::vector<Traffic> one(static_cast<size_t>(num_ranks));
  std::vector<Traffic> two = one;
  for (const auto& [num_steps, of_rank] : {std::pair(1, &one), std::pair(2, &two)}) {
    const Status status = Count(num_ranks, batch, schedule, num_steps, *of_rank);
    if (status.ok()) continue;
    fmt::print(stderr, "{}\n", status.message());
    return 1;
  }
  for (size_t rank = 0; rank < one.size(); ++rank) {
    fmt::print("{} {}\n", two[rank].messages - one[rank].messages, two[rank].bytes - one[rank].bytes);
  }
  return 0;
}

}  // namespace
}  // namespace pando

int main(int argc, char** argv) {
  return argc == 4 ? pando::Main(std::atoi(argv[1]), static_cast<size_t>(std::atoi(argv[2])), argv[3]) : 2;
}
