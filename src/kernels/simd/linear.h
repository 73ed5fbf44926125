// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simd/code_linear.h"
#include "kernels/simd/panel_linear.h"

namespace outrider::simd {

template <typename V>
void nibble_linear(const LinearShare& share) {
  const bool narrow = share.code_group == 16;
  if (share.has_min)
    return narrow ? code_linear<V, Nibbles<16, true>>(share) : code_linear<V, Nibbles<32, true>>(share);
  if (narrow) return code_linear<V, TableNibbles<16>>(share);
  return share.code_values == NibbleValues::kCentred ? code_linear<V, Nibbles<32, false>>(share)
                                                     : code_linear<V, TableNibbles<32>>(share);
}

// Handles every layout that dot_layout() returns.
template <typename V>
void linear(const LinearShare& share) {
  switch (share.layout) {
    case WeightLayout::kDotNibbles:
      return nibble_linear<V>(share);
    case WeightLayout::kDotBytes:
      if (share.has_min) return code_linear<V, Bytes<32, true>>(share);
      return share.code_group == 16 ? code_linear<V, Bytes<16, false>>(share)
                                    : code_linear<V, Bytes<32, false>>(share);
    case WeightLayout::kChannels:
      return code_linear<V, Channels>(share);
    default:
      return panel_linear<V>(share);
  }
}

}  // namespace outrider::simd
