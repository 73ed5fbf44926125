// SPDX-License-Identifier: Apache-2.0
// The choice of experts on a device equals the choice on this machine.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <utility>

#include "device_kernels/kernel_comparison.h"
#include "models/blocks/experts/expert_routing.h"

namespace outrider {
namespace {

// Outputs with many ties, and some that are no numbers.
std::vector<float> router_outputs(int64_t count, std::mt19937_64& engine) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> outputs = adversarial_floats(static_cast<size_t>(count), engine());
  for (float& output : outputs) {
    const uint64_t draw = engine() % 8;
    if (draw < 3) output = static_cast<float>(engine() % 3) - 1.0F;
    if (draw == 3 && engine() % 4 == 0) output = engine() % 2 == 0 ? std::nanf("") : -kInfinity;
  }
  return outputs;
}

// The lists that choose_experts() of a device makes.
struct DeviceChoices {
  std::vector<int> experts;
  std::vector<float> weights;

  // slots: of the rows, see ChooseExpertsArgs; empty: all rows choose
  DeviceChoices(const ExpertTraits& traits, const std::vector<float>& outputs, const std::vector<float>& bias,
                int rows, uint64_t seed, const std::vector<int>& slots = {})
      : experts(static_cast<size_t>(rows * traits.used)), weights(experts.size()) {
    std::vector<float> values(outputs.size()), sums(static_cast<size_t>(rows * traits.groups));
    const simt::ChooseExpertsArgs args{
        .outputs = rows_of(outputs),
        .choice_bias = bias.empty() ? simt::Weights<float>{} : weights_of_test(bias),
        .scales = {},
        .slots = {slots.empty() ? nullptr : slots.data(), std::ssize(slots)},
        .values = rows_of(values),
        .sums = rows_of(sums),
        .experts = rows_of(experts),
        .weights = rows_of(weights),
        .rows = rows,
        .count = static_cast<int>(traits.count),
        .used = static_cast<int>(traits.used),
        .groups = static_cast<int>(traits.groups),
        .used_groups = static_cast<int>(traits.used_groups),
        .ranks_groups_by_best = traits.ranks_groups_by_best ? 1 : 0,
        .rule = static_cast<simt::RouterRule>(traits.weights),
        .scale = static_cast<float>(traits.scale)};
    run_kernel(KernelName::kChooseExperts, args, {.blocks = (rows + 1) / 2, .warps = 2}, seed);
  }
};

void compare_choices(const ExpertTraits& traits, uint64_t seed, BitComparison& comparison) {
  constexpr int kRows = 9;
  std::mt19937_64 engine(seed);
  std::vector<float> outputs, bias;
  for (int row = 0; row < kRows; ++row) {
    const auto more = router_outputs(traits.count, engine);
    outputs.insert(outputs.end(), more.begin(), more.end());
  }
  for (int64_t i = 0; i < traits.count && traits.choice_bias; ++i)
    bias.push_back(static_cast<float>(engine() % 3) * 0.5F);
  const DeviceChoices found(traits, outputs, bias, kRows, seed);
  std::vector<ExpertChoice> expected(found.experts.size());
  std::vector<float> weights;
  for (int row = 0; row < kRows; ++row) {
    choose_experts({traits, outputs.data() + row * traits.count, bias}, expected.data() + row * traits.used);
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(found.experts[i], expected[i].expert) << "choice " << i << " of seed " << seed;
    weights.push_back(expected[i].weight);
  }
  comparison.add(weights, found.weights);
}

TEST(DeviceExperts, ChoicesAndWeightsAreThoseOfThisMachine) {
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs && !testing::Test::HasFailure(); ++seed) {
    for (int rule = 0; rule < 4; ++rule) {
      const auto weights = static_cast<RouterWeights>(rule);
      compare_choices({.count = 6, .used = 6, .weights = weights}, seed, comparison);
      compare_choices({.count = 64, .used = 8, .weights = weights, .scale = 2.5}, seed, comparison);
      compare_choices({.count = 200, .used = 40, .weights = weights}, seed, comparison);
      compare_choices(
          {.count = 80, .used = 6, .weights = weights, .choice_bias = true, .groups = 8, .used_groups = 3},
          seed, comparison);
      compare_choices({.count = 96,
                       .used = 4,
                       .weights = weights,
                       .ranks_groups_by_best = true,
                       .groups = 48,
                       .used_groups = 7},
                      seed, comparison);
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

// Rows of a list that nobody uses choose no expert, and other rows choose what they would without them.
TEST(DeviceExperts, UnusedRowsChooseNone) {
  const ExpertTraits traits{.count = 64, .used = 8, .weights = RouterWeights::kSoftmaxOfChosen};
  constexpr int kRows = 5, kUsed = 8;
  std::mt19937_64 engine(1);
  const std::vector<float> outputs = router_outputs(kRows * traits.count, engine);
  const DeviceChoices all(traits, outputs, {}, kRows, 2);
  const DeviceChoices some(traits, outputs, {}, kRows, 3, {7, -1, 0, -1, 5});
  for (size_t i = 0; i < all.experts.size(); ++i) {
    const bool is_used = i / kUsed % 2 == 0;
    EXPECT_EQ(some.experts[i], is_used ? all.experts[i] : -1) << i;
    if (is_used) {
      EXPECT_EQ(some.weights[i], all.weights[i]) << i;
    }
  }
}

TEST(DeviceExperts, RowsWithoutPlacesAreZeros) {
  constexpr int kDim = 40;
  const Floats x = random_floats(4 * kDim, 1), weights = {0.5F, 2.0F, 0.0F, 0.0F};
  const std::vector<int> places = {3, 1, -1, -1};
  Floats y(2 * kDim, std::nanf(""));
  run_kernel(KernelName::kWeightedSums,
             simt::WeightedSumsArgs{.x = rows_of(x),
                                    .places = rows_of(places),
                                    .weights = rows_of(weights),
                                    .y = rows_of(y),
                                    .rows = 2,
                                    .used = 2,
                                    .dim = kDim},
             {.blocks = 4, .warps = 1}, 1);
  for (size_t i = 0; i < kDim; ++i) {
    EXPECT_EQ(y[i], 0.5F * x[3 * kDim + i] + 2.0F * x[kDim + i]);
    EXPECT_EQ(y[kDim + i], 0.0F);
  }
}

// The lists of a device keep every choice at a place of its expert's tiles.
void expect_places(int rows, int used, int experts, uint64_t seed) {
  SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(used) + " of " + std::to_string(experts));
  std::mt19937_64 engine(seed);
  const int choices = rows * used, tile_count = (choices + 7 * std::min(choices, experts)) / 8;
  std::vector<int> chosen, counts(static_cast<size_t>(experts)), tiles(static_cast<size_t>(tile_count), 77);
  std::vector<int> place_rows(static_cast<size_t>(tile_count * 8), 77), places(static_cast<size_t>(choices));
  std::vector<float> place_weights(place_rows.size());
  for (int i = 0; i < choices; ++i) {
    const bool is_unused = seed % 3 == 0 && i / used % 3 == 1;  // as the whole row
    const auto most = static_cast<uint64_t>(seed % 2 == 0 ? experts : (experts + 3) / 4);
    chosen.push_back(is_unused ? -1 : static_cast<int>(engine() % most));
  }
  const std::vector<float> weights = random_floats(static_cast<size_t>(choices), seed);
  const simt::GroupChoicesArgs args{.experts = rows_of(std::as_const(chosen)),
                                    .weights = rows_of(weights),
                                    .counts = rows_of(counts),
                                    .tiles = rows_of(tiles),
                                    .rows = rows_of(place_rows),
                                    .place_weights = rows_of(place_weights),
                                    .places = rows_of(places),
                                    .choices = choices,
                                    .used = used,
                                    .expert_count = experts,
                                    .tile_count = tile_count};
  run_kernel(KernelName::kCountChoices, args, {.blocks = experts, .warps = 1}, seed);
  run_kernel(KernelName::kPlaceChoices, args, {.blocks = experts + 1, .warps = 1}, seed);
  std::map<int, int> choice_of;
  for (int i = 0; i < choices; ++i) {
    if (chosen[static_cast<size_t>(i)] < 0) {
      EXPECT_EQ(places[static_cast<size_t>(i)], -1);
      continue;
    }
    const auto place = static_cast<size_t>(places[static_cast<size_t>(i)]);
    EXPECT_TRUE(choice_of.emplace(static_cast<int>(place), i).second);
    EXPECT_EQ(tiles[place / 8], chosen[static_cast<size_t>(i)]);
    EXPECT_EQ(place_rows[place], i / used);
    EXPECT_EQ(place_weights[place], weights[static_cast<size_t>(i)]);
  }
  for (size_t place = 0; place < place_rows.size(); ++place) {
    EXPECT_EQ(place_rows[place] < 0, !choice_of.contains(static_cast<int>(place))) << place;
  }
  for (size_t tile = 0; tile < tiles.size(); ++tile) {
    const bool is_used = choice_of.lower_bound(static_cast<int>(tile * 8)) !=
                         choice_of.lower_bound(static_cast<int>(tile * 8 + 8));
    EXPECT_EQ(tiles[tile] >= 0, is_used) << tile;
  }
}

TEST(DeviceExperts, EveryChoiceHasAPlace) {
  for (uint64_t seed = 1; seed < 12; ++seed) {
    expect_places(1, 1, 1, seed);
    expect_places(1, 4, 60, seed);
    expect_places(9, 2, 4, seed);
    expect_places(33, 8, 128, seed);
  }
}

}  // namespace
}  // namespace outrider
