#include "src/transport/transport.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/errors.h"

namespace pando {

Transport::Transport(std::string_view name, int rank, int size, const TransportOptions& options)
    : node_of_rank_(size), process_of_rank_(size), name_(name), rank_(rank), size_(size), timeout_(options.timeout) {
  sends_.reserve(size);
  receives_.reserve(size);
}

int64_t Transport::num_neighbours() const {
  return std::count(node_of_rank_.begin(), node_of_rank_.end(), node_of_rank_[static_cast<size_t>(rank_)]);
}

Status Transport::Break(Status reason) {
  if (broken_.ok()) broken_ = std::move(reason);
  return broken_;
}

Status Transport::CheckParts(std::span<const SendPart> sends, std::span<const ReceivePart> receives) const {
  for (const SendPart& part : sends) {
    if (part.to < 0 || part.to >= size_) {
      return InvalidArgument("rank {} sends to rank {}: ranks are 0 to {}", rank_, part.to, size_ - 1);
    }
  }
  for (const ReceivePart& part : receives) {
    if (part.from < 0 || part.from >= size_) {
      return InvalidArgument("rank {} receives from rank {}: ranks are 0 to {}", rank_, part.from, size_ - 1);
    }
  }
  return {};
}

Result<Transfer> Transport::Start(std::span<const SendPart> sends, std::span<const ReceivePart> receives) {
  if (!broken_.ok()) return broken_;
  PANDO_RETURN_IF_ERROR(CheckParts(sends, receives));
  const auto free = std::find(is_pending_.begin(), is_pending_.end(), false);
  if (free == is_pending_.end()) {
    return InvalidArgument("rank {} already has {} transfers under way: wait for one of them first", rank_,
                           kMaxPending);
  }
  const int slot = static_cast<int>(free - is_pending_.begin());
  if (Status status = StartIn(slot, sends, receives); !status.ok()) return Break(std::move(status));
  is_pending_[slot] = true;
  for (const SendPart& part : sends) {
    if (part.to == rank_) continue;
    ++traffic_.messages_sent;
    traffic_.bytes_sent += part.bytes;
  }
  return Transfer(slot);
}

Status Transport::Wait(Transfer transfer) {
  PANDO_CHECK(is_pending_[transfer.slot_]);
  is_pending_[transfer.slot_] = false;
  if (!broken_.ok()) return broken_;
  Status status = WaitFor(transfer.slot_);
  return status.ok() ? Status() : Break(std::move(status));
}

Status Transport::Exchange(std::span<const SendPart> sends, std::span<const ReceivePart> receives) {
  Result<Transfer> transfer = Start(sends, receives);
  return transfer.ok() ? Wait(*transfer) : transfer.status();
}

Status Transport::Send(int to, std::span<const std::byte> data) {
  const SendPart part{.to = to, .data = data.data(), .bytes = data.size()};
  return Exchange({&part, 1}, {});
}

Status Transport::Receive(int from, std::span<std::byte> data) {
  const ReceivePart part{.from = from, .data = data.data(), .bytes = data.size()};
  return Exchange({}, {&part, 1});
}

}  // namespace pando
