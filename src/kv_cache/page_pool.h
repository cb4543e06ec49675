// PagePool: pages of one size with a count of their users, taken from slabs and used again when nobody uses them any
// more. Memory is returned to the system when the pool goes.
#ifndef PANDO_SRC_KV_CACHE_PAGE_POOL_H_
#define PANDO_SRC_KV_CACHE_PAGE_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "pando/status.h"
#include "src/base/aligned_buffer.h"

namespace pando {

struct Page {
  std::byte* data = nullptr;
  uint32_t num_users = 0;
  bool was_used = false;  // it may hold what its last user left
};

class PagePool {
 public:
  explicit PagePool(size_t page_bytes) : page_bytes_(page_bytes) {}

  // Makes at least `num_pages` free pages, and more for those who come page by page; or fails with kOutOfMemory and
  // changes nothing.
  Status Reserve(size_t num_pages);
  // The same for all pages that a context will ever need, and no more: where a huge page lies across the end of what is
  // used, its rest is resident too, and on many ranks of a machine that adds up.
  Status ReserveExactly(size_t num_pages);

  // A free page, which there must be (Reserve), for one user. It is all zeros: what a page holds is decided by the
  // tokens in it alone, and nothing of one sequence shows in another's snapshot.
  Page* Take();
  // One user more.
  void Share(Page* page);
  // One user less.
  void GiveBack(Page* page);

  size_t page_bytes() const { return page_bytes_; }
  size_t used_pages() const { return num_pages_ - free_.size(); }
  size_t shared_pages() const { return num_shared_; }
  size_t allocated_bytes() const { return num_pages_ * page_bytes_; }

 private:
  struct Slab {
    AlignedBuffer memory;
    std::unique_ptr<Page[]> pages;
  };

  Status AddSlab(size_t slab_pages);

  size_t page_bytes_;
  size_t num_pages_ = 0;
  size_t num_shared_ = 0;  // with more than one user
  std::vector<Slab> slabs_;
  std::vector<Page*> free_;  // the next to take is the last
};

}  // namespace pando

#endif  // PANDO_SRC_KV_CACHE_PAGE_POOL_H_
