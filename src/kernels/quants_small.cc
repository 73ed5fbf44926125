// SPDX-License-Identifier: Apache-2.0
#include "kernels/quants_small.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/nibble_values.h"
#include "tensor/dtype.h"

namespace outrider {
namespace {

// NaN becomes `low`, so that any input gives a defined code.
int clamp_to_int(double value, int low, int high) {
  if (!(value > low)) return low;
  return value < high ? static_cast<int>(value) : high;
}

float inverse_of(float d) { return d == 0 ? 0 : 1 / d; }

// The codes round half up. All arithmetic is f32, which decides the code of numbers that only the rounding of
// the scale moves off the midpoint.
int half_up_code(float in_steps, int zero, int high) {
  return clamp_to_int(in_steps + (static_cast<float>(zero) + 0.5F), 0, high);
}

// The number of largest magnitude, with its sign.
float extreme_of(const float* x) {
  float extreme = 0;
  for (int i = 0; i < 32; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  return extreme;
}

// Puts codes into low, then high nibbles, and their fifth bits into the block's fifth bits if it has them.
template <typename Block>
void put_codes(const int* codes, Block& block) {
  for (int i = 0; i < 16; ++i)
    block.qs[i] = static_cast<uint8_t>((codes[i] & 15) | (codes[i + 16] & 15) << 4);
  if constexpr (requires { block.qh; }) {
    std::memset(block.qh, 0, sizeof(block.qh));
    for (int i = 0; i < 32; ++i) block.qh[i / 8] |= static_cast<uint8_t>(codes[i] >> 4 << (i % 8));
  }
}

// The scale maps the number of largest magnitude to the lowest code.
template <typename Block>
void quantize_centred(const float* x, int zero, Block& block) {
  const float d = extreme_of(x) / static_cast<float>(-zero);
  const float inverse = inverse_of(d);
  int codes[32];
  for (int i = 0; i < 32; ++i) codes[i] = half_up_code(x[i] * inverse, zero, 2 * zero - 1);
  block.d = f32_to_f16(d);
  put_codes(codes, block);
}

// Scale and min map the smallest number to 0 and the largest to the highest code.
template <typename Block>
void quantize_range(const float* x, int high, Block& block) {
  const auto [least, most] = std::minmax_element(x, x + 32);
  const float min = *least;
  const float d = (*most - min) / static_cast<float>(high);
  const float inverse = inverse_of(d);
  int codes[32];
  for (int i = 0; i < 32; ++i) codes[i] = half_up_code((x[i] - min) * inverse, 0, high);
  block.d = f32_to_f16(d);
  block.m = f32_to_f16(min);
  put_codes(codes, block);
}

// The code of E2M1 with the nearest number; of two as near, the lower one.
int nearest_fp4(float in_steps) {
  const int8_t* numbers = nibble_numbers(NibbleValues::kFp4);
  int nearest = 0;
  for (int code = 1; code < 16; ++code) {
    if (std::fabs(in_steps - static_cast<float>(numbers[code])) <
        std::fabs(in_steps - static_cast<float>(numbers[nearest]))) {
      nearest = code;
    }
  }
  return nearest;
}

// The code of IQ4_NL with the nearest number. The numbers ascend.
int nearest_iq4(float in_steps) {
  const int8_t* numbers = nibble_numbers(NibbleValues::kIq4);
  int code = 0;
  for (int step = 8; step > 0; step /= 2) {
    const int between = numbers[code + step - 1] + numbers[code + step];
    if (2 * in_steps > static_cast<float>(between)) code += step;
  }
  return code;
}

// The scale of least squares for codes that put the number of largest magnitude near the lowest or the
// highest of IQ4_NL's numbers.
double fit_iq4_scale(const float* x) {
  const int8_t* numbers = nibble_numbers(NibbleValues::kIq4);
  const float extreme = extreme_of(x);
  if (!std::isfinite(1 / extreme)) return 0;
  double best_gain = 0, best_scale = 0;
  const auto consider = [&](float inverse) {
    double squares = 0, products = 0;
    for (int i = 0; i < 32; ++i) {
      const double number = numbers[nearest_iq4(x[i] * inverse)];
      squares += number * number;
      products += number * x[i];
    }
    const double gain = products * products / squares;  // of squared error, over a scale of 0
    if (gain <= best_gain) return;
    best_gain = gain;
    best_scale = products / squares;
  };
  for (int shift = -24; shift <= 24; shift += 4) {
    consider(static_cast<float>(shift - 127) / extreme);
    consider(static_cast<float>(shift + 113) / extreme);
  }
  const auto inverse = static_cast<float>(1 / best_scale);  // once more with the best scale's own codes
  if (std::isfinite(inverse)) consider(inverse);
  return best_scale;
}

}  // namespace

// The scale maps the largest magnitude to 127; codes round half away from zero.
void quantize_block(const float* x, BlockQ8_0& block) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::fmax(largest, std::fabs(x[i]));
  const float d = largest / 127;
  const float inverse = inverse_of(d);
  block.d = f32_to_f16(d);
  for (int i = 0; i < 32; ++i)
    block.qs[i] = static_cast<int8_t>(clamp_to_int(std::round(x[i] * inverse), -128, 127));
}

void quantize_block(const float* x, BlockQ4_0& block) { quantize_centred(x, 8, block); }

void quantize_block(const float* x, BlockQ4_1& block) { quantize_range(x, 15, block); }

void quantize_block(const float* x, BlockQ5_0& block) { quantize_centred(x, 16, block); }

void quantize_block(const float* x, BlockQ5_1& block) { quantize_range(x, 31, block); }

void quantize_block(const float* x, BlockIQ4_NL& block) {
  block.d = f32_to_f16(static_cast<float>(fit_iq4_scale(x)));
  const float inverse = inverse_of(f16_to_f32(block.d));
  int codes[32];
  for (int i = 0; i < 32; ++i) codes[i] = nearest_iq4(x[i] * inverse);
  put_codes(codes, block);
  if (!std::all_of(x, x + 32, [](float value) { return std::isfinite(value); })) block.d = f32_to_f16(NAN);
}

// The exponent puts the number of largest magnitude at 4 or above, below 8, in units of E2M1.
void quantize_block(const float* x, BlockMXFP4& block) {
  constexpr int kBias = 127;
  const float extreme = std::fabs(extreme_of(x));
  const int exponent = extreme > 0 && std::isfinite(extreme) ? std::ilogb(extreme) - 2 : -kBias;
  block.e = static_cast<uint8_t>(std::max(exponent + kBias, 0));
  // Numbers are in halves of the unit. Two steps keep the factor finite.
  const float inverse = std::ldexp(1.0F, (kBias - block.e) / 2);
  const float rest = std::ldexp(1.0F, kBias + 1 - block.e - (kBias - block.e) / 2);
  int codes[32];
  for (int i = 0; i < 32; ++i) codes[i] = nearest_fp4(x[i] * inverse * rest);
  put_codes(codes, block);
}

}  // namespace outrider
