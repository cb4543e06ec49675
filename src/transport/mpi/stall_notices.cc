#include "src/transport/mpi/stall_notices.h"

#include <algorithm>

namespace pando {

void StallNotices::SendToTold(int word) {
  words_.push_back(word);
  for (const int peer : told_) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Isend(&words_.back(), 1, MPI_INT, peer, tag_, communicator_, &request);
    if (code == MPI_SUCCESS) MPI_Request_free(&request);
  }
}

void StallNotices::Tell(const std::vector<int>& late) {
  told_.clear();
  for (int peer = 0; peer < size_; ++peer) {
    if (peer != rank_ && std::find(late.begin(), late.end(), peer) == late.end()) told_.push_back(peer);
  }
  word_ = late.front();
  SendToTold(word_);
}

void StallNotices::TakeBack() {
  if (word_ < 0) return;
  word_ = -1;
  SendToTold(word_);
}

std::vector<int> StallNotices::Hear() {
  std::vector<int> waits_for(size_, -1);
  waits_for[rank_] = word_;
  // Of several words of one rank the last holds: they come in order.
  MPI_Status status;
  int found = 0;
  while (MPI_Iprobe(MPI_ANY_SOURCE, tag_, communicator_, &found, &status) == MPI_SUCCESS && found != 0) {
    int word = -1;
    if (MPI_Recv(&word, 1, MPI_INT, status.MPI_SOURCE, tag_, communicator_, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    waits_for[status.MPI_SOURCE] = word;
  }
  return waits_for;
}

}  // namespace pando
