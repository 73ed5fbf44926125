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

  DeviceChoices(const ExpertTraits& traits, const std::vector<float>& outputs, const std::vector<float>& bias,
                int rows, uint64_t seed)
      : experts(static_cast<size_t>(rows * traits.used)), weights(experts.size()) {
    std::vector<float> values(outputs.size()), sums(static_cast<size_t>(rows * traits.groups));
    const simt::ChooseExpertsArgs args{
        .outputs = rows_of(outputs),
        .choice_bias = bias.empty() ? simt::Weights<float>{} : weights_of_test(bias),
        .scales = {},
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

// The lists of a device keep every choice at a place of its expert's tiles.
void expect_places(int rows, int used, int experts, uint64_t seed) {
  SCOPED_TRACE(std::to_string(rows) + " rows, " + std::to_string(used) + " of " + std::to_string(experts));
  std::mt19937_64 engine(seed);
  const int choices = rows * used, tile_count = (choices + 7 * std::min(choices, experts)) / 8;
  std::vector<int> chosen, counts(static_cast<size_t>(experts)), tiles(static_cast<size_t>(tile_count), 77);
  std::vector<int> place_rows(static_cast<size_t>(tile_count * 8), 77), places(static_cast<size_t>(choices));
  std::vector<float> place_weights(place_rows.size());
  for (int i = 0; i < choices; ++i)
    chosen.push_back(
        static_cast<int>(engine() % static_cast<uint64_t>(seed % 2 == 0 ? experts : (experts + 3) / 4)));
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
