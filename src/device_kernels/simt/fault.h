// SPDX-License-Identifier: Apache-2.0
// Faults of kernels that the emulation finds.
#pragma once

#include <cstdint>

namespace outrider::simt {

enum class Fault : uint8_t {
  kBounds,         // a view was left
  kEarlyAccess,    // rows or a list before wait_for_previous()
  kRace,           // two lanes at one word of shared memory, one of them writes, and nothing is between them
  kPendingCopy,    // a word was used that copy_async() had not brought yet
  kUnevenBarrier,  // some warps ended while others waited at a barrier
};
inline constexpr int kFaults = 5;

}  // namespace outrider::simt
