// SPDX-License-Identifier: Apache-2.0
#include "models/rotary_embedding.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/portable_math.h"
#include "kernels/kernel_table.h"

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

// The range of frequency numbers that YaRN blends: frequencies before are kept, frequencies after divided.
struct YarnRange {
  float begin = 0;
  float end = 0;
};

YarnRange yarn_range(const RopeTraits& traits, int64_t rotated) {
  const RopeScaling& scaling = traits.scaling;
  // The number, not rounded, of the frequency that turns so many times within the original context.
  const auto number_of = [&](double turns) {
    const double positions_per_turn = static_cast<double>(scaling.original_context) / turns;
    return static_cast<double>(rotated) * portable_log(positions_per_turn / (2 * std::numbers::pi)) /
           (2 * portable_log(traits.theta));
  };
  double begin = number_of(scaling.beta_fast);
  double end = number_of(scaling.beta_slow);
  if (scaling.truncates_range) {
    begin = std::floor(begin);
    end = std::ceil(end);
  }
  begin = std::max(begin, 0.0);
  end = std::min(end, static_cast<double>(rotated - 1));
  if (begin == end) end += 0.001;
  return {static_cast<float>(begin), static_cast<float>(end)};
}

float yarn_scaled(float power, size_t number, const YarnRange& range, const RopeScaling& scaling) {
  const float kept =
      1 - std::clamp((static_cast<float>(number) - range.begin) / (range.end - range.begin), 0.0F, 1.0F);
  const float divided = 1.0F / (static_cast<float>(scaling.factor) * power);
  return divided * (1 - kept) + 1.0F / power * kept;
}

// The base for a text of `length` tokens.
float dynamic_base(const RopeTraits& traits, int64_t rotated, int64_t length) {
  const RopeScaling& scaling = traits.scaling;
  const double stretch = static_cast<double>(length) / static_cast<double>(scaling.original_context);
  const double dim = static_cast<double>(rotated);
  const double growth = scaling.factor * stretch - (scaling.factor - 1);
  return static_cast<float>(traits.theta * portable_exp(dim / (dim - 2) * portable_log(growth)));
}

int64_t rotated_dim(const RopeTraits& traits, int64_t head_dim) {
  return traits.rotated_dim != 0 ? traits.rotated_dim : head_dim;
}

// base^(2 number / rotated)
float power_of(float base, size_t number, int64_t rotated) {
  return portable_pow(base, static_cast<float>(2 * number) / static_cast<float>(rotated));
}

}  // namespace

std::vector<float> rope_inverse_frequencies(const RopeTraits& traits, int64_t head_dim, int64_t context) {
  const RopeScaling& scaling = traits.scaling;
  const int64_t rotated = rotated_dim(traits, head_dim);
  const bool is_long = scaling.kind == RopeScalingKind::kLongRope && context > scaling.original_context;
  const std::vector<float>& divisors = is_long ? scaling.long_divisors : scaling.frequency_divisors;
  const YarnRange range = scaling.kind == RopeScalingKind::kYarn ? yarn_range(traits, rotated) : YarnRange{};
  std::vector<float> frequencies(static_cast<size_t>(rotated / 2));
  const auto turning = static_cast<size_t>(traits.turning_part * static_cast<double>(rotated) / 2);
  for (size_t i = 0; i < turning; ++i) {
    const float power = power_of(static_cast<float>(traits.theta), i, rotated);
    switch (scaling.kind) {
      case RopeScalingKind::kNone:
      case RopeScalingKind::kDynamic:
        frequencies[i] = 1.0F / power;
        break;
      case RopeScalingKind::kLinear:
        frequencies[i] = 1.0F / power / static_cast<float>(scaling.factor);
        break;
      case RopeScalingKind::kLlama3:
        frequencies[i] = divisors.empty() ? llama3_scaled(1.0F / power, scaling) : 1.0F / power / divisors[i];
        break;
      case RopeScalingKind::kYarn:
        frequencies[i] = yarn_scaled(power, i, range, scaling);
        break;
      case RopeScalingKind::kLongRope:
        frequencies[i] = 1.0F / (divisors[i] * power);
        break;
    }
  }
  return frequencies;
}

RotaryEmbedding::RotaryEmbedding(const RopeTraits& traits, int64_t head_dim, int64_t context)
    : traits_(traits),
      head_dim_(head_dim),
      frequencies_(rope_inverse_frequencies(traits, head_dim, context)) {}

void RotaryEmbedding::fill(int32_t position, float* rotations) const {
  const RopeScaling& scaling = traits_.scaling;
  const auto factor = static_cast<float>(scaling.attention_factor);
  if (scaling.kind != RopeScalingKind::kDynamic || position < scaling.original_context)
    return fill_rotations(position, frequencies_, factor, rotations);
  const int64_t rotated = rotated_dim(traits_, head_dim_);
  const float base = dynamic_base(traits_, rotated, int64_t{position} + 1);
  // Each frequency stands where its cosine will be.
  for (size_t i = 0; i < frequencies_.size(); ++i) rotations[i] = 1.0F / power_of(base, i, rotated);
  fill_rotations(position, {rotations, frequencies_.size()}, factor, rotations);
}

}  // namespace outrider
