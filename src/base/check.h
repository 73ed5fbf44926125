// SPDX-License-Identifier: Apache-2.0
// Broken invariants end the process with their place; they are never reachable from user input.
#pragma once

namespace outrider {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}

#define OUTRIDER_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::outrider::check_failed(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define OUTRIDER_DCHECK(condition) static_cast<void>(0)
#else
#define OUTRIDER_DCHECK(condition) OUTRIDER_CHECK(condition)
#endif
