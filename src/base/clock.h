// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace outrider {

// Milliseconds of a clock that never goes back.
inline double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace outrider
