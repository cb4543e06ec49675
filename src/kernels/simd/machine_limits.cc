#include "src/kernels/machine_limits.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/kernels/simd/machine_limits.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pando::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sums a quarter of the piece in each of four streams. `bytes` must be a multiple of 16 vectors. No software prefetch:
// a plain forward read is what the hardware prefetchers are made for, and on Zen 4 a prefetch 1, 4 or 8 KiB ahead made
// every variant slower by 3 to 25 % (four streams without: 33 GB/s on one thread, 36 on two; one stream: 32 and 35).
uint32_t SumPiece(const uint32_t* piece, size_t bytes) {
  const hn::ScalableTag<uint32_t> d;
  const size_t lanes = hn::Lanes(d);
  const size_t stream_length = bytes / sizeof(uint32_t) / 4;
  const uint32_t* stream_1 = piece + stream_length;
  const uint32_t* stream_2 = stream_1 + stream_length;
  const uint32_t* stream_3 = stream_2 + stream_length;
  auto sum_0a = hn::Zero(d), sum_0b = hn::Zero(d), sum_1a = hn::Zero(d), sum_1b = hn::Zero(d);
  auto sum_2a = hn::Zero(d), sum_2b = hn::Zero(d), sum_3a = hn::Zero(d), sum_3b = hn::Zero(d);
  for (size_t i = 0; i < stream_length; i += 2 * lanes) {
    sum_0a = hn::Add(sum_0a, hn::Load(d, piece + i));
    sum_0b = hn::Add(sum_0b, hn::Load(d, piece + i + lanes));
    sum_1a = hn::Add(sum_1a, hn::Load(d, stream_1 + i));
    sum_1b = hn::Add(sum_1b, hn::Load(d, stream_1 + i + lanes));
    sum_2a = hn::Add(sum_2a, hn::Load(d, stream_2 + i));
    sum_2b = hn::Add(sum_2b, hn::Load(d, stream_2 + i + lanes));
    sum_3a = hn::Add(sum_3a, hn::Load(d, stream_3 + i));
    sum_3b = hn::Add(sum_3b, hn::Load(d, stream_3 + i + lanes));
  }
  const auto sum_01 = hn::Add(hn::Add(sum_0a, sum_0b), hn::Add(sum_1a, sum_1b));
  const auto sum_23 = hn::Add(hn::Add(sum_2a, sum_2b), hn::Add(sum_3a, sum_3b));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum_01, sum_23)));
}

// Runs `num_rounds` rounds of 12 independent multiply-adds: two FMA units of latency four need at least 8 in flight,
// and 12 with the two operands still fit 16 registers. Every chain starts from another value, or the compiler would see
// that they are all the same one; x/2 + 1 tends to 2, so no denormal slows it down.
float RunMultiplyAdds(size_t num_rounds, size_t* operations) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.5f);
  const auto addend = hn::Set(d, 1.0f);
  auto x0 = hn::Iota(d, 0.0f), x1 = hn::Iota(d, 1.0f), x2 = hn::Iota(d, 2.0f), x3 = hn::Iota(d, 3.0f);
  auto x4 = hn::Iota(d, 4.0f), x5 = hn::Iota(d, 5.0f), x6 = hn::Iota(d, 6.0f), x7 = hn::Iota(d, 7.0f);
  auto x8 = hn::Iota(d, 8.0f), x9 = hn::Iota(d, 9.0f), x10 = hn::Iota(d, 10.0f), x11 = hn::Iota(d, 11.0f);
  for (size_t round = 0; round < num_rounds; ++round) {
    x0 = hn::MulAdd(x0, factor, addend);
    x1 = hn::MulAdd(x1, factor, addend);
    x2 = hn::MulAdd(x2, factor, addend);
    x3 = hn::MulAdd(x3, factor, addend);
    x4 = hn::MulAdd(x4, factor, addend);
    x5 = hn::MulAdd(x5, factor, addend);
    x6 = hn::MulAdd(x6, factor, addend);
    x7 = hn::MulAdd(x7, factor, addend);
    x8 = hn::MulAdd(x8, factor, addend);
    x9 = hn::MulAdd(x9, factor, addend);
    x10 = hn::MulAdd(x10, factor, addend);
    x11 = hn::MulAdd(x11, factor, addend);
  }
  *operations = num_rounds * 12 * 2 * hn::Lanes(d);
  const auto sum_0_5 = hn::Add(hn::Add(hn::Add(x0, x1), hn::Add(x2, x3)), hn::Add(x4, x5));
  const auto sum_6_11 = hn::Add(hn::Add(hn::Add(x6, x7), hn::Add(x8, x9)), hn::Add(x10, x11));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum_0_5, sum_6_11)));
}

}  // namespace pando::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <string>

#include "src/base/clock.h"

namespace pando {
namespace {

HWY_EXPORT(SumPiece);
HWY_EXPORT(RunMultiplyAdds);

// Pieces are handed out one by one, so a thread that woke late costs a piece and not half of the pass: with one share
// per thread two threads had 30 GB/s where they have 35 with pieces.
constexpr size_t kPieceBytes = size_t{4} << 20;
constexpr size_t kFmaTasksPerThread = 8;
constexpr size_t kFmaRoundsPerTask = size_t{1} << 17;

// What the loops computed ends here, so that the compiler cannot do without them.
std::atomic<uint32_t> g_sum_sink{0};
std::atomic<float> g_fma_sink{0};

// The largest cache of the first CPU as the kernel sees it, 0 where it does not say. Not sysconf: in a virtual machine
// glibc gives the host's cache and not what one guest CPU can reach (320 MiB for 32 MiB was seen).
size_t LargestCacheBytes() {
  size_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    size_t kib = 0;
    if (file >> kib) largest = std::max(largest, kib * 1024);  // "32768K"
  }
  return largest;
}

}  // namespace

size_t ReadBandwidthProbe::DefaultBytes() { return std::max(size_t{256} << 20, 4 * LargestCacheBytes()); }

Result<ReadBandwidthProbe> ReadBandwidthProbe::Create(size_t bytes) {
  const size_t num_pieces = std::max(size_t{1}, (bytes + kPieceBytes - 1) / kPieceBytes);
  Result<AlignedBuffer> buffer = AlignedBuffer::Allocate(num_pieces * kPieceBytes, "measuring the read bandwidth");
  if (!buffer.ok()) return buffer.status();
  std::memset(buffer->data(), 1, buffer->size());
  return ReadBandwidthProbe(std::move(buffer).value());
}

double ReadBandwidthProbe::MeasureGbPerSecond(ThreadPool& pool) {
  const auto sum_piece = HWY_DYNAMIC_DISPATCH(SumPiece);
  const double start = NowSeconds();
  pool.Run(bytes() / kPieceBytes, [&](size_t piece, size_t) {
    const auto* data = reinterpret_cast<const uint32_t*>(buffer_.data() + piece * kPieceBytes);
    g_sum_sink.fetch_add(sum_piece(data, kPieceBytes), std::memory_order_relaxed);
  });
  return static_cast<double>(bytes()) / (NowSeconds() - start) * 1e-9;
}

double MeasureFmaGflops(ThreadPool& pool) {
  const auto run_multiply_adds = HWY_DYNAMIC_DISPATCH(RunMultiplyAdds);
  const size_t num_tasks = pool.num_threads() * kFmaTasksPerThread;
  std::atomic<size_t> total_operations{0};
  const double start = NowSeconds();
  pool.Run(num_tasks, [&](size_t, size_t) {
    size_t operations = 0;
    g_fma_sink.store(run_multiply_adds(kFmaRoundsPerTask, &operations), std::memory_order_relaxed);
    total_operations.fetch_add(operations, std::memory_order_relaxed);
  });
  return static_cast<double>(total_operations.load()) / (NowSeconds() - start) * 1e-9;
}

}  // namespace pando

#endif  // HWY_ONCE
