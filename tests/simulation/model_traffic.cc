// What one step of a small model sends, counted by a real engine: a line "messages bytes" for each rank.
//
//   model_traffic NUM_RANKS BATCH SCHEDULE NUM_GROUPS DOWN BEFORE TOKENS
//
// DOWN is one-hop, two-hops or rows. Each of BATCH sequences has BEFORE tokens and gets TOKENS in a step, twice; the
// second is counted. Steps are divided by tokens where TOKENS are signed: +16. No step may begin a page of 64 tokens.
// prediction_test.py holds it against pando-simulator.
#include <fmt/core.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "pando/communicator.h"
#include "src/engine/engine.h"
#include "src/model/testing/tiny_model.h"
#include "src/ranks/rank_access.h"

namespace pando {
namespace {

struct Traffic {
  uint64_t messages = 0;
  uint64_t bytes = 0;
};

struct Run {
  int num_ranks = 1;
  size_t batch = 1;
  std::string schedule;
  StepDivision division;
  size_t tokens_before = 0;
  size_t tokens = 1;
};

// Of each rank, for what is before and `num_steps` steps.
Status Count(const Run& run, int num_steps, std::vector<Traffic>& of_rank) {
  const std::shared_ptr<const Model> model =
      test_support::MakeTinyModel({.hidden = 128, .ffn = 1024, .heads = 8, .vocabulary = 512}).Load().value();
  const TransformerOptions options = {.strategy = run.schedule, .num_threads = 1, .division = run.division};
  return RunInProcess(run.num_ranks, {}, [&](Communicator& communicator) {
    const Status status = Engine::Run(communicator, model, options, [&](Engine& engine) -> Status {
      const std::vector<int32_t> before(run.tokens_before, 1);
      const std::vector<int32_t> tokens(run.tokens, 1);
      std::vector<SequenceTokens> step;
      std::vector<size_t> wanted;
      // What is before may have too few tokens to be divided; then `tree` would measure links, with as many messages as
      // time allows.
      if (Status done = engine.SetStrategy("butterfly"); !done.ok()) return done;
      for (size_t i = 0; i < run.batch; ++i) {
        const Result<int64_t> sequence = engine.AddSequence();
        if (!sequence.ok()) return sequence.status();
        const SequenceTokens part = {*sequence, before};
        if (Status done = engine.Step({&part, 1}, {}, {}); !done.ok()) return done;
        step.push_back({*sequence, tokens});
        wanted.push_back((i + 1) * run.tokens - 1);
      }
      if (Status done = engine.SetStrategy(run.schedule); !done.ok()) return done;
      std::vector<float> logits(run.batch * model->config().vocabulary);
      for (int i = 0; i < num_steps; ++i) {
        if (Status done = engine.Step(step, wanted, logits); !done.ok()) return done;
      }
      return Status();
    });
    const TrafficCounters& counted = TransportOf(communicator).traffic();
    of_rank[static_cast<size_t>(communicator.rank())] = {counted.messages_sent, counted.bytes_sent};
    return status;
  });
}

int Main(const Run& run) {
  std::vector<Traffic> one(static_cast<size_t>(run.num_ranks));
  std::vector<Traffic> two = one;
  for (const auto& [num_steps, of_rank] : {std::pair(1, &one), std::pair(2, &two)}) {
    const Status status = Count(run, num_steps, *of_rank);
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
  if (argc != 8) return 2;
  pando::Run run = {.num_ranks = std::atoi(argv[1]),
                    .batch = static_cast<size_t>(std::atoi(argv[2])),
                    .schedule = argv[3],
                    .division = {.num_groups = std::atoi(argv[4]),
                                 .divides_tokens = argv[7][0] == '+',
                                 .down = pando::DownDivision::kRows},
                    .tokens_before = static_cast<size_t>(std::atoi(argv[6])),
                    .tokens = static_cast<size_t>(std::atoi(argv[7]))};
  for (const auto down : {pando::DownDivision::kColumnsInOneHop, pando::DownDivision::kColumnsInTwoHops}) {
    if (pando::NameOf(down) == argv[5]) run.division.down = down;
  }
  return pando::Main(run);
}
