#include "src/planning/simulation_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/testing/script.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Jobs whose simulator is a script: it finds its own behaviour in the job's strategy.
std::vector<SimulationJob> Jobs(const std::vector<std::string>& strategies) {
  std::vector<SimulationJob> jobs(strategies.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].strategy = strategies[i];
    jobs[i].context = static_cast<int64_t>(1024 * (i + 1));
  }
  return jobs;
}

constexpr const char* kSimulator = R"(
job=$(cat)
case "$job" in
  *'"strategy":"slow"'*) sleep 0.3 ;;
  *'"strategy":"endless"'*) exec sleep 1000 ;;
  *'"strategy":"bad"'*) echo "this is bad" >&2; exit 2 ;;
  *'"strategy":"failing"'*) echo "this failed" >&2; echo "and more" >&2; exit 1 ;;
  *'"strategy":"crashing"'*) kill -SEGV $$ ;;
  *'"strategy":"killed"'*) kill -KILL $$ ;;
  *'"strategy":"chatter"'*) echo "no JSON"; exit 0 ;;
esac
context=$(echo "$job" | sed 's/.*"context":\([0-9]*\).*/\1/')
echo '{"schedule":"s","step_seconds":1.5,"weight_seconds":0,"kv_seconds":1,"merge_seconds":0.5,"gather_seconds":0,' \
  '"messages_per_rank":'$context',"bytes_per_rank":2,"mpi_collectives":0,"peak_kv_bytes":3,"ping_pong_seconds":[]}'
)";

struct Outcome {
  Status status;
  std::vector<size_t> indices;
  std::vector<int64_t> messages;
  size_t most_done = 0;
};

Outcome RunScripted(const std::vector<SimulationJob>& jobs, size_t num_jobs, std::chrono::milliseconds timeout,
                    const std::function<bool()>& is_interrupted) {
  const Script script(kSimulator);
  Outcome outcome;
  outcome.status =
      RunSweep(jobs, {.simulator = script.path(), .num_jobs = num_jobs, .memory_bytes = 1e12, .timeout = timeout},
               {.on_result =
                    [&](size_t index, const SimulationResult& result) {
                      outcome.indices.push_back(index);
                      outcome.messages.push_back(result.messages_per_rank);
                    },
                .on_progress = [&](size_t num_done, const SimulationJob&) { outcome.most_done = num_done; },
                .is_interrupted = is_interrupted});
  return outcome;
}

Outcome RunScripted(const std::vector<SimulationJob>& jobs, size_t num_jobs = 2) {
  return RunScripted(jobs, num_jobs, std::chrono::minutes(1), [] { return false; });
}

TEST(SimulationSweepTest, ResultsComeInTheOrderOfTheJobs) {
  for (const size_t num_jobs : {1, 2, 3, 8}) {
    const Outcome outcome = RunScripted(Jobs({"slow", "fast", "fast", "slow", "fast"}), num_jobs);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
    EXPECT_THAT(outcome.indices, ElementsAre(0, 1, 2, 3, 4));
    EXPECT_THAT(outcome.messages, ElementsAre(1024, 2048, 3072, 4096, 5120));
  }
  EXPECT_TRUE(RunScripted({}).status.ok());
}

TEST(SimulationSweepTest, AFailureIsNamedAndWhatIsDoneIsKept) {
  const Outcome bad = RunScripted(Jobs({"fast", "bad", "fast"}), 1);
  EXPECT_EQ(bad.status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(bad.status.message(), "1 rank, 2K tokens, bad: this is bad");
  EXPECT_THAT(bad.indices, ElementsAre(0));
  const Outcome failing = RunScripted(Jobs({"fast", "failing"}), 1);
  EXPECT_EQ(failing.status.code(), StatusCode::kFailed);
  EXPECT_EQ(failing.status.message(), "1 rank, 2K tokens, failing: this failed");
  EXPECT_THAT(RunScripted(Jobs({"crashing"})).status.message(), HasSubstr("ended with code 139"));
  EXPECT_THAT(RunScripted(Jobs({"killed"})).status.message(), HasSubstr("memory"));
  EXPECT_THAT(RunScripted(Jobs({"chatter"})).status.message(), HasSubstr("same build"));
}

TEST(SimulationSweepTest, WhatIsDoneBehindAGapIsKept) {
  const Outcome outcome = RunScripted(Jobs({"endless", "fast", "failing"}), 2);
  EXPECT_EQ(outcome.status.code(), StatusCode::kFailed);
  EXPECT_THAT(outcome.indices, ElementsAre(1));
}

TEST(SimulationSweepTest, WhatTakesTooLongIsNamed) {
  const Outcome outcome =
      RunScripted(Jobs({"fast", "endless"}), 1, std::chrono::milliseconds(500), [] { return false; });
  EXPECT_EQ(outcome.status.code(), StatusCode::kFailed);
  EXPECT_THAT(outcome.status.message(), HasSubstr("endless: not done after 0.5 seconds"));
  EXPECT_THAT(outcome.indices, ElementsAre(0));
}

TEST(SimulationSweepTest, AnInterruptKeepsWhatIsDone) {
  int num_asked = 0;
  const Outcome outcome =
      RunScripted(Jobs({"fast", "endless"}), 2, std::chrono::minutes(1), [&] { return ++num_asked > 20; });
  EXPECT_EQ(outcome.status.code(), StatusCode::kFailed);
  EXPECT_THAT(outcome.status.message(), HasSubstr("interrupted: 1 of 2 points"));
  EXPECT_THAT(outcome.indices, ElementsAre(0));
}

TEST(SimulationSweepTest, JobsThatNeedMoreMemoryRunAlone) {
  // Each creates the same folder: two at a time would fail.
  const std::string folder = fmt::format("{}/pando-sweep-{}", ::testing::TempDir(), getpid());
  const Script script(fmt::format("mkdir {0} || exit 1; sleep 0.1; rmdir {0}; {1}", folder, kSimulator));
  const std::vector<SimulationJob> jobs = Jobs({"fast", "fast", "fast"});
  const Status status =
      RunSweep(jobs, {.simulator = script.path(), .num_jobs = 3, .memory_bytes = 1, .bytes_of_job = {1, 1, 1}},
               {.on_result = [](size_t, const SimulationResult&) {},
                .on_progress = [](size_t, const SimulationJob&) {},
                .is_interrupted = [] { return false; }});
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(SimulationSweepTest, AJobInAFewWords) {
  SimulationJob job;
  job.num_ranks = 64;
  job.context = 1 << 20;
  job.strategy = "ring";
  EXPECT_EQ(DescribeJob(job), "64 ranks, 1M tokens, ring");
  job.batch = 4;
  EXPECT_EQ(DescribeJob(job), "64 ranks, 1M tokens in each of 4 sequences, ring");
}

}  // namespace
}  // namespace pando
