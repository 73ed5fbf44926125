// SPDX-License-Identifier: Apache-2.0
// Decodes strips packed by pack_strips to f32, in vectors of one input of several output features. V is a
// vector type of an instruction-set folder; its unnamed namespace keeps every instance inside the including
// file.
#pragma once

#include "kernels/isa_ops.h"

namespace outrider::simd {

// Part of the strip that one vector holds: features [lane, lane + V::kLanes).
template <typename V>
struct StripPart {
  using Floats = typename V::Floats;
  using Ints = typename V::Ints;

  const uint8_t* block;  // byte b of the 16 features' blocks stands at [b][16]
  float* out;            // [element][16]
  int lane;

  const uint8_t* byte(int index) const { return block + index * kStripFeatures + lane; }
  Ints unsigned_byte(int index) const { return V::unsigned_bytes(byte(index)); }
  Floats half(int index) const {
    return V::from_halves(V::bit_or(unsigned_byte(index), V::shift_left(unsigned_byte(index + 1), 8)));
  }
  void put(int element, Floats value) const { V::store(out + element * kStripFeatures + lane, value); }
};

template <typename V>
void decode_q8_0(const StripPart<V>& part) {
  const auto d = part.half(0);
  for (int i = 0; i < 32; ++i) part.put(i, V::mul(d, V::to_floats(V::signed_bytes(part.byte(2 + i)))));
}

template <typename V>
void decode_q4_0(const StripPart<V>& part) {
  const auto d = part.half(0);
  for (int i = 0; i < 16; ++i) {
    const auto both = part.unsigned_byte(2 + i);
    part.put(i, V::mul(d, V::to_floats(V::add(V::bit_and(both, 15), -8))));
    part.put(i + 16, V::mul(d, V::to_floats(V::add(V::shift_right(both, 4), -8))));
  }
}

template <typename V>
struct ScaleAndMin {
  typename V::Floats scale;
  typename V::Floats min;
};

// Of one group of a Q4_K or Q5_K block; see quant_blocks.h for where the bits stand.
template <typename V>
ScaleAndMin<V> scale_and_min(const StripPart<V>& part, int group) {
  constexpr int kScales = 4;
  const int low = group & 3;
  const auto first = part.unsigned_byte(kScales + low);
  const auto second = part.unsigned_byte(kScales + 4 + low);
  auto scale = V::bit_and(first, 63);
  auto min = V::bit_and(second, 63);
  if (group >= 4) {
    const auto third = part.unsigned_byte(kScales + 8 + low);
    scale = V::bit_or(V::bit_and(third, 15), V::shift_left(V::shift_right(first, 6), 4));
    min = V::bit_or(V::shift_right(third, 4), V::shift_left(V::shift_right(second, 6), 4));
  }
  return {V::mul(part.half(0), V::to_floats(scale)), V::mul(part.half(2), V::to_floats(min))};
}

template <typename V>
void put_scaled(const StripPart<V>& part, int element, const ScaleAndMin<V>& s, typename V::Ints code) {
  part.put(element, V::sub(V::mul(s.scale, V::to_floats(code)), s.min));
}

template <typename V>
void decode_q4_k(const StripPart<V>& part) {
  constexpr int kCodes = 16;
  for (int pair = 0; pair < 4; ++pair) {
    const ScaleAndMin<V> even = scale_and_min(part, 2 * pair);
    const ScaleAndMin<V> odd = scale_and_min(part, 2 * pair + 1);
    for (int l = 0; l < 32; ++l) {
      const auto both = part.unsigned_byte(kCodes + pair * 32 + l);
      put_scaled(part, pair * 64 + l, even, V::bit_and(both, 15));
      put_scaled(part, pair * 64 + 32 + l, odd, V::shift_right(both, 4));
    }
  }
}

template <typename V>
void decode_q5_k(const StripPart<V>& part) {
  constexpr int kFifthBits = 16;
  constexpr int kCodes = 48;
  for (int pair = 0; pair < 4; ++pair) {
    const ScaleAndMin<V> even = scale_and_min(part, 2 * pair);
    const ScaleAndMin<V> odd = scale_and_min(part, 2 * pair + 1);
    for (int l = 0; l < 32; ++l) {
      const auto both = part.unsigned_byte(kCodes + pair * 32 + l);
      const auto fifth = V::shift_left(V::shift_right(part.unsigned_byte(kFifthBits + l), 2 * pair), 4);
      put_scaled(part, pair * 64 + l, even, V::bit_or(V::bit_and(both, 15), V::bit_and(fifth, 16)));
      put_scaled(part, pair * 64 + 32 + l, odd,
                 V::bit_or(V::shift_right(both, 4), V::bit_and(V::shift_right(fifth, 1), 16)));
    }
  }
}

template <typename V>
void decode_q6_k(const StripPart<V>& part) {
  constexpr int kHigh = 128;
  constexpr int kScales = 192;
  const auto d = part.half(208);
  for (int group = 0; group < 16; ++group) {
    const int half = group / 8;
    const int c = group / 2 % 4;
    const auto scale = V::mul(d, V::to_floats(V::signed_bytes(part.byte(kScales + group))));
    for (int i = 0; i < 16; ++i) {
      const int l = group % 2 * 16 + i;
      const auto both = part.unsigned_byte(half * 64 + c % 2 * 32 + l);
      const auto low = c < 2 ? V::bit_and(both, 15) : V::shift_right(both, 4);
      const auto high = V::bit_and(V::shift_right(part.unsigned_byte(kHigh + half * 32 + l), 2 * c), 3);
      const auto code = V::add(V::bit_or(low, V::shift_left(high, 4)), -32);
      part.put(group * 16 + i, V::mul(scale, V::to_floats(code)));
    }
  }
}

template <typename V, void (*decode)(const StripPart<V>&)>
void decode_blocks(DType dtype, const uint8_t* block, int64_t elements, float* out) {
  const int64_t step = block_elements(dtype);
  const int64_t bytes = block_bytes(dtype) * kStripFeatures;
  for (int64_t i = 0; i < elements; i += step, block += bytes) {
    for (int lane = 0; lane < kStripFeatures; lane += V::kLanes)
      decode({block, out + i * kStripFeatures, lane});
  }
}

template <typename V, typename V::Floats (*load)(const uint8_t*)>
void decode_numbers(const uint8_t* numbers, int64_t elements, float* out) {
  constexpr int64_t kBytes = 2;
  for (int64_t i = 0; i < elements * kStripFeatures; i += V::kLanes)
    V::store(out + i, load(numbers + i * kBytes));
}

// A range of inputs of one strip, whole blocks, to out [inputs, 16]. Not for F32,
// whose strips need no decoding.
template <typename V>
void decode_strip(DType dtype, const uint8_t* strip, Range inputs, float* out) {
  const int64_t count = inputs.end - inputs.begin;
  const uint8_t* from = strip + row_bytes(dtype, inputs.begin) * kStripFeatures;
  switch (dtype) {
    case DType::kF32:
      return;
    case DType::kF16:
      return decode_numbers<V, V::load_halves>(from, count, out);
    case DType::kBF16:
      return decode_numbers<V, V::load_bf16>(from, count, out);
    case DType::kQ8_0:
      return decode_blocks<V, decode_q8_0<V>>(dtype, from, count, out);
    case DType::kQ4_0:
      return decode_blocks<V, decode_q4_0<V>>(dtype, from, count, out);
    case DType::kQ4_K:
      return decode_blocks<V, decode_q4_k<V>>(dtype, from, count, out);
    case DType::kQ5_K:
      return decode_blocks<V, decode_q5_k<V>>(dtype, from, count, out);
    case DType::kQ6_K:
      return decode_blocks<V, decode_q6_k<V>>(dtype, from, count, out);
  }
}

}  // namespace outrider::simd
