// Communicator: one rank's end of a group of ranks that share a KV cache.
//
// A rank is a process that mpirun started, or a thread of this process:
//
//   pando::Result<pando::Communicator> communicator = pando::Communicator::Mpi();        // in each process
//   if (!communicator.ok()) return Fail(communicator.status().message());
//
//   pando::Status status = pando::RunInProcess(8, {}, [&](pando::Communicator& communicator) {   // 8 threads
//     ...
//     return pando::Status();
//   });
//
// One thread at a time uses a Communicator. Everything that waits for other ranks has a deadline; a rank that does not
// come in time, or has ended, is named in the Status, and every further call returns that Status again.
#ifndef PANDO_COMMUNICATOR_H_
#define PANDO_COMMUNICATOR_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pando/status.h"

namespace pando {

struct CommunicatorState;

struct CommunicatorOptions {
  std::chrono::milliseconds timeout{30'000};  // for each wait; at least 1
  // MPI only: called by another thread, with a sentence, when a call that MPI gives no way to call off (starting,
  // ending, its own collectives) does not come back in time. All that is left to do then is to print it and to leave by
  // _exit. Without it such a call may hang for ever.
  std::function<void(const std::string& sentence)> on_stuck;
};

class Communicator {
 public:
  // A group of one.
  static Communicator Alone();

  // Element r is rank r, for a thread of its own. A rank that is destroyed has left: who waits for it is told at once.
  static Result<std::vector<Communicator>> InProcess(int64_t num_ranks, const CommunicatorOptions& options = {});

  // All processes that mpirun started; every one of them calls it. MPI is initialised where it is not yet, and then
  // finalised when the Communicator is destroyed, by the same thread. After a failure the process must leave by _exit:
  // MPI would wait for the lost rank.
  static Result<Communicator> Mpi(const CommunicatorOptions& options = {});

  // Whether mpirun (or srun) started this process, as its environment tells.
  static bool StartedByMpirun();
  // Whether this library can do MPI; without, Mpi() fails and says so.
  static bool BuiltWithMpi();

  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&& other) noexcept;
  ~Communicator();

  int64_t rank() const;
  int64_t size() const;
  std::string_view transport() const;  // "inproc", "mpi"

  // Waits until all ranks have called it.
  Status Barrier();

 private:
  friend CommunicatorState& StateOf(Communicator& communicator);
  friend Communicator MakeCommunicator(std::unique_ptr<CommunicatorState> state);
  explicit Communicator(std::unique_ptr<CommunicatorState> state);

  std::unique_ptr<CommunicatorState> state_;
};

// Runs `function` as `num_ranks` ranks, each on a thread (rank 0 on the caller's), and waits for all. A rank's
// Communicator is gone when its function returns. The result is the error of the lowest rank that failed by itself;
// where ranks only waited in vain for others, that of the first.
Status RunInProcess(int64_t num_ranks, const CommunicatorOptions& options,
                    const std::function<Status(Communicator& communicator)>& function);

}  // namespace pando

#endif  // PANDO_COMMUNICATOR_H_
