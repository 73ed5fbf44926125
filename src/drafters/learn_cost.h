// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

namespace outrider {

// Takes a measurement into the fading mean `known`, 0 while there is none. One that lost its processor says
// little.
inline void learn_cost(double& known, double ms) {
  constexpr double kFading = 0.1;
  constexpr double kMaxSurprise = 2.0;
  known = known == 0.0 ? ms : known + kFading * (std::min(ms, kMaxSurprise * known) - known);
}

}  // namespace outrider
