// Ranks as threads of one process: the embedded default.
//
//   Result<std::vector<std::unique_ptr<Transport>>> ranks = CreateInprocGroup(8);
//   // hand (*ranks)[r] to the thread of rank r
//
// There is no buffer in between. Of a message's two ranks, the one that comes second copies, straight from the sender's
// memory to the receiver's; the one that came first has only to be woken. In an exchange of two ranks one of them thus
// never sleeps, and with more ranks than cores (where ranks sleep at once instead of spinning) a hop costs one wake-up.
//
// A rank whose Transport is destroyed, or has failed, is gone: who waits for it is told at once, not at the deadline.
#ifndef PANDO_SRC_TRANSPORT_INPROC_INPROC_GROUP_H_
#define PANDO_SRC_TRANSPORT_INPROC_INPROC_GROUP_H_

#include <memory>
#include <vector>

#include "pando/status.h"
#include "src/transport/transport.h"

namespace pando {

inline constexpr int kMaxInprocRanks = 1024;

// Element r is rank r. Each may be used and destroyed by a thread of its own.
Result<std::vector<std::unique_ptr<Transport>>> CreateInprocGroup(int num_ranks, const TransportOptions& options = {});

}  // namespace pando

#endif  // PANDO_SRC_TRANSPORT_INPROC_INPROC_GROUP_H_
