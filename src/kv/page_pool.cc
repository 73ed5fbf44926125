// SPDX-License-Identifier: Apache-2.0
#include "kv/page_pool.h"

#include "base/check.h"

namespace outrider {
namespace {
size_t at(int32_t page) { return static_cast<size_t>(page); }
}  // namespace

PagePool::PagePool(int64_t page_count)
    : references_(static_cast<size_t>(page_count)),
      next_(static_cast<size_t>(page_count) + 1),
      previous_(static_cast<size_t>(page_count) + 1),
      kept_(static_cast<size_t>(page_count)) {
  free_.reserve(static_cast<size_t>(page_count));
  for (int64_t page = page_count; page-- > 0;) free_.push_back(static_cast<int32_t>(page));
  next_.back() = previous_.back() = static_cast<int32_t>(page_count);
}

int32_t PagePool::take() {
  OUTRIDER_CHECK(available() > 0);
  int32_t page;
  if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
  } else {
    page = next_.back();
    unlink(page);
  }
  references_[at(page)] = 1;
  return page;
}

void PagePool::share(int32_t page) {
  if (kept_[at(page)]) unlink(page);
  ++references_[at(page)];
}

void PagePool::release(int32_t page, bool keep) {
  OUTRIDER_CHECK(references_[at(page)] > 0);
  if (--references_[at(page)] > 0) return;
  if (!keep) {
    free_.push_back(page);
    return;
  }
  const auto head = static_cast<int32_t>(page_count());
  const int32_t newest = previous_[at(head)];
  next_[at(newest)] = page;
  previous_[at(page)] = newest;
  next_[at(page)] = head;
  previous_[at(head)] = page;
  kept_[at(page)] = true;
  ++kept_count_;
}

std::vector<int32_t> PagePool::kept_pages() const {
  std::vector<int32_t> pages;
  for (int32_t page = next_.back(); page != page_count(); page = next_[at(page)]) pages.push_back(page);
  return pages;
}

void PagePool::unlink(int32_t page) {
  next_[at(previous_[at(page)])] = next_[at(page)];
  previous_[at(next_[at(page)])] = previous_[at(page)];
  kept_[at(page)] = false;
  --kept_count_;
}

}  // namespace outrider
