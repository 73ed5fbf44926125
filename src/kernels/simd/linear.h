// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simd/code_linear.h"
#include "kernels/simd/panel_linear.h"

namespace outrider::simd {

// Handles every layout that dot_layout() returns.
template <typename V>
void linear(const LinearShare& share) {
  switch (share.layout) {
    case WeightLayout::kDotNibbles:
      return share.has_min ? code_linear<V, Nibbles<true>>(share) : code_linear<V, Nibbles<false>>(share);
    case WeightLayout::kDotBytes:
      if (share.has_min) return code_linear<V, Bytes<32, true>>(share);
      return share.code_group == 16 ? code_linear<V, Bytes<16, false>>(share)
                                    : code_linear<V, Bytes<32, false>>(share);
    case WeightLayout::kChannels:
      return channel_linear<V>(share);
    default:
      return panel_linear<V>(share);
  }
}

}  // namespace outrider::simd
