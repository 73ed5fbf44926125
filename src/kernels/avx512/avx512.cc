// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512/vector.h"
#include "kernels/simd/ops.h"

namespace outrider {

IsaOps avx512_ops() { return simd::ops<Avx512>(); }

}  // namespace outrider
