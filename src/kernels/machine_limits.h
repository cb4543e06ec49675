// The machine's own limits, against which kernels are judged: read bandwidth and float32 FMA rate.
//
//   Result<ReadBandwidthProbe> probe = ReadBandwidthProbe::Create();
//   ThreadPool pool(2);
//   const double gb_per_s = probe->MeasureGbPerSecond(pool);  // one pass
//   const double gflops = MeasureFmaGflops(pool);             // a few milliseconds
//
// A clock speed or a neighbour on the memory bus changes both from one second to the next, so each call is a single
// short measurement: a benchmark calls them in turn with its own work and compares medians of the same run.
#ifndef PANDO_SRC_KERNELS_MACHINE_LIMITS_H_
#define PANDO_SRC_KERNELS_MACHINE_LIMITS_H_

#include <cstddef>
#include <utility>

#include "pando/status.h"
#include "src/base/aligned_buffer.h"
#include "src/base/thread_pool.h"

namespace pando {

class ReadBandwidthProbe {
 public:
  // Four times the largest cache that the system reports, and at least 256 MiB: a pass then finds next to nothing of
  // the pass before in the cache.
  static size_t DefaultBytes();

  // `bytes` is rounded up to whole pieces of 4 MiB. The buffer is written once, so every page is real before anything
  // is timed. On a machine with several NUMA nodes it lies where the calling thread runs.
  static Result<ReadBandwidthProbe> Create(size_t bytes = DefaultBytes());

  size_t bytes() const { return buffer_.size(); }

  // Reads the whole buffer once with all threads of the pool and gives 10^9 bytes per second. Allocates nothing.
  double MeasureGbPerSecond(ThreadPool& pool);

 private:
  explicit ReadBandwidthProbe(AlignedBuffer buffer) : buffer_(std::move(buffer)) {}

  AlignedBuffer buffer_;
};

// Float32 multiply-adds of all threads of the pool together, on the instruction set in use, in 10^9 operations per
// second (one FMA is two). Memory is not touched. Takes a few milliseconds and allocates nothing.
double MeasureFmaGflops(ThreadPool& pool);

}  // namespace pando

#endif  // PANDO_SRC_KERNELS_MACHINE_LIMITS_H_
