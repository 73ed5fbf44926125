// SPDX-License-Identifier: Apache-2.0
// The last of some warps or blocks of a launch goes on with what all of them have stored, where another
// launch would cost more. Nobody waits for others. Which one is last differs from run to run, so what it
// computes must not depend on who it is.
#pragma once

#include "device_kernels/simt/simt.h"

namespace outrider::simt {

// Whether this warp is the last of `count` that come with the counter, which is 0 before and after.
SIMT bool is_last_warp(const Block& block, const Rows<int>& counters, int64_t counter, int count) {
  if (count == 1) {
    block.sync_warp();
    return true;
  }
  if (counters.arrive(counter) + 1 < count) return false;
  counters.from(counter).store_if(lane_id() == Ints(0), lane_id(), Ints(0));
  return true;
}

// Whether this block is the last of `count`. `words` are 32 words of shared memory that no warp uses.
SIMT_PART bool is_last_block(const Block& block, const Shared<int>& words, const Rows<int>& counters,
                             int64_t counter, int count) {
  block.sync();
  if (block.warp() == 0) {
    const bool is_last = is_last_warp(block, counters, counter, count);
    words.put_from(0, Ints(is_last ? 1 : 0));
  }
  block.sync();
  return words.get_one(0) != 0;
}

}  // namespace outrider::simt
