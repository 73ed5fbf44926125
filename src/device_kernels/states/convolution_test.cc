// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/states/convolution.h"

#include <gtest/gtest.h>

#include "device_kernels/states/state_test_nodes.h"

namespace outrider {
namespace {

constexpr int kConvolved = 70, kStateStride = 400;

// The inputs that a node sees, the last one its own: of its state and of its ancestors.
std::vector<const float*> inputs_of_node(const StateTestNodes& nodes, const TestUpdates& updates,
                                         const Floats& states, int kept, int node) {
  std::vector<const float*> inputs;
  for (int i = 0; i < kept; ++i)
    inputs.push_back(&states[static_cast<size_t>(nodes.of(node, 3) * kStateStride + i * kConvolved)]);
  for (const int ancestor : nodes.paths[static_cast<size_t>(node)])
    inputs.push_back(updates.of(nodes, ancestor));
  return {inputs.end() - kept - 1, inputs.end()};
}

struct ConvolutionCase {
  int taps;
  bool is_gated, has_bias;
  uint64_t seed;
};

void compare_convolution(const ConvolutionCase& one, BitComparison& comparison) {
  const StateTestNodes nodes(one.seed);
  const TestUpdates updates(nodes, one.seed + 1);
  const Floats states = adversarial_floats(StateTestNodes::kStates * kStateStride, one.seed + 3);
  const Floats taps = adversarial_floats(static_cast<size_t>(one.taps * kConvolved), one.seed + 4);
  const Floats bias = adversarial_floats(kConvolved, one.seed + 5);
  Floats y(static_cast<size_t>((one.is_gated ? nodes.rows : nodes.count) * kConvolved), 0.25F), expected = y;
  for (int node = 0; node < nodes.count; ++node) {
    const auto inputs = inputs_of_node(nodes, updates, states, one.taps - 1, node);
    const int row = nodes.of(node, 1);
    if (one.is_gated && row < 0) continue;
    for (int i = 0; i < kConvolved; ++i) {
      float sum = 0.0F;
      for (int tap = 0; tap < one.taps; ++tap)
        sum += taps[static_cast<size_t>(tap * kConvolved + i)] * inputs[static_cast<size_t>(tap)][i];
      const float gate = one.is_gated ? updates.of(nodes, node)[kConvolved + i] : 1.0F;
      const float shift = one.has_bias ? bias[static_cast<size_t>(i)] : 0.0F;
      expected[static_cast<size_t>((one.is_gated ? row : node) * kConvolved + i)] =
          one.is_gated ? gate * (sum + shift) : sum;
    }
  }
  run_kernel(one.is_gated ? KernelName::kConvolveGated : KernelName::kConvolve,
             simt::ConvolveArgs{.inputs = updates.view(nodes),
                                .states = rows_of(states),
                                .taps = weights_of_test(taps),
                                .bias = one.has_bias ? weights_of_test(bias) : simt::Weights<float>{},
                                .y = rows_of(y),
                                .nodes = nodes.count,
                                .dim = kConvolved,
                                .tap_count = one.taps,
                                .state_stride = kStateStride},
             {.blocks = nodes.count, .warps = 3}, one.seed);
  comparison.add(expected, y);
}

TEST(DeviceConvolution, SumsAreOfANodesOwnAncestors) {
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (const int taps : {2, 3, 4}) {
      for (const auto& [is_gated, has_bias] : {std::pair(false, false), {true, false}, {true, true}})
        compare_convolution({taps, is_gated, has_bias, seed}, comparison);
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

TEST(DeviceConvolution, StatesKeepTheLastInputs) {
  BitComparison comparison;
  for (uint64_t seed = 1; comparison.compared() < kLeastOutputs; ++seed) {
    for (const int kept : {1, 3, 5}) {
      const StateTestNodes nodes(seed);
      const TestUpdates updates(nodes, seed + 1);
      Floats states = adversarial_floats(StateTestNodes::kStates * kStateStride, seed + 3), expected = states;
      for (int sequence = 0; sequence < StateTestNodes::kSequences; ++sequence) {
        const int* numbers = &nodes.sequences[static_cast<size_t>(sequence * simt::StateSequences::kNumbers)];
        for (int i = 0; i < numbers[2]; ++i) {
          float* state = &expected[static_cast<size_t>(numbers[3] * kStateStride)];
          std::copy(state + kConvolved, state + kept * kConvolved, state);
          std::copy_n(updates.of(nodes, numbers[0] + i), kConvolved, state + (kept - 1) * kConvolved);
        }
      }
      run_kernel(KernelName::kPushInputs,
                 simt::PushInputsArgs{.inputs = updates.view(nodes),
                                      .sequences = nodes.sequence_view(),
                                      .states = rows_of(states),
                                      .sequence_count = StateTestNodes::kSequences,
                                      .dim = kConvolved,
                                      .kept = kept,
                                      .state_stride = kStateStride},
                 {.blocks = 3, .warps = 2}, seed);
      comparison.add(expected, states);
    }
  }
  EXPECT_EQ(comparison.differing(), 0);
}

}  // namespace
}  // namespace outrider
