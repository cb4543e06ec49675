// StallNotices: ranks that have waited for long tell the others for whom, so that at the deadline each can name the
// rank that holds all of them up and not only its neighbour, which may be waiting itself.
#ifndef PANDO_SRC_TRANSPORT_MPI_STALL_NOTICES_H_
#define PANDO_SRC_TRANSPORT_MPI_STALL_NOTICES_H_

#include <mpi.h>

#include <deque>
#include <vector>

namespace pando {

class StallNotices {
 public:
  // Messages with `tag` on the communicator are these and no others.
  StallNotices(MPI_Comm communicator, int tag, int rank, int size)
      : communicator_(communicator), tag_(tag), rank_(rank), size_(size) {}

  // Tells all but `late` that this rank waits for the first of them. Does not wait; MPI moves it along with the rest.
  void Tell(const std::vector<int>& late);
  // Takes that back: it went on after all. Nothing where nothing was told.
  void TakeBack();
  // For each rank whom it says it waits for, or -1.
  std::vector<int> Hear();

 private:
  void SendToTold(int word);

  MPI_Comm communicator_;
  int tag_;
  int rank_;
  int size_;
  std::vector<int> told_;  // the ranks that know of the current wait
  int word_ = -1;
  std::deque<int>
      words_;  // what is being sent; kept for as long as MPI may read it, which nobody asks. A few ints per stall
};

}  // namespace pando

#endif  // PANDO_SRC_TRANSPORT_MPI_STALL_NOTICES_H_
