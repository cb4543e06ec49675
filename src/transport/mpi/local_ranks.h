// LocalRanks: which ranks of a job are alive, as far as this machine can tell; for the sentence of a rank that is stuck
// in a call of MPI, which does not say whom it waits for.
//
//   LocalRanks ranks("job-17", /*rank=*/0, /*size=*/4);      // from now on the others can see this one
//   ranks.Missing()                                          // {1}: not started yet, ended, or stopped
//
// Every rank listens on a socket named after the job and the rank, which the system takes away with the process:
// nothing is left behind, and nothing is ever sent. The names are those of the network namespace: ranks on other
// machines are not seen, so this is for jobs on one machine.
#ifndef PANDO_SRC_TRANSPORT_MPI_LOCAL_RANKS_H_
#define PANDO_SRC_TRANSPORT_MPI_LOCAL_RANKS_H_

#include <memory>
#include <string>
#include <vector>

#include "src/transport/launch.h"

namespace pando {

class LocalRanks {
 public:
  LocalRanks(std::string job, int rank, int size);
  ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  // The other ranks that have no process here, or a stopped one.
  std::vector<int> Missing() const;

 private:
  bool IsMissing(int rank) const;

  std::string job_;
  int rank_;
  int size_;
  int socket_;
};

// For the job that started this process, if all of its ranks are on this machine and it has a name; otherwise null.
std::unique_ptr<LocalRanks> MakeLocalRanks(const EnvironmentReader& environment);

}  // namespace pando

#endif  // PANDO_SRC_TRANSPORT_MPI_LOCAL_RANKS_H_
