// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace outrider::simt {

// An access to a word of shared memory: by whom, and when. Times count barriers of the block and of the warp.
struct Access {
  static constexpr int kSeveral = -1;
  int block_time = 0;
  int warp = 0;  // kSeveral: of several warps
  int lane = 0;  // kSeveral: of several lanes of the warp
  int warp_time = 0;

  // Nothing is between this access and that one, by another lane.
  bool is_beside(const Access& other) const {
    if (block_time != other.block_time || other.block_time == 0) return false;
    if (warp != other.warp) return true;
    return lane != other.lane && warp_time == other.warp_time;
  }
};

struct WordAccesses {
  Access write, read;
};

// `read` stands for all readers since the last barrier of the block that a later writer may be beside.
inline void add_reader(Access& read, const Access& now) {
  if (read.block_time != now.block_time) {
    read = now;
  } else if (read.warp != now.warp) {
    read.warp = Access::kSeveral;
  } else if (read.warp_time != now.warp_time) {
    read = now;
  } else if (read.lane != now.lane) {
    read.lane = Access::kSeveral;
  }
}

}  // namespace outrider::simt
