#include "src/transport/testing/transport_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "src/base/gather_ranks.h"
#include "src/base/testing/allocation_counter.h"

namespace pando::test_support {
namespace {

using Bytes = std::vector<std::byte>;

// What `from` sends `to` as its message number `message`: no two are alike.
Bytes Pattern(int from, int to, int message, size_t bytes) {
  Bytes pattern(bytes);
  uint32_t state = (from * 131u + to) * 8191u + message + 1;
  for (std::byte& byte : pattern) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return pattern;
}

int After(const Transport& t, int distance) { return ((t.rank() + distance) % t.size() + t.size()) % t.size(); }

void ExpectOk(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

void RingShift(Transport& t, size_t bytes, int distance) {
  const int to = After(t, distance);
  const int from = After(t, -distance);
  const Bytes mine = Pattern(t.rank(), to, 0, bytes);
  Bytes theirs(bytes);
  const SendPart send{.to = to, .data = mine.data(), .bytes = bytes};
  const ReceivePart receive{.from = from, .data = theirs.data(), .bytes = bytes};
  ExpectOk(t.Exchange({&send, 1}, {&receive, 1}));
  EXPECT_EQ(theirs, Pattern(from, t.rank(), 0, bytes)) << bytes << " bytes at distance " << distance;
}

// Every distance, 0 among them: a rank may send to itself.
void ShiftsAroundTheRing(Transport& t) {
  for (int distance = 0; distance < t.size(); ++distance) {
    for (const size_t bytes : {0, 1, 3, 64, 4097}) RingShift(t, bytes, distance);
  }
}

void MovesLargeMessages(Transport& t) {
  // 16 MB on few ranks, less on many: the machine has to hold them all.
  RingShift(t, (size_t{32} << 20) / std::max(2, t.size()) + 1, 1);
}

void ExchangesWithPartner(Transport& t) {
  for (int bit = 1; bit < t.size(); bit *= 2) {
    const int partner = t.rank() ^ bit;
    if (partner >= t.size()) continue;
    const Bytes mine = Pattern(t.rank(), partner, bit, 16600);
    Bytes theirs(mine.size());
    const SendPart send{.to = partner, .data = mine.data(), .bytes = mine.size()};
    const ReceivePart receive{.from = partner, .data = theirs.data(), .bytes = theirs.size()};
    ExpectOk(t.Exchange({&send, 1}, {&receive, 1}));
    EXPECT_EQ(theirs, Pattern(partner, t.rank(), bit, theirs.size()));
  }
}

// The size differs from pair to pair.
void SendsAllToAll(Transport& t) {
  const auto bytes = [](size_t from, size_t to) { return from * 37 + to * 11; };
  std::vector<Bytes> outbox(t.size());
  std::vector<Bytes> inbox(t.size());
  std::vector<SendPart> sends;
  std::vector<ReceivePart> receives;
  for (int peer = 0; peer < t.size(); ++peer) {
    outbox[peer] = Pattern(t.rank(), peer, 7, bytes(t.rank(), peer));
    inbox[peer].resize(bytes(peer, t.rank()));
    sends.push_back({.to = peer, .data = outbox[peer].data(), .bytes = outbox[peer].size()});
    receives.push_back({.from = peer, .data = inbox[peer].data(), .bytes = inbox[peer].size()});
  }
  ExpectOk(t.Exchange(sends, receives));
  for (int peer = 0; peer < t.size(); ++peer) {
    EXPECT_EQ(inbox[peer], Pattern(peer, t.rank(), 7, inbox[peer].size()));
  }
}

void SendsAndReceivesAlone(Transport& t) {
  if (t.size() == 1) return;
  const int last = t.size() - 1;
  Bytes data = Pattern(0, 1, 2, 500);
  if (t.rank() == 0) {
    ExpectOk(t.Send(1, data));
    ExpectOk(t.Receive(last, data));
    EXPECT_EQ(data, Pattern(0, 1, 2, 500));
  } else {
    Bytes passed(data.size());
    ExpectOk(t.Receive(t.rank() - 1, passed));
    ExpectOk(t.Send(t.rank() == last ? 0 : t.rank() + 1, passed));
  }
}

// Small and large messages between the same two ranks, several in one transfer and several transfers.
void KeepsTheOrderOfMessages(Transport& t) {
  const std::array<size_t, 5> sizes = {8, 100'000, 0, 8, 70'000};
  std::vector<Bytes> outbox;
  std::vector<Bytes> inbox;
  std::vector<SendPart> sends;
  std::vector<ReceivePart> receives;
  for (int i = 0; i < 10; ++i) {
    outbox.push_back(Pattern(t.rank(), After(t, 1), i, sizes[i % 5]));
    inbox.emplace_back(sizes[i % 5]);
    sends.push_back({.to = After(t, 1), .data = outbox[i].data(), .bytes = outbox[i].size()});
    receives.push_back({.from = After(t, -1), .data = inbox[i].data(), .bytes = inbox[i].size()});
  }
  const std::span<const SendPart> all_sends(sends);
  const std::span<const ReceivePart> all_receives(receives);
  ExpectOk(t.Exchange(all_sends.first(5), all_receives.first(5)));
  ExpectOk(t.Exchange(all_sends.last(5), all_receives.last(5)));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(inbox[i], Pattern(After(t, -1), t.rank(), i, inbox[i].size())) << i;
}

// As many transfers under way as allowed, ended in another order than begun, with work and Progress in between.
void OverlapsTransfers(Transport& t) {
  std::vector<Bytes> outbox;
  std::vector<Bytes> inbox;
  std::vector<Transfer> transfers;
  for (int i = 0; i < Transport::kMaxPending; ++i) {
    outbox.push_back(Pattern(t.rank(), After(t, 1), i, 50'000 + i));
    inbox.emplace_back(50'000 + i);
  }
  for (int i = 0; i < Transport::kMaxPending; ++i) {
    const SendPart send{.to = After(t, 1), .data = outbox[i].data(), .bytes = outbox[i].size()};
    const ReceivePart receive{.from = After(t, -1), .data = inbox[i].data(), .bytes = inbox[i].size()};
    Result<Transfer> transfer = t.Start({&send, 1}, {&receive, 1});
    ASSERT_TRUE(transfer.ok()) << transfer.status().message();
    transfers.push_back(*transfer);
    t.Progress();
  }
  const Result<Transfer> one_more = t.Start({}, {});
  EXPECT_EQ(one_more.status().code(), StatusCode::kInvalidArgument);
  for (const int i : {2, 0, 3, 1}) {
    ExpectOk(t.Wait(transfers[i]));
    EXPECT_EQ(inbox[i], Pattern(After(t, -1), t.rank(), i, inbox[i].size())) << i;
  }
}

void RefusesRanksThatAreNot(Transport& t) {
  for (const int rank : {-1, t.size()}) {
    const Status sent = t.Send(rank, {});
    EXPECT_EQ(sent.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(sent.message().find(std::to_string(rank)), std::string::npos) << sent.message();
    EXPECT_EQ(t.Receive(rank, {}).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(t.Broadcast(rank, {}).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(t.Gather(rank, {}, {}).code(), StatusCode::kInvalidArgument);
  }
}

// The clock is one for all ranks of a machine: nobody leaves before the last has come.
void NobodyPassesTheBarrierAlone(Transport& t) {
  using Clock = std::chrono::steady_clock;
  for (const int late : {0, t.size() / 2, t.size() - 1}) {
    if (t.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const Clock::rep entered = Clock::now().time_since_epoch().count();
    ExpectOk(t.Barrier());
    const Clock::rep left = Clock::now().time_since_epoch().count();
    std::vector<Clock::rep> all_entered(t.size());
    ExpectOk(t.AllGather(std::as_bytes(std::span(&entered, 1)), std::as_writable_bytes(std::span(all_entered))));
    EXPECT_GE(left, *std::max_element(all_entered.begin(), all_entered.end()));
  }
}

void BroadcastsFromEveryRoot(Transport& t) {
  for (int root = 0; root < t.size(); ++root) {
    for (const size_t bytes : {0, 1, 777}) {
      Bytes data = t.rank() == root ? Pattern(root, root, 3, bytes) : Bytes(bytes);
      ExpectOk(t.Broadcast(root, data));
      EXPECT_EQ(data, Pattern(root, root, 3, bytes));
    }
  }
}

Bytes Concatenated(int size, std::span<const size_t> bytes_of_rank) {
  Bytes all;
  for (int peer = 0; peer < size; ++peer) {
    const Bytes part = Pattern(peer, peer, 4, bytes_of_rank[peer]);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

void GathersEqualAndUnequalShares(Transport& t) {
  std::vector<size_t> equal(t.size(), 123);
  std::vector<size_t> unequal(t.size());
  for (int peer = 0; peer < t.size(); ++peer) unequal[peer] = peer % 3 == 1 ? 0 : 10 + peer;
  for (const std::vector<size_t>& sizes : {equal, unequal}) {
    const Bytes expected = Concatenated(t.size(), sizes);
    const Bytes mine = Pattern(t.rank(), t.rank(), 4, sizes[t.rank()]);
    Bytes all(expected.size());
    ExpectOk(t.AllGather(mine, all, sizes));
    EXPECT_EQ(all, expected);
    const int root = t.size() / 2;
    Bytes gathered(t.rank() == root ? expected.size() : 0);
    ExpectOk(t.Gather(root, mine, gathered, sizes));
    EXPECT_EQ(gathered, t.rank() == root ? expected : Bytes());
  }
  // Sizes left out are equal; a share may already lie in its place.
  const Bytes expected = Concatenated(t.size(), equal);
  Bytes all(expected.size());
  const Bytes mine = Pattern(t.rank(), t.rank(), 4, 123);
  std::copy(mine.begin(), mine.end(), all.begin() + t.rank() * 123);
  ExpectOk(t.AllGather(std::span(all).subspan(t.rank() * 123, 123), all));
  EXPECT_EQ(all, expected);
}

// Groups of neighbours, and of every other rank from the last to the first.
void GathersAmongSomeRanks(Transport& t) {
  for (const int num_groups : {1, 2, 3}) {
    std::vector<int> ranks;
    std::vector<size_t> sizes;
    Bytes expected;
    for (int rank = t.size() - 1; rank >= 0; --rank) {
      if (rank % num_groups != t.rank() % num_groups) continue;
      ranks.push_back(rank);
      sizes.push_back(static_cast<size_t>(rank * 31 % 200));
      const Bytes part = Pattern(rank, rank, 5, sizes.back());
      expected.insert(expected.end(), part.begin(), part.end());
    }
    const Bytes mine = Pattern(t.rank(), t.rank(), 5, static_cast<size_t>(t.rank() * 31 % 200));
    Bytes all(expected.size());
    ExpectOk(t.AllGatherAmong(ranks, mine, all, sizes));
    EXPECT_EQ(all, expected);
  }
  const std::vector<int> others = {t.rank() + 1, t.rank() + 2};
  Bytes all(16);
  EXPECT_EQ(t.AllGatherAmong(others, Bytes(8), all).code(), StatusCode::kInvalidArgument);
}

void RefusesSharesThatDoNotFit(Transport& t) {
  Bytes all(t.size() * 9);
  EXPECT_EQ(t.AllGather(Bytes(8), std::span(all).first(t.size() * 8 + 1)).code(), StatusCode::kInvalidArgument);
  const std::vector<size_t> one_too_many(t.size() + 1, 8);
  EXPECT_EQ(t.AllGather(Bytes(8), std::span(all).first(t.size() * 8), one_too_many).code(),
            StatusCode::kInvalidArgument);
  const std::vector<size_t> other(t.size(), 9);
  EXPECT_EQ(t.AllGather(Bytes(8), all, other).code(), StatusCode::kInvalidArgument);
}

// 2 x 2 matrices over the integers modulo 2^32: their product is associative to the bit, and not commutative.
struct Matrix {
  std::array<uint32_t, 4> x;
  bool operator==(const Matrix&) const = default;
};

Matrix Product(const Matrix& a, const Matrix& b) {
  return {{a.x[0] * b.x[0] + a.x[1] * b.x[2], a.x[0] * b.x[1] + a.x[1] * b.x[3], a.x[2] * b.x[0] + a.x[3] * b.x[2],
           a.x[2] * b.x[1] + a.x[3] * b.x[3]}};
}

void CombineProducts(const void* in, void* inout, size_t count, void* context) {
  *static_cast<size_t*>(context) += count;
  for (size_t i = 0; i < count; ++i) {
    Matrix a;
    Matrix b;
    std::memcpy(&a, static_cast<const std::byte*>(in) + i * sizeof(Matrix), sizeof(Matrix));
    std::memcpy(&b, static_cast<std::byte*>(inout) + i * sizeof(Matrix), sizeof(Matrix));
    const Matrix product = Product(a, b);
    std::memcpy(static_cast<std::byte*>(inout) + i * sizeof(Matrix), &product, sizeof(Matrix));
  }
}

Matrix MatrixOf(int rank, size_t i) {
  const uint32_t seed = static_cast<uint32_t>(rank * 1000 + i);
  return {{2 * seed + 1, seed + 3, seed * seed + 5, 2 * seed + 7}};
}

void ReducesInTheOrderOfRanks(Transport& t) {
  for (const size_t count : {0, 1, 5, 1037}) {
    std::vector<Matrix> data;
    for (size_t i = 0; i < count; ++i) data.push_back(MatrixOf(t.rank(), i));
    size_t num_combined = 0;
    const ReduceOperator reduce{.element_bytes = sizeof(Matrix), .combine = CombineProducts, .context = &num_combined};
    ExpectOk(t.AllReduce(std::as_writable_bytes(std::span(data)), reduce));
    for (size_t i = 0; i < count; ++i) {
      Matrix expected = MatrixOf(0, i);
      for (int peer = 1; peer < t.size(); ++peer) expected = Product(expected, MatrixOf(peer, i));
      ASSERT_EQ(data[i], expected) << i << " of " << count;
    }
    // Another element size in between: a transport may keep what it made for the first.
    std::vector<float> ones(count, 1.0f);
    ExpectOk(t.AllReduceSum(ones));
    EXPECT_EQ(ones, std::vector<float>(count, static_cast<float>(t.size())));
  }
  Bytes odd(7);
  EXPECT_EQ(t.AllReduce(odd, {.element_bytes = 4, .combine = CombineProducts}).code(), StatusCode::kInvalidArgument);
}

void SumsAndMaximaAgreeOnAllRanks(Transport& t) {
  std::vector<float> sums(33);
  std::vector<float> maxima(33);
  for (size_t i = 0; i < sums.size(); ++i) {
    sums[i] = 1.0f / static_cast<float>(t.rank() * 33 + i + 1);
    maxima[i] = static_cast<float>((t.rank() * 7 + i * 5) % 11) - 20.0f;
  }
  ExpectOk(t.AllReduceSum(sums));
  ExpectOk(t.AllReduceMax(maxima));
  for (size_t i = 0; i < sums.size(); ++i) {
    double sum = 0;
    float max = -100;
    for (int peer = 0; peer < t.size(); ++peer) {
      sum += 1.0 / static_cast<double>(peer * 33 + i + 1);
      max = std::max(max, static_cast<float>((peer * 7 + i * 5) % 11) - 20.0f);
    }
    EXPECT_NEAR(sums[i], sum, 1e-6 * t.size());
    EXPECT_EQ(maxima[i], max);
  }
  std::vector<float> all(sums.size() * t.size());
  ExpectOk(t.AllGather(std::as_bytes(std::span(sums)), std::as_writable_bytes(std::span(all))));
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(all[i]), std::bit_cast<uint32_t>(sums[i % sums.size()]));
  }
}

void CountsWhatItSends(Transport& t) {
  const TrafficCounters before = t.traffic();
  RingShift(t, 1000, 1);
  RingShift(t, 24, 0);  // To itself: not counted.
  const uint64_t others = t.size() > 1 ? 1 : 0;
  EXPECT_EQ(t.traffic().messages_sent - before.messages_sent, others);
  EXPECT_EQ(t.traffic().bytes_sent - before.bytes_sent, 1000 * others);

  const TrafficCounters gather = t.traffic();
  Bytes all(t.size() * 10);
  ExpectOk(t.AllGather(Bytes(10), all));
  // Many ranks double what they have in every hop, in one message or, around the last rank, in two.
  const uint64_t hops = std::bit_width(static_cast<uint64_t>(t.size() - 1));
  const uint64_t messages = t.traffic().messages_sent - gather.messages_sent;
  const bool is_direct = t.size() <= kMostRanksOfDirectGather;
  EXPECT_GE(messages, is_direct ? static_cast<uint64_t>(t.size() - 1) : hops);
  EXPECT_LE(messages, is_direct ? static_cast<uint64_t>(t.size() - 1) : 2 * hops);
  EXPECT_EQ(t.traffic().bytes_sent - gather.bytes_sent, static_cast<uint64_t>(t.size() - 1) * 10);

  const TrafficCounters reduce = t.traffic();
  std::vector<float> data(25);
  ExpectOk(t.AllReduceSum(data));
  const bool by_mpi = t.name() == "mpi";
  EXPECT_EQ(t.traffic().mpi_collectives - reduce.mpi_collectives, by_mpi ? 1u : 0u);
  EXPECT_EQ(t.traffic().mpi_collective_operand_bytes - reduce.mpi_collective_operand_bytes, by_mpi ? 100u : 0u);
  EXPECT_EQ(t.traffic().bytes_sent == reduce.bytes_sent, by_mpi || t.size() == 1);
}

void StepWithoutAllocating(Transport& t, std::span<std::byte> mine, std::span<std::byte> theirs,
                           std::span<float> floats, std::span<std::byte> all) {
  const SendPart send{.to = After(t, 1), .data = mine.data(), .bytes = mine.size()};
  const ReceivePart receive{.from = After(t, -1), .data = theirs.data(), .bytes = theirs.size()};
  bool ok = t.Exchange({&send, 1}, {&receive, 1}).ok();
  ok = ok && t.Barrier().ok() && t.Broadcast(0, mine).ok() && t.AllGather(mine.first(8), all).ok();
  ok = ok && t.AllReduceSum(floats).ok();
  EXPECT_TRUE(ok);
}

void AllocatesNothingOnceWarm(Transport& t) {
  Bytes mine(16600);
  Bytes theirs(16600);
  std::vector<float> floats(100);
  Bytes all(t.size() * 8);
  for (int i = 0; i < 3; ++i) StepWithoutAllocating(t, mine, theirs, floats, all);
  ExpectOk(t.Barrier());
  const size_t before = NumAllocations();
  ExpectOk(t.Barrier());  // In process the ranks count each other's allocations, so nobody may run ahead or lag behind.
  for (int i = 0; i < 10; ++i) StepWithoutAllocating(t, mine, theirs, floats, all);
  ExpectOk(t.Barrier());
  const size_t after = NumAllocations();
  ExpectOk(t.Barrier());
  EXPECT_EQ(after - before, 0u);
}

void NumbersNodesAndProcesses(Transport& t) {
  const auto expect_counted_from_0 = [&](const std::vector<int>& numbers) {
    ASSERT_EQ(numbers.size(), static_cast<size_t>(t.size()));
    int next = 0;
    for (const int number : numbers) {
      EXPECT_LE(number, next);
      next = std::max(next, number + 1);
    }
  };
  expect_counted_from_0(t.node_of_rank());
  expect_counted_from_0(t.process_of_rank());
}

}  // namespace

std::span<const TransportCase> TransportCases() {
  static constexpr TransportCase kCases[] = {
      {"ShiftsAroundTheRing", ShiftsAroundTheRing},
      {"MovesLargeMessages", MovesLargeMessages},
      {"ExchangesWithPartner", ExchangesWithPartner},
      {"SendsAllToAll", SendsAllToAll},
      {"SendsAndReceivesAlone", SendsAndReceivesAlone},
      {"KeepsTheOrderOfMessages", KeepsTheOrderOfMessages},
      {"OverlapsTransfers", OverlapsTransfers},
      {"RefusesRanksThatAreNot", RefusesRanksThatAreNot},
      {"NobodyPassesTheBarrierAlone", NobodyPassesTheBarrierAlone},
      {"BroadcastsFromEveryRoot", BroadcastsFromEveryRoot},
      {"GathersEqualAndUnequalShares", GathersEqualAndUnequalShares},
      {"GathersAmongSomeRanks", GathersAmongSomeRanks},
      {"RefusesSharesThatDoNotFit", RefusesSharesThatDoNotFit},
      {"ReducesInTheOrderOfRanks", ReducesInTheOrderOfRanks},
      {"SumsAndMaximaAgreeOnAllRanks", SumsAndMaximaAgreeOnAllRanks},
      {"CountsWhatItSends", CountsWhatItSends},
      {"AllocatesNothingOnceWarm", AllocatesNothingOnceWarm},
      {"NumbersNodesAndProcesses", NumbersNodesAndProcesses},
  };
  return kCases;
}

}  // namespace pando::test_support
