// SPDX-License-Identifier: Apache-2.0
#include "models/rope_frequencies.h"

#include <cmath>
#include <numbers>

namespace outrider {
namespace {

float llama3_scaled(float frequency, const RopeScaling& scaling) {
  const auto factor = static_cast<float>(scaling.factor);
  const auto context = static_cast<float>(scaling.original_context);
  const auto low = static_cast<float>(scaling.low_freq_factor);
  const auto high = static_cast<float>(scaling.high_freq_factor);
  const float wavelength = 2 * std::numbers::pi_v<float> / frequency;
  if (wavelength > context / low) return frequency / factor;
  if (wavelength < context / high) return frequency;
  const float kept = (context / wavelength - low) / (high - low);
  return (1 - kept) * (frequency / factor) + kept * frequency;
}

}  // namespace

std::vector<float> rope_inverse_frequencies(const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  const auto theta = static_cast<float>(config.rope_theta);
  std::vector<float> frequencies(static_cast<size_t>(config.head_dim / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.head_dim);
    const float frequency = 1.0f / std::pow(theta, exponent);
    if (!scaling.frequency_divisors.empty()) {
      frequencies[i] = frequency / scaling.frequency_divisors[i];
      continue;
    }
    switch (scaling.kind) {
      case RopeScalingKind::kNone:
        frequencies[i] = frequency;
        break;
      case RopeScalingKind::kLinear:
        frequencies[i] = frequency / static_cast<float>(scaling.factor);
        break;
      case RopeScalingKind::kLlama3:
        frequencies[i] = llama3_scaled(frequency, scaling);
        break;
    }
  }
  return frequencies;
}

}  // namespace outrider
