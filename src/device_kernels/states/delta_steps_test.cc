// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/states/delta_steps.h"

#include <gtest/gtest.h>

#include "base/portable_math.h"
#include "device_kernels/states/state_test_nodes.h"

namespace outrider {
namespace {

TEST(DeviceDelta, RatesFollowTheirUpdates) {
  constexpr int kHeads = 35, kFirst = 40;
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    const StateTestNodes nodes(seed);
    const TestUpdates updates(nodes, seed + 1);
    const Floats bias = adversarial_floats(kHeads, seed + 3), decay = adversarial_floats(kHeads, seed + 4);
    Floats rates(static_cast<size_t>(nodes.count * 2 * kHeads)), expected;
    for (int node = 0; node < nodes.count; ++node) {
      const float* update = updates.of(nodes, node) + kFirst;
      for (int head = 0; head < kHeads; ++head) expected.push_back(portable_sigmoid(update[head]));
      for (int head = 0; head < kHeads; ++head) {
        const float x = update[kHeads + head] + bias[static_cast<size_t>(head)];
        const double power = portable_exp(static_cast<double>(x));
        const float steps = x > 20 ? x : static_cast<float>(portable_log1p(power));
        expected.push_back(portable_exp(decay[static_cast<size_t>(head)] * steps));
      }
    }
    run_kernel(KernelName::kDeltaRates,
               simt::DeltaRatesArgs{.updates = updates.view(nodes),
                                    .time_bias = weights_of_test(bias),
                                    .decay = weights_of_test(decay),
                                    .rates = rows_of(rates),
                                    .nodes = nodes.count,
                                    .heads = kHeads,
                                    .first = kFirst},
               {.blocks = nodes.count, .warps = 2}, seed);
    comparison.add(expected, rates);
  }
  EXPECT_EQ(comparison.differing(), 0);
}

// A layer whose states begin after some other numbers.
struct DeltaCase {
  int key_heads, value_heads, key_dim, value_dim;
  bool interleaves_keys;
  uint64_t seed;

  int values() const { return value_heads * value_dim; }
  int width() const { return 2 * key_heads * key_dim + values(); }
  int matrix() const { return key_dim * value_dim; }
  int state_stride() const { return value_heads * matrix() + 7; }
};

struct DeltaNumbers {
  Floats convolved, rates, states, slots, y;

  DeltaNumbers(const DeltaCase& one, const StateTestNodes& nodes)
      : convolved(random_floats(static_cast<size_t>(nodes.count * one.width()), one.seed + 1)),
        rates(random_floats(static_cast<size_t>(nodes.count * 2 * one.value_heads), one.seed + 2)),
        states(
            random_floats(static_cast<size_t>(StateTestNodes::kStates * one.state_stride()), one.seed + 3)),
        slots(static_cast<size_t>(nodes.slots * one.value_heads * one.matrix()), std::nanf("")),
        y(static_cast<size_t>(nodes.rows * one.values()), std::nanf("")) {}
};

// The steps of one head by a table, in the order of the nodes.
void follow_with_table(const KernelTable& table, const DeltaCase& one, const StateTestNodes& nodes, int head,
                       DeltaNumbers& numbers) {
  const int key = one.interleaves_keys ? head % one.key_heads : head / (one.value_heads / one.key_heads);
  const auto place = [&](int node, int slot) {
    const int state = nodes.of(node, 3) * one.state_stride() + head * one.matrix();
    return slot < 0 ? &numbers.states[static_cast<size_t>(state)]
                    : &numbers.slots[static_cast<size_t>((slot * one.value_heads + head) * one.matrix())];
  };
  for (int node = 0; node < nodes.count; ++node) {
    const float* convolved = &numbers.convolved[static_cast<size_t>(node * one.width())];
    const float* rates = &numbers.rates[static_cast<size_t>(node * 2 * one.value_heads)];
    const int row = nodes.of(node, 1);
    const DeltaArgs args{
        .state = place(node, nodes.of(node, 4)),
        .new_state = place(node, nodes.of(node, 5)),
        .y = row < 0 ? nullptr : &numbers.y[static_cast<size_t>(row * one.values() + head * one.value_dim)],
        .q = convolved + key * one.key_dim,
        .k = convolved + (one.key_heads + key) * one.key_dim,
        .v = convolved + 2 * one.key_heads * one.key_dim + head * one.value_dim,
        .decay = rates[one.value_heads + head],
        .rate = rates[head],
        .key_dim = one.key_dim,
        .value_dim = one.value_dim};
    table.delta_steps(&args, 1);
  }
}

void compare_delta(const KernelTable& table, const DeltaCase& one, BitComparison& comparison) {
  const StateTestNodes nodes(one.seed);
  DeltaNumbers found(one, nodes), expected = found;
  for (int head = 0; head < one.value_heads; ++head) follow_with_table(table, one, nodes, head, expected);
  const int items = StateTestNodes::kSequences * one.value_heads * ((one.value_dim + 31) / 32);
  run_kernel(KernelName::kDeltaSteps,
             simt::DeltaStepsArgs{.nodes = nodes.view(),
                                  .sequences = nodes.sequence_view(),
                                  .order = {nodes.order.data(), std::ssize(nodes.order)},
                                  .convolved = rows_of(std::as_const(found.convolved)),
                                  .rates = rows_of(std::as_const(found.rates)),
                                  .states = rows_of(found.states),
                                  .slots = rows_of(found.slots),
                                  .y = rows_of(found.y),
                                  .sequence_count = StateTestNodes::kSequences,
                                  .key_heads = one.key_heads,
                                  .value_heads = one.value_heads,
                                  .key_dim = one.key_dim,
                                  .value_dim = one.value_dim,
                                  .state_stride = one.state_stride(),
                                  .interleaves_keys = one.interleaves_keys ? 1 : 0},
             {.blocks = (items + 2) / 3, .warps = 3}, one.seed);
  comparison.add(expected.y, found.y);
  comparison.add(expected.states, found.states);
  comparison.add(expected.slots, found.slots);
}

TEST(DeviceDelta, StepsEqualTheTables) {
  OUTRIDER_REQUIRE_TABLES();
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (const KernelTable* table : compared_tables()) {
      compare_delta(*table, {2, 4, 12, 16, false, seed}, comparison);
      compare_delta(*table, {2, 4, 12, 16, true, seed}, comparison);
      compare_delta(*table, {1, 1, 20, 130, false, seed}, comparison);
      compare_delta(*table, {1, 2, 32, 64, false, seed}, comparison);
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

}  // namespace
}  // namespace outrider
