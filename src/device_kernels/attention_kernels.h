// SPDX-License-Identifier: Apache-2.0
// The kernels of attention, see row_kernels.h.
#pragma once

#include "device_kernels/attention/attention.h"
#include "device_kernels/attention/merge_chunks.h"

#define OUTRIDER_ATTENTION_KERNELS(KERNEL)                               \
  KERNEL(AttentionF32, AttentionF32Args, attention_chunks<CachedF32>)    \
  KERNEL(AttentionBf16, AttentionBf16Args, attention_chunks<CachedBf16>) \
  KERNEL(AttentionF16, AttentionF16Args, attention_chunks<CachedF16>)    \
  KERNEL(AttentionQ8, AttentionQ8Args, attention_chunks<CachedQ8>)       \
  KERNEL(MergeChunks, MergeChunksArgs, merge_chunks)
