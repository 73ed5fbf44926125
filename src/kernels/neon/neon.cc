// SPDX-License-Identifier: Apache-2.0
#include "kernels/neon/vector.h"
#include "kernels/simd/ops.h"

namespace outrider {

IsaOps neon_ops() { return simd::ops<Neon>(); }

}  // namespace outrider
