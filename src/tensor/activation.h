// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace outrider {

// The function between the two products of an MLP.
enum class Activation : uint8_t {
  kSilu,
  kGelu,      // x * (1 + erf(x / sqrt(2))) / 2
  kGeluTanh,  // its approximation by a hyperbolic tangent
  kRelu,
};

}  // namespace outrider
