// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simd/code_linear.h"
#include "kernels/simd/strip_linear.h"

namespace outrider::simd {

// Any layout of dot_form().
template <typename V>
void linear(const LinearShare& share) {
  switch (share.form) {
    case WeightForm::kDotNibbles:
      return share.has_min ? code_linear<V, Nibbles<true>>(share) : code_linear<V, Nibbles<false>>(share);
    case WeightForm::kDotBytes:
      if (share.has_min) return code_linear<V, Bytes<32, true>>(share);
      return share.code_group == 16 ? code_linear<V, Bytes<16, false>>(share)
                                    : code_linear<V, Bytes<32, false>>(share);
    case WeightForm::kChannels:
      return channel_linear<V>(share);
    default:
      return strip_linear<V>(share);
  }
}

}  // namespace outrider::simd
