// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "tensor/buffer.h"

namespace outrider {

// Reads memory as fast as plain code can, on all workers: what a pass would take that did nothing but stream
// its weights.
class MemoryReader {
 public:
  // Of as many bytes as given, up to 1 GiB, which is then read repeatedly.
  explicit MemoryReader(int64_t bytes);

  // Milliseconds to read `bytes` given at construction once.
  double time(ThreadPool& pool);

 private:
  int64_t bytes_;
  Buffer buffer_;  // written once: untouched pages would all be one page of zeros
  uint64_t sink_ = 0;
};

}  // namespace outrider
