// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx2/vector.h"
#include "kernels/simd/ops.h"

namespace outrider {

IsaOps avx2_ops() { return simd::ops<Avx2>(); }

}  // namespace outrider
