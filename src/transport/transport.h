// Transport: one rank's end of a group of ranks that send each other bytes. It knows bytes and ranks, and nothing of
// what they mean.
//
//   const SendPart send{.to = partner, .data = mine.data(), .bytes = mine.size()};
//   const ReceivePart receive{.from = partner, .data = theirs.data(), .bytes = theirs.size()};
//   Result<Transfer> transfer = transport.Start({&send, 1}, {&receive, 1});
//   if (!transfer.ok()) return transfer.status();
//   ...                                    // compute while the bytes move
//   Status status = transport.Wait(*transfer);
//
// - One thread at a time uses a Transport.
// - Both sides know the size of a message. One of another size is an error that names the ranks and the sizes (inproc:
// on
//   both sides; mpi: on the receiver's).
// - Messages between two ranks arrive in the order in which they were started.
// - A send may wait until its receive is started (never count on a buffer in between): two ranks that send to each
// other
//   do it with one Exchange, not with Send and then Receive.
// - Collectives (Barrier to AllReduceSum) are called by all ranks in the same order and with the same sizes, and are
//   ordered with the other messages.
// - Everything that waits has a deadline (TransportOptions::timeout). A rank that does not come in time, has ended or
//   sends another size is named in the Status. After such a failure the order of messages is lost: every further call
//   returns the same Status. Inproc leaves the buffers alone from then on; for mpi see mpi/mpi_transport.h.
// - Nothing is allocated once the shapes have been seen.
#ifndef PANDO_SRC_TRANSPORT_TRANSPORT_H_
#define PANDO_SRC_TRANSPORT_TRANSPORT_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "pando/status.h"
#include "src/base/aligned_buffer.h"

namespace pando {

struct SendPart {
  int to = 0;
  const std::byte* data = nullptr;
  size_t bytes = 0;
};

struct ReceivePart {
  int from = 0;
  std::byte* data = nullptr;
  size_t bytes = 0;
};

// What Start began and Wait ends. A plain handle: copying it copies nothing, and each is waited for exactly once.
class Transfer {
 private:
  friend class Transport;
  explicit Transfer(int slot) : slot_(slot) {}
  int slot_;
};

// inout[i] = in[i] (op) inout[i] for `count` elements. `in` stands for ranks before those of `inout`: the operator must
// be associative, and need not be commutative. Elements are aligned as `new` aligns, or as far as element_bytes allows.
struct ReduceOperator {
  size_t element_bytes = 0;
  void (*combine)(const void* in, void* inout, size_t count, void* context) = nullptr;
  void* context = nullptr;
};

// What this rank has handed over since it began. Differences of two readings measure what lies between them.
struct TrafficCounters {
  // Messages and their bytes, without headers, that this rank sent to other ranks one by one: Start and all that is
  // made of it (Exchange, the collectives). What a rank sends to itself is not counted.
  uint64_t messages_sent = 0;
  uint64_t bytes_sent = 0;
  // Collectives that were left to MPI's own algorithm, which does not say what it sends: the calls, and the bytes of
  // the operand. A calculated figure is no measurement, so there is none. Always 0 for inproc.
  uint64_t mpi_collectives = 0;
  uint64_t mpi_collective_operand_bytes = 0;

  bool operator==(const TrafficCounters&) const = default;
};

struct TransportOptions {
  std::chrono::milliseconds timeout{30'000};  // for each wait
};

class Transport {
 public:
  // Transfers that may be under way at once: one in each direction of a ring, double-buffered.
  static constexpr int kMaxPending = 4;

  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::string_view name() const { return name_; }  // "inproc" or "mpi"
  std::chrono::milliseconds timeout() const { return timeout_; }
  const TrafficCounters& traffic() const { return traffic_; }

  // For each rank, the number of its node (one memory, one operating system) and of its process, counted from 0 in the
  // order of their lowest ranks.
  const std::vector<int>& node_of_rank() const { return node_of_rank_; }
  const std::vector<int>& process_of_rank() const { return process_of_rank_; }
  // Ranks on this rank's node, itself included.
  int64_t num_neighbours() const;

  // Begins all sends and receives at once. The buffers stay as they are until Wait; the lists may go.
  Result<Transfer> Start(std::span<const SendPart> sends, std::span<const ReceivePart> receives);
  Status Wait(Transfer transfer);
  // Lets bytes move while this rank computes. Cheap; call it every few tens of microseconds.
  virtual void Progress() {}

  Status Exchange(std::span<const SendPart> sends, std::span<const ReceivePart> receives);
  Status Send(int to, std::span<const std::byte> data);
  Status Receive(int from, std::span<std::byte> data);

  // Dissemination: ceil(log2 p) empty messages per rank.
  Status Barrier();
  // A binomial tree: ceil(log2 p) hops.
  Status Broadcast(int root, std::span<std::byte> data);
  // Everyone's bytes, in the order of ranks, straight to `root`: p - 1 messages in one hop. The ranks' shares are of
  // one size, or as `bytes_of_rank` says. `all` is empty on the other ranks. A rank's own share may already lie in its
  // place.
  Status Gather(int root, std::span<const std::byte> mine, std::span<std::byte> all,
                std::span<const size_t> bytes_of_rank = {});
  // The same to everyone: in one hop, in which each rank sends its share to each other, or where there are many ranks
  // (gather_ranks.h) in ceil(log2 p) hops.
  Status AllGather(std::span<const std::byte> mine, std::span<std::byte> all,
                   std::span<const size_t> bytes_of_rank = {});
  // The same among some of the ranks, of which this is one: `ranks` says which, in the order of their shares, and
  // `bytes_of_member` has as many entries. The others take no part.
  Status AllGatherAmong(std::span<const int> ranks, std::span<const std::byte> mine, std::span<std::byte> all,
                        std::span<const size_t> bytes_of_member = {});

  // Replaces `data`, on every rank, by the ranks' data combined in the order of ranks: d_0 (op) d_1 (op) ... Inproc:
  // recursive doubling over contiguous ranges of ranks. Mpi: MPI_Allreduce.
  virtual Status AllReduce(std::span<std::byte> data, const ReduceOperator& reduce);
  // Element by element; all ranks get the same bits, which depend on the number of ranks and on the transport.
  virtual Status AllReduceSum(std::span<float> data);
  virtual Status AllReduceMax(std::span<float> data);

 protected:
  Transport(std::string_view name, int rank, int size, const TransportOptions& options);

  // The part of a transport that differs: `slot` < kMaxPending says which transfer. A failed status ends the transport.
  virtual Status StartIn(int slot, std::span<const SendPart> sends, std::span<const ReceivePart> receives) = 0;
  virtual Status WaitFor(int slot) = 0;

  // OK, or why every call fails from now on.
  const Status& broken() const { return broken_; }
  Status Break(Status reason);
  Status CheckOperand(std::span<const std::byte> data, const ReduceOperator& reduce) const;

  TrafficCounters traffic_;
  std::vector<int> node_of_rank_;
  std::vector<int> process_of_rank_;

 private:
  Status CheckParts(std::span<const SendPart> sends, std::span<const ReceivePart> receives) const;
  // Of the member number `me` of `ranks`; begin_of_member_ says where in `all` the shares lie, its own already there.
  Status AllGatherDirectly(std::span<const int> ranks, int me, std::span<std::byte> all);
  Status AllGatherByDoubling(std::span<const int> ranks, int me, std::span<std::byte> all);
  // `me` of `num_members` gives `mine` to a gather into `all`.
  Status CheckShares(int me, int num_members, std::span<const std::byte> mine, std::span<const std::byte> all,
                     std::span<const size_t> bytes_of_member) const;

  std::string_view name_;
  int rank_;
  int size_;
  std::chrono::milliseconds timeout_;
  Status broken_;
  std::array<bool, kMaxPending> is_pending_{};
  // Scratch of the collectives.
  std::vector<SendPart> sends_;
  std::vector<ReceivePart> receives_;
  std::vector<int> all_ranks_;
  std::vector<size_t> begin_of_member_;
  AlignedBuffer received_;
};

}  // namespace pando

#endif  // PANDO_SRC_TRANSPORT_TRANSPORT_H_
