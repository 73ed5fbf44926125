// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/experts/expert_routing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/portable_math.h"

namespace outrider {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// Puts the indices of the `count` largest values first, best first.
void rank(std::span<const float> values, int64_t count, std::span<int32_t> indices) {
  std::iota(indices.begin(), indices.end(), 0);
  std::partial_sort(indices.begin(), indices.begin() + count, indices.end(), [&](int32_t a, int32_t b) {
    const float left = values[static_cast<size_t>(a)], right = values[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
  });
}

// The values that the choice goes by; NaN becomes the lowest.
void choice_values(const RouterRow& row, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const float output = row.outputs[i];
    const float value = row.choice_bias.empty() ? output : portable_sigmoid(output) + row.choice_bias[i];
    values[i] = std::isnan(value) ? kLowest : value;
  }
}

// Makes the values of all experts outside of the best groups the lowest.
void keep_best_groups(const ExpertTraits& traits, std::span<float> values) {
  const auto groups = static_cast<size_t>(traits.groups);
  const size_t size = values.size() / groups;
  std::array<float, kMaxExperts> sums;
  std::array<int32_t, kMaxExperts> order;
  for (size_t group = 0; group < groups; ++group) {
    float best = kLowest, second = kLowest;
    for (const float value : values.subspan(group * size, size)) {
      second = std::max(second, std::min(best, value));
      best = std::max(best, value);
    }
    sums[group] = traits.ranks_groups_by_best ? best : best + second;
  }
  rank(std::span(sums).first(groups), traits.used_groups, std::span(order).first(groups));
  for (size_t i = static_cast<size_t>(traits.used_groups); i < groups; ++i)
    std::ranges::fill(values.subspan(static_cast<size_t>(order[i]) * size, size), kLowest);
}

// The weight of an output before it is divided by the sum of some.
float raw_weight(RouterWeights rule, float output, float largest) {
  const bool is_softmax = rule == RouterWeights::kSoftmax || rule == RouterWeights::kSoftmaxOfChosen;
  return is_softmax ? portable_exp(output - largest) : portable_sigmoid(output);
}

float weight_divisor(const RouterRow& row, std::span<const int32_t> chosen, float largest) {
  const RouterWeights rule = row.traits.weights;
  if (rule == RouterWeights::kSigmoid) return 1;
  float sum = 0;
  if (rule == RouterWeights::kSoftmax) {
    for (int64_t i = 0; i < row.traits.count; ++i) sum += raw_weight(rule, row.outputs[i], largest);
  } else {
    for (const int32_t expert : chosen) sum += raw_weight(rule, row.outputs[expert], largest);
  }
  return sum;
}

}  // namespace

void choose_experts(const RouterRow& row, ExpertChoice* choices) {
  const ExpertTraits& traits = row.traits;
  const auto count = static_cast<size_t>(traits.count);
  std::array<float, kMaxExperts> values;
  std::array<int32_t, kMaxExperts> order;
  choice_values(row, std::span(values).first(count));
  if (traits.groups > 1) keep_best_groups(traits, std::span(values).first(count));
  rank(std::span(values).first(count), traits.used, std::span(order).first(count));
  const std::span<const int32_t> chosen = std::span(order).first(static_cast<size_t>(traits.used));
  const float largest = row.outputs[chosen.front()];
  const float divisor = weight_divisor(row, chosen, largest);
  const auto scale = static_cast<float>(traits.scale);
  for (const int32_t expert : chosen) {
    const float weight = raw_weight(traits.weights, row.outputs[expert], largest) / divisor * scale;
    *choices++ = {.expert = expert, .weight = weight};
  }
}

void ExpertGroups::reserve(int64_t choices, int64_t experts) {
  groups_.reserve(static_cast<size_t>(experts));
  row_of_place_.reserve(static_cast<size_t>(choices));
  place_of_choice_.reserve(static_cast<size_t>(choices));
  next_.reserve(static_cast<size_t>(experts));
}

void ExpertGroups::sort(std::span<const ExpertChoice> choices, int64_t used, int64_t experts) {
  next_.assign(static_cast<size_t>(experts), 0);
  for (const ExpertChoice& choice : choices) ++next_[static_cast<size_t>(choice.expert)];
  groups_.clear();
  int32_t place = 0;
  for (int32_t expert = 0; expert < experts; ++expert) {
    const int32_t rows = std::exchange(next_[static_cast<size_t>(expert)], place);
    if (rows > 0) groups_.push_back({.expert = expert, .begin = place, .rows = rows});
    place += rows;
  }
  row_of_place_.resize(choices.size());
  place_of_choice_.resize(choices.size());
  for (size_t i = 0; i < choices.size(); ++i) {
    const int32_t own = next_[static_cast<size_t>(choices[i].expert)]++;
    place_of_choice_[i] = own;
    row_of_place_[static_cast<size_t>(own)] = static_cast<int32_t>(static_cast<int64_t>(i) / used);
  }
}

}  // namespace outrider
