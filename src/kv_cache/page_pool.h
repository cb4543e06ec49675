// PagePool: pages of one size, taken from slabs and used again after they are given back. Memory is returned to the
// system when the pool goes.
#ifndef PANDO_SRC_KV_CACHE_PAGE_POOL_H_
#define PANDO_SRC_KV_CACHE_PAGE_POOL_H_

#include <cstddef>
#include <vector>

#include "pando/status.h"
#include "src/base/aligned_buffer.h"

namespace pando {

class PagePool {
 public:
  explicit PagePool(size_t page_bytes) : page_bytes_(page_bytes) {}

  // Makes at least `num_pages` free pages, or fails with kOutOfMemory and changes nothing.
  Status Reserve(size_t num_pages);

  // A free page, which there must be (Reserve). Its contents are not defined.
  std::byte* Take();
  void GiveBack(std::byte* page) { free_.push_back(page); }

  size_t free_pages() const { return free_.size(); }
  size_t used_pages() const { return num_pages_ - free_.size(); }
  size_t allocated_bytes() const { return num_pages_ * page_bytes_; }

 private:
  size_t page_bytes_;
  size_t num_pages_ = 0;
  std::vector<AlignedBuffer> slabs_;
  std::vector<std::byte*> free_;  // the next to take is the last
};

}  // namespace pando

#endif  // PANDO_SRC_KV_CACHE_PAGE_POOL_H_
