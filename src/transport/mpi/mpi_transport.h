// Ranks as processes under mpirun, with MPI 3.1 (OpenMPI, MPICH). No MPI header is needed to use it.
//
//   MpiOptions options{.timeout = std::chrono::seconds(30), .on_stuck = [](const std::string& sentence) {
//     fmt::print(stderr, "pando: {}\n", sentence);
//     _exit(1);
//   }};
//   Result<std::unique_ptr<Transport>> transport = CreateMpiTransport(options);
//
// Deadlines. What is sent rank to rank is waited for in a loop that looks at the clock and names the rank, and the one
// that holds it up where it waits itself (mpi/stall_notices.h). Calls of MPI that block inside (MPI_Init,
// MPI_Allreduce, MPI_Finalize and those that make the communicator) cannot be called off: a watchdog thread calls
// `on_stuck` with the sentence instead, and all that the program can do then is print it and leave. Which rank is
// missing is not known there.
//
// After a failure. MPI gives no way back: requests stay under way, and MPI_Finalize would wait for the lost rank. So
// the destructor of a failed transport leaves MPI alone, the buffers of what was under way must stay until the process
// ends, and the program leaves with _exit(1) rather than through exit handlers. OpenMPI's mpirun ends all processes as
// soon as one is lost or ends with an error; with --enable-recovery the others get to say which rank they waited for.
//
// Errors of MPI are to be returned, also on MPI_COMM_WORLD and MPI_COMM_SELF, whose handlers are set so: MPICH reports
// there what concerns any communicator.
//
// Threads. MPI is initialised, where it is not yet, for calls from one thread (MPI_THREAD_FUNNELED): the one that calls
// CreateMpiTransport uses the transport and destroys it, which finalises MPI if it was initialised here.
#ifndef PANDO_SRC_TRANSPORT_MPI_MPI_TRANSPORT_H_
#define PANDO_SRC_TRANSPORT_MPI_MPI_TRANSPORT_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pando/status.h"
#include "src/transport/transport.h"

namespace pando {

struct MpiOptions {
  std::chrono::milliseconds timeout{30'000};
  // Called by another thread when a call of MPI does not come back in time. Without it such a call may hang for ever.
  std::function<void(const std::string& sentence)> on_stuck;
  // Larger messages travel in pieces: a count is an int in MPI 3.1. The same on all ranks.
  size_t max_message_bytes = size_t{1} << 30;
  // The node of each rank, counted from 0 in the order of their lowest ranks, where MPI itself cannot tell (SimGrid's
  // says that every rank is alone). Empty: ask MPI. The same on all ranks.
  std::vector<int> node_of_rank;
  // The process has no threads but the calling one: an MPI that does not allow for others will do.
  bool is_single_threaded = false;
};

// Whether this build of the library has MPI. Without, CreateMpiTransport fails and says so.
bool BuiltWithMpi();

// The transport of all processes that mpirun started (a duplicate of MPI_COMM_WORLD). All of them call it.
Result<std::unique_ptr<Transport>> CreateMpiTransport(const MpiOptions& options);

}  // namespace pando

#endif  // PANDO_SRC_TRANSPORT_MPI_MPI_TRANSPORT_H_
