// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace outrider {

// Mapped bytes of a file that may be read although the file no longer has them. The kernel answers such a
// read with SIGBUS; a handler then puts zeros in place of the rest of the range and marks the range as
// damaged.
class GuardedRange {
 public:
  // `bytes` begins at a page. The first call installs the handler, which hands signals of other addresses on
  // to the handler of before.
  static GuardedRange* guard(std::span<const std::byte> bytes);
  // Before the bytes are unmapped. Another range may use the object then.
  void release();

  bool is_damaged() const { return is_damaged_; }

 private:
  friend class BusHandler;

  std::atomic<uintptr_t> begin_ = 0;  // 0: free
  std::atomic<uintptr_t> end_ = 0;
  std::atomic<bool> is_damaged_ = false;
  GuardedRange* next_ = nullptr;
};

}  // namespace outrider
