// SPDX-License-Identifier: Apache-2.0
// For prefetch_test.cc, which has the kernels of products compiled once more: every prefetch calls this.
#pragma once

namespace outrider {

void record_prefetch(const void* address, int for_writing = 0, int locality = 3);

}  // namespace outrider

#define __builtin_prefetch(...) outrider::record_prefetch(__VA_ARGS__)
