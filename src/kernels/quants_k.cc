// SPDX-License-Identifier: Apache-2.0
// Each group's scale (and minimum) is searched for on its own; then the block's half-precision scales, the
// groups' integer scales and the codes are chosen in turn, each the best for the previous ones.
#include "kernels/quants_k.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "tensor/dtype.h"

namespace outrider {
namespace {

constexpr int kBlock = 256;
constexpr int kLanes = 4;
constexpr float kLargestHalf = 65504;
constexpr uint16_t kHalfNan = 0x7E00;
constexpr int kRefinements = 2;

// Four numbers side by side, on every machine.
typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));

inline Floats all(float value) { return Floats{value, value, value, value}; }

inline Floats load(const float* x) {
  Floats values;
  std::memcpy(&values, x, sizeof(values));
  return values;
}

inline double sum(Floats values) {
  return static_cast<double>(values[0]) + values[1] + (static_cast<double>(values[2]) + values[3]);
}

// The nearest codes, halves to even, of values in units of the step.
template <typename T>
inline T code_of(T value, T low, T high) {
  const T shift = T{} + 12582912.0f;  // 1.5 * 2^23: adding it rounds small numbers
  const T above = value > low ? value : low;
  const T within = above < high ? above : high;
  return (within + shift) - shift;
}

bool all_finite(const float* x) {
  return std::all_of(x, x + kBlock, [](float value) { return std::isfinite(value); });
}

float to_half(double value) {
  return f16_to_f32(f32_to_f16(static_cast<float>(std::clamp<double>(value, -kLargestHalf, kLargestHalf))));
}

// The result is not below `value` in magnitude, so that whole-number scales in units of it do not exceed
// their range.
float to_half_up(double value) {
  const float half = to_half(value);
  const bool below = std::fabs(half) < std::min(std::fabs(value), 1.0 * kLargestHalf);
  return below ? f16_to_f32(static_cast<uint16_t>(f32_to_f16(half) + 1)) : half;
}

// Sums over a group with codes l = code_of(x * inverse + shift).
struct CodeSums {
  double l = 0, ll = 0, xl = 0;
};

struct CodeRule {
  float inverse, shift, low, high;
};

template <int kCount>
CodeSums sums_of_codes(const float* x, const CodeRule& rule) {
  Floats l = all(0), ll = all(0), xl = all(0);
  for (int i = 0; i < kCount; i += kLanes) {
    const Floats values = load(x + i);
    const Floats codes = code_of(values * rule.inverse + rule.shift, all(rule.low), all(rule.high));
    l += codes;
    ll += codes * codes;
    xl += values * codes;
  }
  return {sum(l), sum(ll), sum(xl)};
}

// Squared error of the group when x becomes step * code + offset with the best codes. Precondition: step !=
// 0.
template <int kCount>
double error_of_step(const float* x, float step, float offset, float low, float high) {
  const float inverse = 1 / step;
  Floats squares = all(0);
  for (int i = 0; i < kCount; i += kLanes) {
    const Floats above = load(x + i) - offset;
    const Floats rest = above - step * code_of(above * inverse, all(low), all(high));
    squares += rest * rest;
  }
  return sum(squares);
}

bool is_usable(float step) { return std::isfinite(1 / step); }

// ---- Q6_K: x = d * s * (q - 32), sixteen groups of 16
// -------------------------------------------------------

constexpr int kGroups6 = 16;
constexpr int kGroup6 = 16;
constexpr float kLow6 = -32, kHigh6 = 31;

// The scale, of either sign, with the least squared error among codes that put the largest number at -35 to
// -29.
double fit_scale(const float* x) {
  float extreme = 0;
  for (int i = 0; i < kGroup6; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  if (extreme == 0 || !is_usable(extreme)) return 0;
  double best_gain = 0, best_scale = 0;
  for (int step = -12; step <= 12; ++step) {
    const float inverse = (-32 + 0.25f * static_cast<float>(step)) / extreme;
    const CodeSums sums = sums_of_codes<kGroup6>(x, {inverse, 0, kLow6, kHigh6});
    if (sums.ll == 0) continue;
    const double gain = sums.xl * sums.xl / sums.ll;  // of squared error, over a scale of 0
    if (gain <= best_gain) continue;
    best_gain = gain;
    best_scale = sums.xl / sums.ll;
  }
  return best_scale;
}

struct Choice6 {
  float d = 0;
  std::array<int, kGroups6> scales{};
  double error = 0;
};

// For a given d, each group's whole-number scale, out of the three nearest to the one wanted.
Choice6 choose_scales(const float* x, float d, const std::array<double, kGroups6>& wanted) {
  Choice6 choice{d, {}, 0};
  for (int group = 0; group < kGroups6; ++group) {
    const float* values = x + group * kGroup6;
    double best_error = 0;
    for (int i = 0; i < kGroup6; ++i) best_error += static_cast<double>(values[i]) * values[i];  // scale 0
    const int nearest = static_cast<int>(std::clamp(std::round(wanted[group] / d), -128.0, 127.0));
    for (int scale = std::max(nearest - 1, -128); scale <= std::min(nearest + 1, 127); ++scale) {
      const float step = d * static_cast<float>(scale);
      if (!is_usable(step)) continue;
      const double error = error_of_step<kGroup6>(values, step, 0, kLow6, kHigh6);
      if (error >= best_error) continue;
      best_error = error;
      choice.scales[group] = scale;
    }
    choice.error += best_error;
  }
  return choice;
}

// The d that suits the codes and whole-number scales of `choice` best.
double refit(const float* x, const Choice6& choice) {
  double along = 0, square = 0;
  for (int group = 0; group < kGroups6; ++group) {
    const float step = choice.d * static_cast<float>(choice.scales[group]);
    if (!is_usable(step)) continue;
    const CodeSums sums = sums_of_codes<kGroup6>(x + group * kGroup6, {1 / step, 0, kLow6, kHigh6});
    along += choice.scales[group] * sums.xl;
    square += static_cast<double>(choice.scales[group]) * choice.scales[group] * sums.ll;
  }
  return square == 0 ? choice.d : along / square;
}

void store(const float* x, const Choice6& choice, BlockQ6_K& block) {
  block.d = f32_to_f16(choice.d);
  for (int i = 0; i < kBlock; ++i) {
    const int scale = choice.scales[i / kGroup6];
    const float step = choice.d * static_cast<float>(scale);
    const float code = is_usable(step) ? code_of(x[i] * (1 / step), kLow6, kHigh6) : 0;
    const int q = static_cast<int>(code) + 32;
    const int half = i / 128, column = i % 128 / 32, l = i % 32;
    block.ql[half * 64 + column % 2 * 32 + l] |= static_cast<uint8_t>((q & 15) << (column < 2 ? 0 : 4));
    block.qh[half * 32 + l] |= static_cast<uint8_t>((q >> 4) << (2 * column));
    block.scales[i / kGroup6] = static_cast<int8_t>(scale);
  }
}

// ---- Q4_K: x = d * s * q - dmin * m, eight groups of 32
// -----------------------------------------------------

constexpr int kGroups4 = 8;
constexpr int kGroup4 = 32;
constexpr float kLow4 = 0, kHigh4 = 15;
constexpr int kMaxScale4 = 63;

// x = scale * q - min, both not negative.
struct Line {
  double scale = 0;
  double min = 0;
};

struct GroupSums {
  double x = 0, xx = 0;
};

// The line of least squares through points with these sums, kept to min >= 0, and its error.
double best_line(const GroupSums& values, const CodeSums& codes, Line& line) {
  const double count = kGroup4;
  const double determinant = count * codes.ll - codes.l * codes.l;
  if (determinant > 0) {
    line.scale = (count * codes.xl - values.x * codes.l) / determinant;
    line.min = (codes.l * codes.xl - codes.ll * values.x) / determinant;
  }
  if (determinant <= 0 || line.min < 0) line = {codes.ll == 0 ? 0 : codes.xl / codes.ll, 0};
  if (line.scale < 0) line.scale = 0;
  const double s = line.scale, m = line.min;
  return values.xx + s * s * codes.ll + count * m * m - 2 * s * m * codes.l - 2 * s * codes.xl +
         2 * m * values.x;
}

Line fit_line(const float* x) {
  float low = 0, high = x[0];
  GroupSums sums;
  for (int i = 0; i < kGroup4; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
    sums.x += x[i];
    sums.xx += static_cast<double>(x[i]) * x[i];
  }
  Line best{0, -low};
  if (!(high > low) || !is_usable(high - low)) return best;
  double best_error = sums.xx + 1;
  const auto consider = [&](float inverse, float shift) {
    Line line;
    const double error = best_line(sums, sums_of_codes<kGroup4>(x, {inverse, shift, kLow4, kHigh4}), line);
    if (error >= best_error) return;
    best_error = error;
    best = line;
  };
  for (int step = 0; step <= 20; ++step) {
    const float inverse = (13.5f + 0.15f * static_cast<float>(step)) / (high - low);
    consider(inverse, -low * inverse);
  }
  const auto inverse = static_cast<float>(1 / best.scale);  // once more with the best line's own codes
  if (std::isfinite(inverse)) consider(inverse, static_cast<float>(best.min) * inverse);
  return best;
}

struct Choice4 {
  float d = 0, dmin = 0;
  std::array<int, kGroups4> scales{}, mins{};
  double error = 0;

  float step(int group) const { return d * static_cast<float>(scales[group]); }
  float offset(int group) const { return -dmin * static_cast<float>(mins[group]); }
};

double error_of_line(const float* x, float step, float offset) {
  if (is_usable(step)) return error_of_step<kGroup4>(x, step, offset, kLow4, kHigh4);
  double error = 0;
  for (int i = 0; i < kGroup4; ++i) error += (static_cast<double>(x[i]) - offset) * (x[i] - offset);
  return error;
}

int nearest_scale(double wanted, float unit) {
  return unit == 0 ? 0 : static_cast<int>(std::clamp(std::round(wanted / unit), 0.0, 1.0 * kMaxScale4));
}

// For given d and dmin, each group's whole-number scale and minimum, out of the three nearest each.
Choice4 choose_scales(const float* x, float d, float dmin, const std::array<Line, kGroups4>& wanted) {
  Choice4 choice{d, dmin, {}, {}, 0};
  for (int group = 0; group < kGroups4; ++group) {
    const int near_scale = nearest_scale(wanted[group].scale, d);
    const int near_min = nearest_scale(wanted[group].min, dmin);
    double best_error = -1;
    for (int scale = std::max(near_scale - 1, 0); scale <= std::min(near_scale + 1, kMaxScale4); ++scale) {
      for (int min = std::max(near_min - 1, 0); min <= std::min(near_min + 1, kMaxScale4); ++min) {
        const double error = error_of_line(x + group * kGroup4, d * static_cast<float>(scale),
                                           -dmin * static_cast<float>(min));
        if (best_error >= 0 && error >= best_error) continue;
        best_error = error;
        choice.scales[group] = scale;
        choice.mins[group] = min;
      }
    }
    choice.error += best_error;
  }
  return choice;
}

struct Units {
  double d = 0, dmin = 0;
};

// The d and dmin that suit the codes and whole-number scales of `choice` best: x ~ d * (s q) - dmin * m.
Units refit(const float* x, const Choice4& choice) {
  double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;  // a = s * q, b = -m
  for (int group = 0; group < kGroups4; ++group) {
    const float* values = x + group * kGroup4;
    const float step = choice.step(group);
    CodeSums codes;
    if (is_usable(step)) {
      codes = sums_of_codes<kGroup4>(values, {1 / step, -choice.offset(group) / step, kLow4, kHigh4});
    }
    double sum = 0;
    for (int i = 0; i < kGroup4; ++i) sum += values[i];
    const double s = choice.scales[group], m = choice.mins[group];
    aa += s * s * codes.ll;
    ab -= s * m * codes.l;
    bb += m * m * kGroup4;
    ax += s * codes.xl;
    bx -= m * sum;
  }
  const double determinant = aa * bb - ab * ab;
  if (!(determinant > 0)) return {choice.d, choice.dmin};
  return {std::max(0.0, (ax * bb - bx * ab) / determinant), std::max(0.0, (bx * aa - ax * ab) / determinant)};
}

void store(const float* x, const Choice4& choice, BlockQ4_K& block) {
  block.d = f32_to_f16(choice.d);
  block.dmin = f32_to_f16(choice.dmin);
  for (int group = 0; group < kGroups4; ++group) {
    const int s = choice.scales[group], m = choice.mins[group], low = group & 3;
    if (group < 4) {
      block.scales[low] |= static_cast<uint8_t>(s);
      block.scales[4 + low] |= static_cast<uint8_t>(m);
    } else {
      block.scales[8 + low] = static_cast<uint8_t>((s & 15) | (m & 15) << 4);
      block.scales[low] |= static_cast<uint8_t>(s >> 4 << 6);
      block.scales[4 + low] |= static_cast<uint8_t>(m >> 4 << 6);
    }
    const float step = choice.step(group);
    if (!is_usable(step)) continue;
    const float inverse = 1 / step;
    for (int l = 0; l < kGroup4; ++l) {
      const float code = code_of((x[group * kGroup4 + l] - choice.offset(group)) * inverse, kLow4, kHigh4);
      block.qs[group / 2 * 32 + l] |= static_cast<uint8_t>(static_cast<int>(code) << (group % 2 * 4));
    }
  }
}

}  // namespace

void quantize_block(const float* x, BlockQ6_K& block) {
  block = {};
  if (!all_finite(x)) {
    block.d = kHalfNan;
    return;
  }
  std::array<double, kGroups6> wanted;
  double extreme = 0;
  for (int group = 0; group < kGroups6; ++group) {
    wanted[group] = fit_scale(x + group * kGroup6);
    if (std::fabs(wanted[group]) > std::fabs(extreme)) extreme = wanted[group];
  }
  const float d = to_half_up(extreme / -128);
  if (d == 0) return;
  Choice6 best = choose_scales(x, d, wanted);
  for (int i = 0; i < kRefinements; ++i) {
    const float refined = to_half(refit(x, best));
    if (refined == 0 || refined == best.d) break;
    const Choice6 choice = choose_scales(x, refined, wanted);
    if (choice.error >= best.error) break;
    best = choice;
  }
  store(x, best, block);
}

void quantize_block(const float* x, BlockQ4_K& block) {
  block = {};
  if (!all_finite(x)) {
    block.d = kHalfNan;
    return;
  }
  std::array<Line, kGroups4> wanted;
  Line largest;
  for (int group = 0; group < kGroups4; ++group) {
    wanted[group] = fit_line(x + group * kGroup4);
    largest = {std::max(largest.scale, wanted[group].scale), std::max(largest.min, wanted[group].min)};
  }
  Choice4 best =
      choose_scales(x, to_half_up(largest.scale / kMaxScale4), to_half_up(largest.min / kMaxScale4), wanted);
  for (int i = 0; i < kRefinements; ++i) {
    const Units units = refit(x, best);
    const Choice4 choice = choose_scales(x, to_half(units.d), to_half(units.dmin), wanted);
    if (choice.error >= best.error) break;
    best = choice;
  }
  store(x, best, block);
}

}  // namespace outrider
