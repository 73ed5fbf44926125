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
  // gpt-oss: with x and y limited to at most 7, and y to at least -7, x * sigmoid(1.702 x), and a gate's
  // factor is y + 1.
  kClampedSwiglu,
};

inline constexpr float kSwigluLimit = 7;
inline constexpr float kSwigluAlpha = 1.702F;

}  // namespace outrider
