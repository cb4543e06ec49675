#include <atomic>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "pando/communicator.h"
#include "src/base/errors.h"
#include "src/ranks/communicator_state.h"

namespace pando {
namespace {

// How one rank's function ended.
struct Ending {
  Status status;
  std::exception_ptr exception;
  bool by_itself = false;  // it failed while its transport worked: no other rank is to blame
  int turn = 0;            // how many ranks ended before
};

class Run {
 public:
  Run(std::vector<Communicator> ranks, const std::function<Status(Communicator&)>& function)
      : ranks_(ranks.size()), function_(function), endings_(ranks.size()) {
    for (size_t rank = 0; rank < ranks.size(); ++rank) ranks_[rank].emplace(std::move(ranks[rank]));
  }

  Status All() {
    std::vector<std::thread> threads;
    threads.reserve(ranks_.size());
    for (size_t rank = 1; rank < ranks_.size(); ++rank) StartOn(threads, rank);
    RunRank(0);
    for (std::thread& thread : threads) thread.join();
    for (const Ending& ending : endings_) {
      if (ending.exception) std::rethrow_exception(ending.exception);
    }
    return Cause();
  }

 private:
  void StartOn(std::vector<std::thread>& threads, size_t rank) {
    try {
      threads.emplace_back([this, rank] { RunRank(rank); });
    } catch (const std::system_error& error) {
      End(rank, Failed("rank {} of {} could not get a thread ({}): use fewer ranks, or raise the limit of threads",
                       rank, ranks_.size(), error.what()));
    }
  }

  void RunRank(size_t rank) {
    try {
      End(rank, function_(*ranks_[rank]));
    } catch (...) {
      endings_[rank].exception = std::current_exception();
      End(rank, Status());
    }
  }

  void End(size_t rank, Status status) {
    Ending& ending = endings_[rank];
    // An exchange with nobody fails only where the transport has failed before.
    ending.by_itself = !status.ok() && StateOf(*ranks_[rank]).transport->Exchange({}, {}).ok();
    ending.turn = num_ended_.fetch_add(1);
    ending.status = std::move(status);
    ranks_[rank].reset();  // Who waits for it is told.
  }

  Status Cause() const {
    const Ending* first = nullptr;
    for (const Ending& ending : endings_) {
      if (ending.by_itself) return ending.status;
      if (!ending.status.ok() && (first == nullptr || ending.turn < first->turn)) first = &ending;
    }
    return first == nullptr ? Status() : first->status;
  }

  std::vector<std::optional<Communicator>> ranks_;
  const std::function<Status(Communicator&)>& function_;
  std::vector<Ending> endings_;
  std::atomic<int> num_ended_{0};
};

}  // namespace

Status RunInProcess(int64_t num_ranks, const CommunicatorOptions& options,
                    const std::function<Status(Communicator& communicator)>& function) {
  PANDO_ASSIGN_OR_RETURN(std::vector<Communicator> ranks, Communicator::InProcess(num_ranks, options));
  return Run(std::move(ranks), function).All();
}

}  // namespace pando
