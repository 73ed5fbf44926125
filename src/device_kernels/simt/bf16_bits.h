// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device_kernels/simt/simt.h"

namespace outrider::simt {

// The bits of the nearest bf16 number, ties to even; NaN stays NaN.
SIMT Ints bf16_bits_of(Floats x) {
  const Ints bits = bits_of(x);
  const Ints odd = (bits >> Ints(16)) & Ints(1);
  const Ints rounded = bits + odd + Ints(0x7FFF);
  return (select(x == x, rounded, bits | Ints(0x400000)) >> Ints(16)) & Ints(0xFFFF);
}

}  // namespace outrider::simt
