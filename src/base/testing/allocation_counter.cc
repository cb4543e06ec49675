#include "src/base/testing/allocation_counter.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> num_allocations = 0;
std::atomic<size_t> num_allocated_bytes = 0;

void Count(size_t bytes) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  num_allocated_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace

size_t pando::test_support::NumAllocations() { return num_allocations.load(std::memory_order_relaxed); }
size_t pando::test_support::NumAllocatedBytes() { return num_allocated_bytes.load(std::memory_order_relaxed); }

void* operator new(size_t bytes) {
  Count(bytes);
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  Count(bytes);
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
