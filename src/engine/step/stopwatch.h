// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "base/clock.h"

namespace outrider {

// Measures times that follow one another.
class Stopwatch {
 public:
  // Milliseconds since the last call; of the first call, since construction.
  double lap() {
    const double now = now_ms();
    return now - std::exchange(last_ms_, now);
  }

 private:
  double last_ms_ = now_ms();
};

}  // namespace outrider
