// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace outrider {

// The state of each page: free, kept for reuse, or in use by a number of sequences. A page is in exactly one
// of the three states; kept pages are handed out again, least recently used first, when no free one is left.
class PagePool {
 public:
  explicit PagePool(int64_t page_count);

  int64_t page_count() const { return static_cast<int64_t>(references_.size()); }
  int64_t free_count() const { return static_cast<int64_t>(free_.size()); }
  int64_t kept_count() const { return kept_count_; }
  int64_t available() const { return free_count() + kept_count(); }

  int32_t references(int32_t page) const { return references_[static_cast<size_t>(page)]; }
  bool kept(int32_t page) const { return kept_[static_cast<size_t>(page)]; }

  // Returns a page with one reference: a free one, otherwise the kept one used least recently. Precondition:
  // available() > 0.
  int32_t take();

  // Adds a reference; a kept page comes back into use.
  void share(int32_t page);

  // Removes a reference; removing the last one makes the page kept (as most recently used) or free.
  void release(int32_t page, bool keep);

  // Kept pages, least recently used first; for tests and recounts.
  std::vector<int32_t> kept_pages() const;
  const std::vector<int32_t>& free_pages() const { return free_; }

 private:
  void unlink(int32_t page);

  std::vector<int32_t> references_;
  std::vector<int32_t> free_;
  // Doubly linked list of kept pages in order of use; entry page_count() is the list's head.
  std::vector<int32_t> next_, previous_;
  std::vector<bool> kept_;
  int64_t kept_count_ = 0;
};

}  // namespace outrider
