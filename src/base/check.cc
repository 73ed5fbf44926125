// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace outrider {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "outrider: broken invariant: %s (%s:%d); please report it\n", condition, file, line);
  std::abort();
}

}  // namespace outrider
