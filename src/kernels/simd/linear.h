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
      return code_linear<V, Nibbles>(share);
    case WeightForm::kDotBytes:
      return share.code_group == 16 ? code_linear<V, Bytes<16>>(share) : code_linear<V, Bytes<32>>(share);
    case WeightForm::kChannels:
      return channel_linear<V>(share);
    default:
      return strip_linear<V>(share);
  }
}

}  // namespace outrider::simd
