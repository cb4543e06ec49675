#include "src/planning/simulation_sweep.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "src/base/child_process.h"
#include "src/base/errors.h"
#include "src/base/size_text.h"

namespace pando {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kSimulatorName = "pando-simulator";

struct Running {
  size_t index;
  ChildProcess process;
  Clock::time_point deadline;
  double memory_bytes;
};

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// What a process that has ended came to.
Result<SimulationResult> ResultOf(const ChildProcess& process) {
  switch (process.exit_code()) {
    case 0:
      return ParseSimulationResult(process.output());
    case 1:
      return Failed("{}", FirstLine(process.errors()));
    case 2:
      return InvalidArgument("{}", FirstLine(process.errors()));
    case 127:
      return Failed("pando-simulator cannot be run: is it of this build, and is SimGrid still installed? {}",
                    FirstLine(process.errors()));
    case 128 + SIGKILL:
      return Failed("pando-simulator was killed, as the system does when memory runs out: take fewer --jobs or ranks");
    default:
      return Failed("pando-simulator ended with code {}: {}", process.exit_code(), FirstLine(process.errors()));
  }
}

Status About(const SimulationJob& job, const Status& status) {
  return {status.code(), fmt::format("{}: {}", DescribeJob(job), status.message())};
}

class Sweep {
 public:
  Sweep(std::span<const SimulationJob> jobs, const SweepOptions& options, const SweepCalls& calls)
      : jobs_(jobs), options_(options), calls_(calls), results_(jobs.size()) {}

  Status Run() {
    Status status;
    while (status.ok() && num_done_ < jobs_.size()) {
      status = StartMore();
      if (status.ok()) status = Wait();
      HandOver();
    }
    running_.clear();
    HandOverRest();
    return status;
  }

 private:
  bool HasRoomFor(double bytes) const {
    if (running_.empty()) return true;
    for (const Running& other : running_) bytes += other.memory_bytes;
    return running_.size() < options_.num_jobs && bytes <= options_.memory_bytes;
  }

  Status StartMore() {
    for (; next_ < jobs_.size(); ++next_) {
      const SimulationJob& job = jobs_[next_];
      const double bytes = options_.bytes_of_job.empty() ? 0 : options_.bytes_of_job[next_];
      if (!HasRoomFor(bytes)) return Status();
      PANDO_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(options_.simulator, ToJson(job)));
      running_.push_back({next_, std::move(process), Clock::now() + options_.timeout, bytes});
      calls_.on_progress(num_done_, job);
    }
    return Status();
  }

  // Until something has happened, but not for long: an interrupt may come at any time.
  void Poll() const {
    std::vector<pollfd> descriptors;
    bool all_open = true;
    for (const Running& running : running_) {
      for (const int descriptor : running.process.descriptors()) {
        all_open = all_open && descriptor >= 0;
        descriptors.push_back({descriptor, POLLIN, 0});
      }
    }
    poll(descriptors.data(), descriptors.size(), all_open ? 100 : 1);
  }

  Status Wait() {
    Poll();
    if (calls_.is_interrupted()) return Failed("interrupted: {} of {} points were simulated", num_done_, jobs_.size());
    for (auto running = running_.begin(); running != running_.end();) {
      const SimulationJob& job = jobs_[running->index];
      if (!running->process.Advance()) {
        if (Clock::now() > running->deadline) {
          return Failed("{}: not done after {} seconds: give it more with --timeout", DescribeJob(job),
                        std::chrono::duration<double>(options_.timeout).count());
        }
        ++running;
        continue;
      }
      Result<SimulationResult> result = ResultOf(running->process);
      if (!result.ok()) return About(job, result.status());
      results_[running->index] = std::move(result).value();
      ++num_done_;
      running = running_.erase(running);
    }
    return Status();
  }

  void HandOver() {
    for (; num_handed_over_ < jobs_.size() && results_[num_handed_over_]; ++num_handed_over_) {
      calls_.on_result(num_handed_over_, *results_[num_handed_over_]);
    }
  }

  void HandOverRest() {
    for (size_t i = num_handed_over_; i < jobs_.size(); ++i) {
      if (results_[i]) calls_.on_result(i, *results_[i]);
    }
  }

  std::span<const SimulationJob> jobs_;
  const SweepOptions& options_;
  const SweepCalls& calls_;
  std::vector<std::optional<SimulationResult>> results_;
  std::vector<Running> running_;
  size_t next_ = 0;
  size_t num_done_ = 0;
  size_t num_handed_over_ = 0;
};

bool IsProgram(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

Result<std::string> FindSimulator() {
  std::error_code ignored;
  // It is of the same build then.
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path beside = own.parent_path() / kSimulatorName;
  if (!own.empty() && IsProgram(beside)) return beside.string();
  const char* path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "" : path;
  while (!folders.empty()) {
    const size_t end = std::min(folders.find(':'), folders.size());
    const std::filesystem::path candidate = std::filesystem::path(folders.substr(0, end)) / kSimulatorName;
    if (IsProgram(candidate)) return candidate.string();
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return Failed(
      "pando-simulator is neither beside pando nor on PATH: it is built where SimGrid is found, so install SimGrid "
      "(Debian: libsimgrid-dev, or scripts/install-deps simulation) and build again");
}

Status RunSweep(std::span<const SimulationJob> jobs, const SweepOptions& options, const SweepCalls& calls) {
  return Sweep(jobs, options, calls).Run();
}

std::string DescribeJob(const SimulationJob& job) {
  return fmt::format("{} rank{}, {} tokens{}, {}", job.num_ranks, job.num_ranks == 1 ? "" : "s",
                     FormatSize(job.context), job.batch == 1 ? "" : fmt::format(" in each of {} sequences", job.batch),
                     job.strategy);
}

}  // namespace pando
