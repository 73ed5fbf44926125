// SPDX-License-Identifier: Apache-2.0
// The choice of experts, as models/blocks/experts/expert_routing.h has it.
#pragma once

#include "device_kernels/rows/portable_functions.h"

namespace outrider::simt {

// The rules of weights, in the order of RouterWeights.
enum class RouterRule : int { kSoftmax, kSoftmaxOfChosen, kSigmoid, kSigmoidOfChosen };

struct ChooseExpertsArgs {
  Rows<const float> outputs;   // [rows, count], of the router
  Weights<float> choice_bias;  // [count], or null
  Weights<float> scales;       // [count], factors of weights, or null
  List<int> slots;             // [rows]: a row with -1 is used by nobody and chooses none; null: all are used
  Rows<float> values;          // [rows, count], scratch
  Rows<float> sums;            // [rows, groups], scratch
  Rows<int> experts;           // [rows, used], best first; -1: none
  Rows<float> weights;         // [rows, used]
  int rows;
  int count;
  int used;
  int groups;
  int used_groups;
  int ranks_groups_by_best;
  RouterRule rule;
  float scale;
};

// A value with its index. Larger values come first, and of equal ones the lower index.
struct RankedValue {
  float value;
  int index;
};

inline constexpr float kLowestValue = -__builtin_huge_valf();

SIMT Bools comes_before(Floats value, Ints index, Floats other, Ints other_index) {
  return value > other || (value == other && index < other_index);
}

// The first of the values that come after `last`.
SIMT_PART RankedValue next_value(const Rows<float>& values, int count, RankedValue last) {
  Floats best(kLowestValue);
  Ints at(count);
  for (int first = 0; first < count; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Bools in = i < Ints(count);
    const Floats value = values.load_if(in, i, 0.0F);
    const Bools is_next = comes_before(Floats(last.value), Ints(last.index), value, i);
    const Bools is_better = in && is_next && comes_before(value, i, best, at);
    best = select(is_better, value, best);
    at = select(is_better, i, at);
  }
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    const Floats other = shuffle_xor(best, apart);
    const Ints other_at = shuffle_xor(at, apart);
    const Bools is_better = comes_before(other, other_at, best, at);
    best = select(is_better, other, best);
    at = select(is_better, other_at, at);
  }
  return {shuffle(best, 0), shuffle(at, 0)};
}

// The values that the choice goes by; NaN becomes the lowest.
SIMT_PART void write_values(const ChooseExpertsArgs& args, const Rows<const float>& outputs,
                            const Rows<float>& values) {
  for (int first = 0; first < args.count; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Bools in = i < Ints(args.count);
    Floats value = outputs.load_if(in, i, 0.0F);
    if (!args.choice_bias.is_null())
      value = add_rn(portable_sigmoid_of(value), args.choice_bias.load_if(in, i, 0.0F));
    values.store_if(in, i, select(value == value, value, Floats(kLowestValue)));
  }
}

// The sum of the two largest values of `size` neighbours, or the largest.
SIMT_PART float group_value(const Rows<float>& values, int size, bool is_best) {
  Floats best(kLowestValue), second(kLowestValue);
  for (int first = 0; first < size; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Floats value = values.load_if(i < Ints(size), i, kLowestValue);
    second = max_of(second, min_of(best, value));
    best = max_of(best, value);
  }
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    const Floats other = shuffle_xor(best, apart);
    second = max_of(max_of(second, shuffle_xor(second, apart)), min_of(best, other));
    best = max_of(best, other);
  }
  return shuffle(is_best ? best : add_rn(best, second), 0);
}

// The groups that come before a group.
SIMT_PART int groups_before(const Rows<float>& sums, int groups, int group) {
  const Floats own(sums.load_one(group));
  Ints before(0);
  for (int first = 0; first < groups; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Bools in = i < Ints(groups);
    const Bools is_before = in && comes_before(sums.load_if(in, i, 0.0F), i, own, Ints(group));
    before = before + select(is_before, Ints(1), Ints(0));
  }
  return shuffle(sum_lanes(before, kWarp), 0);
}

// Makes the values of all experts outside of the best groups the lowest.
SIMT_PART void keep_best_groups(const Block& block, const ChooseExpertsArgs& args, int row,
                                const Rows<float>& values) {
  const auto sums = args.sums.from(static_cast<int64_t>(row) * args.groups);
  const int size = args.count / args.groups;
  block.sync_warp();
  for (int group = 0; group < args.groups; ++group) {
    const float sum = group_value(values.from(group * size), size, args.ranks_groups_by_best != 0);
    sums.store_if(lane_id() == Ints(0), Ints(group), Floats(sum));
  }
  block.sync_warp();
  for (int group = 0; group < args.groups; ++group) {
    if (groups_before(sums, args.groups, group) < args.used_groups) continue;
    for (int first = 0; first < size; first += kWarp) {
      const Ints i = lane_id() + Ints(first);
      values.store_if(i < Ints(size), i + Ints(group * size), Floats(kLowestValue));
    }
  }
  block.sync_warp();
}

// The weights of outputs before they are divided by the sum of some.
SIMT_PART Floats raw_weights(RouterRule rule, Floats outputs, float largest) {
  const bool is_softmax = rule == RouterRule::kSoftmax || rule == RouterRule::kSoftmaxOfChosen;
  return is_softmax ? portable_exp_of(sub_rn(outputs, Floats(largest))) : portable_sigmoid_of(outputs);
}

// The sum of the raw weights of `count` outputs, in their order. places: where they are, or null
SIMT_PART float sum_of_weights_in_order(const ChooseExpertsArgs& args, const Rows<const float>& outputs,
                                        const Rows<int>& places, int count, float largest) {
  float sum = 0.0F;
  for (int first = 0; first < count; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Bools in = i < Ints(count);
    const Ints place = places.is_null() ? i : places.load_if(in, i, 0);
    const Floats weights = raw_weights(args.rule, outputs.load_if(in, place, 0.0F), largest);
    for (int lane = 0; lane < kWarp && first + lane < count; ++lane)
      sum = add_rn(sum, shuffle(weights, lane));
  }
  return sum;
}

SIMT_PART float weight_divisor(const ChooseExpertsArgs& args, const Rows<const float>& outputs,
                               const Rows<int>& chosen, float largest) {
  if (args.rule == RouterRule::kSigmoid) return 1.0F;
  if (args.rule == RouterRule::kSoftmax)
    return sum_of_weights_in_order(args, outputs, Rows<int>{nullptr, 0}, args.count, largest);
  return sum_of_weights_in_order(args, outputs, chosen, args.used, largest);
}

SIMT void choose_none(const ChooseExpertsArgs& args, int row) {
  const int64_t begin = static_cast<int64_t>(row) * args.used;
  for (int first = 0; first < args.used; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Bools in = i < Ints(args.used);
    args.experts.from(begin).store_if(in, i, Ints(-1));
    args.weights.from(begin).store_if(in, i, Floats(0.0F));
  }
}

// A warp takes a row.
SIMT void choose_experts(const Block& block, const ChooseExpertsArgs& args) {
  const int row = block.index() * block.warps() + block.warp();
  if (row >= args.rows) return;
  block.wait_for_previous();
  const auto outputs = args.outputs.from(static_cast<int64_t>(row) * args.count);
  const auto values = args.values.from(static_cast<int64_t>(row) * args.count);
  const auto experts = args.experts.from(static_cast<int64_t>(row) * args.used);
  if (!args.slots.is_null() && args.slots.load_one(row) < 0) return choose_none(args, row);
  write_values(args, outputs, values);
  if (args.groups > 1) keep_best_groups(block, args, row, values);
  RankedValue next = {-kLowestValue, -1};
  for (int i = 0; i < args.used; ++i) {
    next = next_value(values, args.count, next);
    experts.store_if(lane_id() == Ints(0), Ints(i), Ints(next.index));
  }
  block.sync_warp();
  const float largest = outputs.load_one(experts.load_one(0));
  const float divisor = weight_divisor(args, outputs, experts, largest);
  for (int first = 0; first < args.used; first += kWarp) {
    const Ints i = lane_id() + Ints(first);
    const Bools in = i < Ints(args.used);
    const Ints expert = experts.load_if(in, i, 0);
    const Floats raw = raw_weights(args.rule, outputs.load_if(in, expert, 0.0F), largest);
    Floats weight = mul_rn(div_rn(raw, Floats(divisor)), Floats(args.scale));
    if (!args.scales.is_null()) weight = mul_rn(weight, args.scales.load_if(in, expert, 0.0F));
    args.weights.from(static_cast<int64_t>(row) * args.used).store_if(in, i, weight);
  }
}

}  // namespace outrider::simt
