// SPDX-License-Identifier: Apache-2.0
// The kernels of attention, see row_kernels.h.
#pragma once

#include "device_kernels/attention/attention.h"

#define OUTRIDER_ATTENTION_KERNELS(KERNEL)                        \
  KERNEL(AttentionF32, AttentionF32Args, attention<CachedF32>)    \
  KERNEL(AttentionBf16, AttentionBf16Args, attention<CachedBf16>) \
  KERNEL(AttentionF16, AttentionF16Args, attention<CachedF16>)    \
  KERNEL(AttentionQ8, AttentionQ8Args, attention<CachedQ8>)       \
  KERNEL(AttentionE4m3, AttentionE4m3Args, attention<CachedE4m3>)
