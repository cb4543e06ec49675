#include "src/kv_cache/page_pool.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "src/base/check.h"
#include "src/base/errors.h"
#include "src/base/memory.h"

namespace pando {
namespace {

// Large enough for huge pages, small enough that a short sequence does not hold much.
constexpr size_t kSlabBytes = size_t{8} << 20;

}  // namespace

Status PagePool::Reserve(size_t num_pages) {
  if (free_.size() >= num_pages) return Status();
  return AddSlab(std::max(num_pages - free_.size(), kSlabBytes / page_bytes_));
}

Status PagePool::ReserveExactly(size_t num_pages) {
  return free_.size() >= num_pages ? Status() : AddSlab(num_pages - free_.size());
}

Status PagePool::AddSlab(size_t slab_pages) {
  if (slab_pages > std::numeric_limits<size_t>::max() / page_bytes_) {
    return OutOfMemory("the KV cache needs {} pages of {}: more than any machine has", slab_pages,
                       FormatBytes(page_bytes_));
  }
  Result<AlignedBuffer> memory = AlignedBuffer::Allocate(slab_pages * page_bytes_, "the KV cache");
  if (!memory.ok()) return memory.status();
  Slab slab{std::move(memory).value(), std::make_unique<Page[]>(slab_pages)};
  // Room for every page there is: giving pages back never allocates.
  num_pages_ += slab_pages;
  free_.reserve(num_pages_);
  // Taken from the back, so pushed in reverse: consecutive chunks are neighbours in memory.
  std::vector<Page*> pages(slab_pages);
  for (size_t i = 0; i < slab_pages; ++i) {
    slab.pages[i].data = slab.memory.data() + i * page_bytes_;
    pages[slab_pages - 1 - i] = &slab.pages[i];
  }
  free_.insert(free_.end(), pages.begin(), pages.end());
  slabs_.push_back(std::move(slab));
  return Status();
}

Page* PagePool::Take() {
  PANDO_CHECK(!free_.empty());
  Page* page = free_.back();
  free_.pop_back();
  // A new slab is zeroed already, and the first to touch its memory should be the thread that writes it.
  if (page->was_used) std::memset(page->data, 0, page_bytes_);
  page->was_used = true;
  page->num_users = 1;
  return page;
}

void PagePool::Share(Page* page) {
  if (++page->num_users == 2) ++num_shared_;
}

void PagePool::GiveBack(Page* page) {
  PANDO_CHECK(page->num_users > 0);
  if (page->num_users == 2) --num_shared_;
  if (--page->num_users == 0) free_.push_back(page);
}

}  // namespace pando
