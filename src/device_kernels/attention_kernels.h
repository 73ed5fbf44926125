// SPDX-License-Identifier: Apache-2.0
// The kernels of attention, see row_kernels.h.
#pragma once

#include "device_kernels/attention/attention.h"

#define OUTRIDER_ATTENTION_KERNELS(KERNEL)                                   \
  KERNEL(AttentionF32Width8, AttentionF32Args, attention<CachedF32, 8>)      \
  KERNEL(AttentionBf16Width8, AttentionBf16Args, attention<CachedBf16, 8>)   \
  KERNEL(AttentionF16Width8, AttentionF16Args, attention<CachedF16, 8>)      \
  KERNEL(AttentionQ8Width8, AttentionQ8Args, attention<CachedQ8, 8>)         \
  KERNEL(AttentionF32Width16, AttentionF32Args, attention<CachedF32, 16>)    \
  KERNEL(AttentionBf16Width16, AttentionBf16Args, attention<CachedBf16, 16>) \
  KERNEL(AttentionF16Width16, AttentionF16Args, attention<CachedF16, 16>)    \
  KERNEL(AttentionQ8Width16, AttentionQ8Args, attention<CachedQ8, 16>)
