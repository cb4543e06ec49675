#include "src/transport/inproc/inproc_group.h"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "src/base/errors.h"
#include "src/transport/wait_error.h"

namespace pando {
namespace {

// A hop between ranks that both have a core is over in a microsecond or two: a short spin saves the sleep and the
// wake-up.
constexpr int kSpinsBeforeSleep = 1000;

void SpinPause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

struct PendingTransfer;

// One message as one of its ranks sees it. Written by its rank before it is posted; then guarded by the channel's
// mutex.
struct Part {
  Part* next = nullptr;  // in the channel's queue
  PendingTransfer* transfer = nullptr;
  const std::byte* source = nullptr;  // of a send
  std::byte* target = nullptr;        // of a receive
  size_t bytes = 0;
  size_t other_bytes = 0;  // what the other rank said
  int peer = 0;
  bool is_send = false;
  std::atomic<bool> done{false};
};

struct PendingTransfer {
  int rank = 0;
  size_t num_parts = 0;
  std::vector<Part> parts;  // never shrinks
  std::atomic<size_t> num_left{0};
};

// The messages from one rank to another of which one side has come: either only sends or only receives, in order.
struct alignas(kCacheLineBytes) Channel {
  std::mutex mutex;
  Part* first = nullptr;
  Part* last = nullptr;
};

// Where a rank sleeps.
struct alignas(kCacheLineBytes) Seat {
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<bool> gone{false};
  std::string last_words;  // why it is gone, if it failed; written before `gone`
};

// What the ranks share.
class Group {
 public:
  explicit Group(int num_ranks)
      : spins_before_sleep(num_ranks <= static_cast<int>(std::thread::hardware_concurrency()) ? kSpinsBeforeSleep : 0),
        seats(num_ranks),
        channels_(static_cast<size_t>(num_ranks) * num_ranks) {}

  // Puts a part into its channel, or completes it and its counterpart where that is already there.
  void Post(Part& part);
  // Takes a part back. Afterwards nobody touches it or its buffer.
  void Withdraw(Part& part);
  void Leave(int rank, std::string last_words);

  const int spins_before_sleep;
  std::vector<Seat> seats;

 private:
  Channel& ChannelOf(const Part& part) {
    const size_t from = part.is_send ? part.transfer->rank : part.peer;
    const size_t to = part.is_send ? part.peer : part.transfer->rank;
    return channels_[from * seats.size() + to];
  }
  // True if it was the last of its transfer, whose rank is then to be woken.
  static bool Complete(Part& part);
  static void Wake(Seat& seat);

  std::vector<Channel> channels_;
};

void Group::Wake(Seat& seat) {
  // Whoever looked before this and saw nothing is asleep when the mutex is free.
  { const std::lock_guard<std::mutex> lock(seat.mutex); }
  seat.wake.notify_one();
}

bool Group::Complete(Part& part) {
  part.done.store(true, std::memory_order_release);
  // After the last one the owner may use the transfer for something else.
  return part.transfer->num_left.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

void Group::Post(Part& part) {
  Channel& channel = ChannelOf(part);
  // Held while copying: a rank that withdraws has to wait for the copy.
  std::unique_lock<std::mutex> lock(channel.mutex);
  Part* other = channel.first;
  if (other == nullptr || other->is_send == part.is_send) {
    (other == nullptr ? channel.first : channel.last->next) = &part;
    channel.last = &part;
    return;
  }
  channel.first = other->next;
  part.other_bytes = other->bytes;
  other->other_bytes = part.bytes;
  if (part.bytes == other->bytes && part.bytes != 0) {
    const Part& send = part.is_send ? part : *other;
    const Part& receive = part.is_send ? *other : part;
    std::memcpy(receive.target, send.source, part.bytes);
  }
  Seat& seat = seats[other->transfer->rank];
  const bool wake = Complete(*other);
  Complete(part);  // Its own rank is awake: it is here.
  // After the mutex, which the woken rank may want first.
  lock.unlock();
  if (wake) Wake(seat);
}

void Group::Withdraw(Part& part) {
  Channel& channel = ChannelOf(part);
  const std::lock_guard<std::mutex> lock(channel.mutex);
  if (part.done.load(std::memory_order_relaxed)) return;
  Part* previous = nullptr;
  for (Part* queued = channel.first; queued != &part; queued = queued->next) previous = queued;
  (previous == nullptr ? channel.first : previous->next) = part.next;
  if (channel.last == &part) channel.last = previous;
  part.done.store(true, std::memory_order_relaxed);
}

void Group::Leave(int rank, std::string last_words) {
  Seat& mine = seats[rank];
  if (mine.gone.load(std::memory_order_relaxed)) return;
  mine.last_words = std::move(last_words);
  mine.gone.store(true, std::memory_order_release);
  for (Seat& seat : seats) Wake(seat);
}

class InprocTransport : public Transport {
 public:
  InprocTransport(std::shared_ptr<Group> group, int rank, const TransportOptions& options)
      : Transport("inproc", rank, static_cast<int>(group->seats.size()), options), group_(std::move(group)) {
    for (PendingTransfer& transfer : transfers_) transfer.rank = rank;
  }
  ~InprocTransport() override { GiveUp({}); }

 private:
  Status StartIn(int slot, std::span<const SendPart> sends, std::span<const ReceivePart> receives) override;
  Status WaitFor(int slot) override;

  // Sleeps until the transfer is done, a rank that it needs is gone, or the deadline.
  void Sleep(const PendingTransfer& transfer);
  // Why the transfer will not be done in time. Ends this transport, unless the answer is OK.
  Status FailedBy(const PendingTransfer& transfer);
  static std::vector<int> LatePeers(const PendingTransfer& transfer);
  // The rank of a part that will never be done; -1 without.
  int GonePeer(const PendingTransfer& transfer) const;
  void GiveUp(std::string last_words);

  std::shared_ptr<Group> group_;
  std::array<PendingTransfer, kMaxPending> transfers_;
};

Status InprocTransport::StartIn(int slot, std::span<const SendPart> sends, std::span<const ReceivePart> receives) {
  PendingTransfer& transfer = transfers_[slot];
  transfer.num_parts = sends.size() + receives.size();
  if (transfer.parts.size() < transfer.num_parts) transfer.parts = std::vector<Part>(transfer.num_parts);
  transfer.num_left.store(transfer.num_parts, std::memory_order_relaxed);
  size_t i = 0;
  const auto post = [&](int peer, bool is_send, const std::byte* source, std::byte* target, size_t bytes) {
    Part& part = transfer.parts[i++];
    part.next = nullptr;
    part.transfer = &transfer;
    part.source = source;
    part.target = target;
    part.bytes = bytes;
    part.other_bytes = bytes;
    part.peer = peer;
    part.is_send = is_send;
    part.done.store(false, std::memory_order_relaxed);
    group_->Post(part);
  };
  // Receives first: a peer that waits for what is sent here then often finds everything done at once.
  for (const ReceivePart& receive : receives) post(receive.from, false, nullptr, receive.data, receive.bytes);
  for (const SendPart& send : sends) post(send.to, true, send.data, nullptr, send.bytes);
  return {};
}

int InprocTransport::GonePeer(const PendingTransfer& transfer) const {
  for (size_t i = 0; i < transfer.num_parts; ++i) {
    const Part& part = transfer.parts[i];
    // In this order: what a rank did before it went is seen as done.
    if (group_->seats[part.peer].gone.load(std::memory_order_acquire) && !part.done.load(std::memory_order_acquire)) {
      return part.peer;
    }
  }
  return -1;
}

void InprocTransport::Sleep(const PendingTransfer& transfer) {
  const auto deadline = std::chrono::steady_clock::now() + timeout();
  Seat& seat = group_->seats[rank()];
  std::unique_lock<std::mutex> lock(seat.mutex);
  seat.wake.wait_until(lock, deadline, [&] {
    return transfer.num_left.load(std::memory_order_acquire) == 0 || GonePeer(transfer) >= 0;
  });
}

std::vector<int> InprocTransport::LatePeers(const PendingTransfer& transfer) {
  std::vector<int> late;
  for (size_t i = 0; i < transfer.num_parts; ++i) {
    if (!transfer.parts[i].done.load(std::memory_order_acquire)) late.push_back(transfer.parts[i].peer);
  }
  return late;
}

Status InprocTransport::FailedBy(const PendingTransfer& transfer) {
  const int gone = GonePeer(transfer);
  if (gone >= 0) {
    const std::string& reason = group_->seats[gone].last_words;
    Status status = reason.empty()
                        ? Failed("rank {} waited for rank {}, which has ended: see what it printed", rank(), gone)
                        : Failed("rank {} waited for rank {}, which gave up: {}", rank(), gone, reason);
    GiveUp(reason.empty() ? status.message() : reason);
    return status;
  }
  const std::vector<int> late = LatePeers(transfer);
  if (late.empty()) return {};
  Status status = DeadlineError(rank(), late, timeout());
  GiveUp(status.message());
  return status;
}

Status InprocTransport::WaitFor(int slot) {
  const PendingTransfer& transfer = transfers_[slot];
  for (int i = 0; i < group_->spins_before_sleep; ++i) {
    if (transfer.num_left.load(std::memory_order_acquire) == 0) break;
    SpinPause();
  }
  while (transfer.num_left.load(std::memory_order_acquire) != 0) {
    Sleep(transfer);
    if (transfer.num_left.load(std::memory_order_acquire) == 0) break;
    // OK where the last part came just now: it is about to be counted.
    PANDO_RETURN_IF_ERROR(FailedBy(transfer));
  }
  for (size_t i = 0; i < transfer.num_parts; ++i) {
    const Part& part = transfer.parts[i];
    if (part.other_bytes == part.bytes) continue;
    Status status = part.is_send ? SizeError(rank(), part.bytes, part.peer, part.other_bytes)
                                 : SizeError(part.peer, part.other_bytes, rank(), part.bytes);
    GiveUp(status.message());
    return status;
  }
  return {};
}

void InprocTransport::GiveUp(std::string last_words) {
  for (PendingTransfer& transfer : transfers_) {
    for (size_t i = 0; i < transfer.num_parts; ++i) group_->Withdraw(transfer.parts[i]);
  }
  group_->Leave(rank(), std::move(last_words));
}

}  // namespace

Result<std::vector<std::unique_ptr<Transport>>> CreateInprocGroup(int num_ranks, const TransportOptions& options) {
  if (num_ranks < 1 || num_ranks > kMaxInprocRanks) {
    return InvalidArgument("a group of {} ranks in one process: 1 to {} are possible", num_ranks, kMaxInprocRanks);
  }
  const auto group = std::make_shared<Group>(num_ranks);
  std::vector<std::unique_ptr<Transport>> ranks;
  ranks.reserve(num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    ranks.push_back(std::make_unique<InprocTransport>(group, rank, options));
  }
  return ranks;
}

}  // namespace pando
