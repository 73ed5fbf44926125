// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "tensor/buffer.h"

namespace outrider {

// Reads memory as fast as possible on all workers. A pass that does nothing but stream its weights takes this
// time.
class MemoryReader {
 public:
  // Allocates `bytes`, at most 1 GiB, which is then read repeatedly.
  explicit MemoryReader(int64_t bytes);

  // Milliseconds to read `bytes` given at construction once.
  double time(ThreadPool& pool);

 private:
  int64_t bytes_;
  Buffer buffer_;  // written once, since untouched pages would all share one page of zeros
  uint64_t sink_ = 0;
};

}  // namespace outrider
