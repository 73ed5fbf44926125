// SPDX-License-Identifier: Apache-2.0
// Inputs of a product in 8-bit codes, rounded to nearest even: x = scale * code, the scale maps the largest
// magnitude of a group or of a row to 127. A row's codes depend on that row alone.
#pragma once

#include "kernels/isa_ops.h"

namespace outrider::simd {

template <typename V>
float max_magnitude(const float* x, int64_t count) {
  auto largest = V::all(0);
  for (int64_t i = 0; i < count; i += V::kLanes) {
    const int64_t left = count - i < V::kLanes ? count - i : V::kLanes;
    largest = V::max(largest, V::absolute(V::load_first(x + i, left)));
  }
  return V::largest(largest);
}

// Codes of `count` numbers and zeros up to whole vectors; returns the sum of the codes.
template <typename V>
int32_t put_codes(const float* x, int64_t count, float inverse, int8_t* codes) {
  auto sum = V::all_ints(0);
  for (int64_t i = 0; i < count; i += V::kLanes) {
    const int64_t left = count - i < V::kLanes ? count - i : V::kLanes;
    const auto scaled = V::mul(V::load_first(x + i, left), V::all(inverse));
    // Rounding of the inverse may lead beyond 127.
    const auto code = V::to_ints(V::max(V::min(scaled, V::all(127)), V::all(-127)));
    sum = V::add(sum, code);
    V::store_bytes(codes + i, code);
  }
  return V::sum_ints(sum);
}

template <typename V>
void pack_group(const float* x, InputGroup& group) {
  const float largest = max_magnitude<V>(x, kInputGroup);
  group.scale = largest / 127;
  const float inverse = largest > 0 ? 127 / largest : 0;
  group.sums[0] = put_codes<V>(x, kInputGroup / 2, inverse, group.codes);
  group.sums[1] = put_codes<V>(x + kInputGroup / 2, kInputGroup / 2, inverse, group.codes + kInputGroup / 2);
  const int32_t sum = group.sums[0] + group.sums[1];
  group.zero_sum = -kNibbleZero * sum;
  group.byte_zero_sum = -kByteZero * sum;
  for (int half = 0; half < 2; ++half) group.byte_zero_sums[half] = -kByteZero * group.sums[half];
  group.scaled_sum = group.scale * static_cast<float>(sum);
}

template <typename V>
void pack_row(const InputShare& share, int64_t row) {
  const int64_t steps = (share.k + kChannelDepth - 1) / kChannelDepth;
  const int64_t tile_bytes = static_cast<int64_t>(sizeof(InputRowsHead)) + steps * kInputRows * kChannelDepth;
  std::byte* tile = share.packed + row / kInputRows * tile_bytes;
  auto& head = *reinterpret_cast<InputRowsHead*>(tile);
  auto* codes = reinterpret_cast<int8_t*>(tile + sizeof(InputRowsHead)) + row % kInputRows * kChannelDepth;
  const float* x = share.x + row * share.k;
  const float largest = max_magnitude<V>(x, share.k);
  const float inverse = largest > 0 ? 127 / largest : 0;
  int32_t sum = 0;
  for (int64_t step = 0; step < steps; ++step, codes += kInputRows * kChannelDepth) {
    const int64_t begin = step * kChannelDepth;
    const int64_t count = share.k - begin < kChannelDepth ? share.k - begin : kChannelDepth;
    for (int64_t i = count / V::kLanes * V::kLanes; i < kChannelDepth; ++i) codes[i] = 0;
    sum += put_codes<V>(x + begin, count, inverse, codes);
  }
  head.scales[row % kInputRows] = largest / 127;
  head.sums[row % kInputRows] = sum;
}

template <typename V>
void pack_groups(const InputShare& share) {
  const int64_t groups = share.k / kInputGroup;
  for (int64_t item = share.items.begin; item < share.items.end;) {
    const int64_t row = item / groups;
    const int64_t end = (row + 1) * groups < share.items.end ? (row + 1) * groups : share.items.end;
    const int64_t tile = row / kInputRows * kInputRows;
    const int64_t width = share.rows - tile < kInputRows ? share.rows - tile : kInputRows;
    InputGroup* of_row = reinterpret_cast<InputGroup*>(share.packed) + tile * groups + (row - tile);
    for (; item < end; ++item)
      pack_group<V>(share.x + item * kInputGroup, of_row[(item - row * groups) * width]);
  }
}

// Items: rows of kInt8Rows, groups of all rows of kInt8Groups.
template <typename V>
void pack_inputs(const InputShare& share) {
  if (share.layout == InputLayout::kInt8Groups) return pack_groups<V>(share);
  for (int64_t row = share.items.begin; row < share.items.end; ++row) pack_row<V>(share, row);
}

}  // namespace outrider::simd
