#include "src/attention/rebalance.h"

#include <algorithm>
#include <cstddef>

#include "src/base/aligned_buffer.h"
#include "src/kv_cache/slot_move.h"
#include "src/ranks/agreement.h"
#include "src/reduction/slot_ownership.h"

namespace pando {
namespace {

// The most bytes that one slot has.
size_t LargestSlotBytes(const KvCache& cache) {
  size_t bytes = 0;
  for (int64_t slot = 0; slot < cache.options().tree.num_slots; ++slot) {
    bytes = std::max(bytes, SlotBytes(cache, {slot, slot + 1}));
  }
  return bytes;
}

}  // namespace

Status MoveSlots(Transport& transport, const RankOrder& order, std::span<const SlotRange> from,
                 std::span<const SlotRange> to, KvCache& cache) {
  const auto rank_of = [&](std::span<const SlotRange> ownership, int64_t slot) {
    return order.rank_at[static_cast<size_t>(OwnerOfSlot(ownership, slot))];
  };
  const auto position = static_cast<size_t>(order.position_of[static_cast<size_t>(transport.rank())]);
  Result<SlotMove> move = SlotMove::Begin(cache, to[position]);
  AlignedBuffer buffer;
  Status ready = move.status();
  if (ready.ok()) ready = buffer.Grow(LargestSlotBytes(cache), "a slot on its way");
  if (Status status = Agree(transport, ready); !status.ok()) return status;

  // Slot by slot, in one order on all ranks: whoever waits, waits for a rank that is at an earlier slot.
  for (int64_t slot = 0; slot < cache.options().tree.num_slots; ++slot) {
    const int sender = rank_of(from, slot);
    const int receiver = rank_of(to, slot);
    const std::span<std::byte> bytes(buffer.data(), SlotBytes(cache, {slot, slot + 1}));
    if (sender == receiver) continue;
    if (sender == transport.rank()) {
      if (Status status = ExportSlots(cache, {slot, slot + 1}, bytes); !status.ok()) return status;
      if (Status status = transport.Send(receiver, bytes); !status.ok()) return status;
    } else if (receiver == transport.rank()) {
      if (Status status = transport.Receive(sender, bytes); !status.ok()) return status;
      if (Status status = move->Import({slot, slot + 1}, bytes); !status.ok()) return status;
    }
  }
  return move->Commit();
}

}  // namespace pando
