// The collectives that are made of Exchange, and so have its deadline, its counters and its way of naming a lost rank.
#include <algorithm>
#include <cstring>

#include "src/base/errors.h"
#include "src/base/gather_ranks.h"
#include "src/transport/transport.h"

namespace pando {
namespace {

void Copy(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

void CombineSum(const void* in, void* inout, size_t count, void* /*context*/) {
  const float* a = static_cast<const float*>(in);
  float* b = static_cast<float*>(inout);
  for (size_t i = 0; i < count; ++i) b[i] = a[i] + b[i];
}

void CombineMax(const void* in, void* inout, size_t count, void* /*context*/) {
  const float* a = static_cast<const float*>(in);
  float* b = static_cast<float*>(inout);
  for (size_t i = 0; i < count; ++i) b[i] = std::max(a[i], b[i]);
}

}  // namespace

Status Transport::Barrier() {
  for (int distance = 1; distance < size_; distance *= 2) {
    const SendPart send{.to = (rank_ + distance) % size_};
    const ReceivePart receive{.from = (rank_ - distance + size_) % size_};
    PANDO_RETURN_IF_ERROR(Exchange({&send, 1}, {&receive, 1}));
  }
  return broken_;
}

// Counted from the root, rank r receives from r without its lowest set bit, and then serves r + 2^k for all 2^k below
// that bit, the farthest first: with 8 ranks 0 -> 4, then 0 -> 2 and 4 -> 6, then 0 -> 1, 2 -> 3, 4 -> 5, 6 -> 7.
Status Transport::Broadcast(int root, std::span<std::byte> data) {
  if (root < 0 || root >= size_) return InvalidArgument("rank {} broadcasts: ranks are 0 to {}", root, size_ - 1);
  const int position = (rank_ - root + size_) % size_;
  int bit = 1;
  while (bit < size_ && (position & bit) == 0) bit *= 2;
  if (position != 0) {
    PANDO_RETURN_IF_ERROR(Receive((position - bit + root) % size_, data));
  }
  sends_.clear();
  for (bit /= 2; bit >= 1; bit /= 2) {
    if (position + bit >= size_) continue;
    sends_.push_back({.to = (position + bit + root) % size_, .data = data.data(), .bytes = data.size()});
  }
  return Exchange(sends_, {});
}

Status Transport::CheckShares(int me, int num_members, std::span<const std::byte> mine, std::span<const std::byte> all,
                              std::span<const size_t> bytes_of_member) const {
  if (!bytes_of_member.empty() && bytes_of_member.size() != static_cast<size_t>(num_members)) {
    return InvalidArgument("a gather of {} ranks is given the sizes of {}", num_members, bytes_of_member.size());
  }
  size_t total = mine.size() * static_cast<size_t>(num_members);
  if (!bytes_of_member.empty()) {
    total = 0;
    for (const size_t bytes : bytes_of_member) total += bytes;
    if (bytes_of_member[me] != mine.size()) {
      return InvalidArgument("rank {} gathers {} bytes and was to have {}", rank_, mine.size(), bytes_of_member[me]);
    }
  }
  if (all.size() != total) {
    return InvalidArgument("rank {} gathers into {} bytes what is {} in all", rank_, all.size(), total);
  }
  return {};
}

Status Transport::Gather(int root, std::span<const std::byte> mine, std::span<std::byte> all,
                         std::span<const size_t> bytes_of_rank) {
  if (root < 0 || root >= size_) return InvalidArgument("rank {} gathers: ranks are 0 to {}", root, size_ - 1);
  if (rank_ != root) return Send(root, mine);
  PANDO_RETURN_IF_ERROR(CheckShares(rank_, size_, mine, all, bytes_of_rank));
  receives_.clear();
  size_t begin = 0;
  for (int peer = 0; peer < size_; ++peer) {
    const size_t bytes = bytes_of_rank.empty() ? mine.size() : bytes_of_rank[peer];
    if (peer != rank_) receives_.push_back({.from = peer, .data = all.data() + begin, .bytes = bytes});
    if (peer == rank_) Copy(all.data() + begin, mine.data(), bytes);
    begin += bytes;
  }
  return Exchange({}, receives_);
}

Status Transport::AllGather(std::span<const std::byte> mine, std::span<std::byte> all,
                            std::span<const size_t> bytes_of_rank) {
  if (all_ranks_.empty()) {
    for (int rank = 0; rank < size_; ++rank) all_ranks_.push_back(rank);
  }
  return AllGatherAmong(all_ranks_, mine, all, bytes_of_rank);
}

Status Transport::AllGatherAmong(std::span<const int> ranks, std::span<const std::byte> mine, std::span<std::byte> all,
                                 std::span<const size_t> bytes_of_member) {
  const auto found = std::ranges::find(ranks, rank_);
  if (found == ranks.end()) return InvalidArgument("rank {} is not among the {} that gather", rank_, ranks.size());
  const int me = static_cast<int>(found - ranks.begin());
  const int num_members = static_cast<int>(ranks.size());
  PANDO_RETURN_IF_ERROR(CheckShares(me, num_members, mine, all, bytes_of_member));
  begin_of_member_.resize(ranks.size() + 1);
  size_t begin = 0;
  for (int member = 0; member < num_members; ++member) {
    begin_of_member_[member] = begin;
    begin += bytes_of_member.empty() ? mine.size() : bytes_of_member[member];
  }
  begin_of_member_[num_members] = begin;
  Copy(all.data() + begin_of_member_[me], mine.data(), mine.size());
  return num_members <= kMostRanksOfDirectGather ? AllGatherDirectly(ranks, me, all)
                                                 : AllGatherByDoubling(ranks, me, all);
}

// Around the circle of ranks, each has the shares of itself and of the distance - 1 after it, gives them to the rank
// that far before it and gets as many from the one that far after it. With 5 ranks, rank 3:
//
//   distance     has        sends to     gets
//          1     3          2            4              from 4
//          2     3 4        1            0 1            from 0
//          4     3 4 0 1    4            2              from 2; sends only its own, which is all that rank 4 misses
//
// Shares lie in their places from the start; those on both sides of the end are two messages.
Status Transport::AllGatherByDoubling(std::span<const int> ranks, int me, std::span<std::byte> all) {
  const int num_members = static_cast<int>(ranks.size());
  // add(data, bytes) for the shares of `count` members from `first` on, around the end.
  const auto for_pieces = [&](int first, int count, const auto& add) {
    const int end = std::min(first + count, num_members);
    const int wrapped = first + count - end;
    add(all.data() + begin_of_member_[first], begin_of_member_[end] - begin_of_member_[first]);
    if (wrapped > 0) add(all.data(), begin_of_member_[wrapped]);
  };
  for (int distance = 1; distance < num_members; distance *= 2) {
    const int count = std::min(distance, num_members - distance);
    const int to = ranks[(me - distance + num_members) % num_members];
    const int from = (me + distance) % num_members;
    sends_.clear();
    receives_.clear();
    for_pieces(me, count, [&](std::byte* data, size_t bytes) {
      if (bytes > 0) sends_.push_back({.to = to, .data = data, .bytes = bytes});
    });
    for_pieces(from, count, [&](std::byte* data, size_t bytes) {
      if (bytes > 0) receives_.push_back({.from = ranks[from], .data = data, .bytes = bytes});
    });
    PANDO_RETURN_IF_ERROR(Exchange(sends_, receives_));
  }
  return broken_;
}

Status Transport::AllGatherDirectly(std::span<const int> ranks, int me, std::span<std::byte> all) {
  const int num_members = static_cast<int>(ranks.size());
  const auto share = [&](int member) {
    return all.subspan(begin_of_member_[member], begin_of_member_[member + 1] - begin_of_member_[member]);
  };
  sends_.clear();
  receives_.clear();
  // Each begins with its neighbour, so that not all knock at the first one first.
  for (int i = 1; i < num_members; ++i) {
    const int member = (me + i) % num_members;
    sends_.push_back({.to = ranks[member], .data = share(me).data(), .bytes = share(me).size()});
    receives_.push_back({.from = ranks[member], .data = share(member).data(), .bytes = share(member).size()});
  }
  return Exchange(sends_, receives_);
}

Status Transport::CheckOperand(std::span<const std::byte> data, const ReduceOperator& reduce) const {
  if (!broken_.ok()) return broken_;
  if (reduce.element_bytes == 0 || data.size() % reduce.element_bytes != 0) {
    return InvalidArgument("an allreduce of {} bytes has elements of {}: the one must be a multiple of the other",
                           data.size(), reduce.element_bytes);
  }
  return {};
}

// With 2^k <= p < 2^(k+1) ranks and `extra` = p - 2^k, ranks 0 to 2 * extra - 1 first join in pairs, the odd one
// speaking for both; the 2^k speakers, which stand for adjacent ranges in order, then double the ranges; last, the odd
// ones tell the even ones.
Status Transport::AllReduce(std::span<std::byte> data, const ReduceOperator& reduce) {
  PANDO_RETURN_IF_ERROR(CheckOperand(data, reduce));
  if (size_ == 1) return {};
  PANDO_RETURN_IF_ERROR(received_.Grow(data.size(), "the buffer of an allreduce"));
  const size_t count = data.size() / reduce.element_bytes;
  const std::span<std::byte> received{received_.data(), data.size()};

  int num_speakers = 1;
  while (num_speakers * 2 <= size_) num_speakers *= 2;
  const int extra = size_ - num_speakers;
  const bool in_pair = rank_ < 2 * extra;
  if (in_pair && rank_ % 2 == 0) {
    PANDO_RETURN_IF_ERROR(Send(rank_ + 1, data));
    return Receive(rank_ + 1, data);
  }
  if (in_pair) {
    PANDO_RETURN_IF_ERROR(Receive(rank_ - 1, received));
    reduce.combine(received.data(), data.data(), count, reduce.context);
  }
  const int speaker = in_pair ? rank_ / 2 : rank_ - extra;
  std::byte* mine = data.data();
  std::byte* theirs = received.data();
  for (int distance = 1; distance < num_speakers; distance *= 2) {
    const int other = speaker ^ distance;
    const int partner = other < extra ? 2 * other + 1 : other + extra;
    const SendPart send{.to = partner, .data = mine, .bytes = data.size()};
    const ReceivePart receive{.from = partner, .data = theirs, .bytes = data.size()};
    PANDO_RETURN_IF_ERROR(Exchange({&send, 1}, {&receive, 1}));
    if (partner < rank_) {
      reduce.combine(theirs, mine, count, reduce.context);
    } else {
      reduce.combine(mine, theirs, count, reduce.context);
      std::swap(mine, theirs);
    }
  }
  Copy(data.data(), mine, data.size());
  return in_pair ? Send(rank_ - 1, data) : Status();
}

Status Transport::AllReduceSum(std::span<float> data) {
  return AllReduce(std::as_writable_bytes(data), {.element_bytes = sizeof(float), .combine = CombineSum});
}

Status Transport::AllReduceMax(std::span<float> data) {
  return AllReduce(std::as_writable_bytes(data), {.element_bytes = sizeof(float), .combine = CombineMax});
}

}  // namespace pando
