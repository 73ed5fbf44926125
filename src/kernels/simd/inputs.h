// SPDX-License-Identifier: Apache-2.0
// Inputs of a product in the layouts that all tables share: f32 in tiles, and 8-bit codes, rounded to nearest
// even. Numbers are scale * code; the scale maps the largest magnitude of a group or of a row to 127. A row's
// codes depend only on that row.
#pragma once

#include "kernels/isa_ops.h"
#include "kernels/simd/float_tiles.h"

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

// Codes of `count` numbers and zeros up to whole vectors; returns the sums of the codes by lane.
template <typename V>
typename V::Ints put_codes(const float* x, int64_t count, float inverse, int8_t* codes) {
  auto sums = V::all_ints(0);
  for (int64_t i = 0; i < count; i += V::kLanes) {
    const int64_t left = count - i < V::kLanes ? count - i : V::kLanes;
    const auto scaled = V::mul(V::load_first(x + i, left), V::all(inverse));
    // Rounding of the inverse may lead beyond 127.
    const auto code = V::to_ints(V::max(V::min(scaled, V::all(127)), V::all(-127)));
    sums = V::add(sums, code);
    V::store_bytes(codes + i, code);
  }
  return sums;
}

// All of the group but its codes; their sums are given by half.
template <typename V>
void describe_group(float scale, int32_t first_sum, int32_t second_sum, InputGroup& group) {
  const int32_t sum = first_sum + second_sum;
  group.scale = scale;
  group.scaled_sum = scale * static_cast<float>(sum);
  group.sums[0] = first_sum;
  group.sums[1] = second_sum;
  group.zero_sum = -kNibbleZero * sum;
  group.byte_zero_sum = -kByteZero * sum;
  for (int half = 0; half < 2; ++half) group.byte_zero_sums[half] = -kByteZero * group.sums[half];
}

template <typename V>
void pack_group(const float* x, InputGroup& group) {
  const float largest = max_magnitude<V>(x, kInputGroup);
  const float inverse = largest > 0 ? 127 / largest : 0;
  int32_t sums[2];
  for (int half = 0; half < 2; ++half) {
    const int64_t first = half * kInputGroup / 2;
    sums[half] = V::sum_ints(put_codes<V>(x + first, kInputGroup / 2, inverse, group.codes + first));
  }
  describe_group<V>(largest / 127, sums[0], sums[1], group);
}

// As many groups as a vector has lanes: their maxima and sums are found for all at once.
template <typename V>
void pack_some_groups(const float* x, InputGroup* const (&groups)[V::kLanes]) {
  constexpr int kHalf = kInputGroup / 2;
  typename V::Floats tops[V::kLanes];
  for (int g = 0; g < V::kLanes; ++g) {
    tops[g] = V::absolute(V::load(x + g * kInputGroup));
    for (int64_t i = V::kLanes; i < kInputGroup; i += V::kLanes)
      tops[g] = V::max(tops[g], V::absolute(V::load(x + g * kInputGroup + i)));
  }
  alignas(64) float largest[V::kLanes], inverse[V::kLanes];
  V::store(largest, V::maxima(tops));
  for (int g = 0; g < V::kLanes; ++g) {
    const float divisor = largest[g] > 0 ? largest[g] : 1;
    inverse[g] = largest[g] > 0 ? 127 / divisor : 0;
  }
  alignas(64) float sums[2][V::kLanes];  // of integers that f32 holds exactly
  for (int half = 0; half < 2; ++half) {
    typename V::Floats of_groups[V::kLanes];
    for (int g = 0; g < V::kLanes; ++g) {
      const int64_t first = half * kHalf;
      of_groups[g] = V::to_floats(
          put_codes<V>(x + g * kInputGroup + first, kHalf, inverse[g], groups[g]->codes + first));
    }
    V::store(sums[half], V::sums(of_groups));
  }
  for (int g = 0; g < V::kLanes; ++g) {
    describe_group<V>(largest[g] / 127, static_cast<int32_t>(sums[0][g]), static_cast<int32_t>(sums[1][g]),
                      *groups[g]);
  }
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
    sum += V::sum_ints(put_codes<V>(x + begin, count, inverse, codes));
  }
  head.scales[row % kInputRows] = largest / 127;
  head.sums[row % kInputRows] = sum;
}

// Walks through the groups of all rows, row by row.
template <typename V>
class GroupPlaces {
 public:
  GroupPlaces(const InputShare& share, int64_t item)
      : share_(share), groups_(share.k / kInputGroup), row_(item / groups_), left_(groups_ - item % groups_) {
    find_row();
    next_ += item % groups_ * step_;
  }

  InputGroup* take() {
    InputGroup* const place = next_;
    next_ += step_;
    if (--left_ == 0) {
      ++row_;
      left_ = groups_;
      find_row();
    }
    return place;
  }

 private:
  void find_row() {
    const int64_t tile = row_ / kInputRows * kInputRows;
    step_ = share_.rows - tile < kInputRows ? share_.rows - tile : kInputRows;
    next_ = reinterpret_cast<InputGroup*>(share_.packed) + tile * groups_ + (row_ - tile);
  }

  const InputShare& share_;
  const int64_t groups_;  // of a row
  int64_t row_;
  int64_t left_;  // groups of the row from `next_` on
  int64_t step_ = 0;
  InputGroup* next_ = nullptr;
};

template <typename V>
void pack_groups(const InputShare& share) {
  int64_t item = share.items.begin;
  GroupPlaces<V> places(share, item);
  for (; item + V::kLanes <= share.items.end; item += V::kLanes) {
    InputGroup* groups[V::kLanes];
    for (InputGroup*& group : groups) group = places.take();
    pack_some_groups<V>(share.x + item * kInputGroup, groups);
  }
  for (; item < share.items.end; ++item) pack_group<V>(share.x + item * kInputGroup, *places.take());
}

// Items: rows of kInt8Rows, groups of all rows of kInt8Groups, blocks of kF32Tiles.
template <typename V>
void pack_inputs(const InputShare& share) {
  if (share.layout == InputLayout::kF32Tiles) return pack_float_tiles<V>(share);
  if (share.layout == InputLayout::kInt8Groups) return pack_groups<V>(share);
  for (int64_t row = share.items.begin; row < share.items.end; ++row) pack_row<V>(share, row);
}

}  // namespace outrider::simd
