// Hollow memory: the large buffers of simulated ranks, in the address space but not in memory. A thousand ranks with
// the keys and values of millions of tokens would need terabytes; what is in them is never looked at.
//
// In place of src/base/aligned_buffer_memory.cc: buffers from kHollowBytes on are all one and the same, a few megabytes
// that are mapped over and over. It can be read and written up to a terabyte, and holds nothing.
#ifndef PANDO_SIMULATION_HOLLOW_MEMORY_H_
#define PANDO_SIMULATION_HOLLOW_MEMORY_H_

#include <cstddef>

namespace pando {

inline constexpr size_t kHollowBytes = size_t{1} << 20;

// Whether an address is in a hollow buffer: then a message from there need not be copied.
bool IsHollow(const void* address);

}  // namespace pando

#endif  // PANDO_SIMULATION_HOLLOW_MEMORY_H_
