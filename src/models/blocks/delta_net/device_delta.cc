// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/delta_net/device_delta.h"

namespace outrider {

static_assert(simt::kDeltaTileColumns == DeltaArgs::kTileColumns);

DeviceDelta::DeviceDelta(const DeltaTraits& traits, float epsilon, DeviceOps& ops)
    : traits_(traits),
      epsilon_(epsilon),
      ops_(ops),
      query_scale_(query_scale(traits)),
      key_scale_(key_scale(traits)),
      convolved_(ops.device()),
      rates_(ops.device()),
      slots_(ops.device()) {}

void DeviceDelta::convolve(const DeltaWeights& net, const DeviceLayerStates& states,
                           const DeviceStateRows& rows) {
  const int64_t dim = traits_.conv_size(), nodes = states.node_count;
  const FloatAddress convolved = ops_.numbers_in(convolved_, nodes * dim);
  ops_.launch_rows(KernelName::kConvolve,
                   simt::ConvolveArgs{.inputs = states.inputs(rows),
                                      .states = {states.states.data, states.states.count},
                                      .taps = ops_.weights().numbers(net.taps),
                                      .bias = {},
                                      .y = rows_at<float>(convolved, nodes * dim),
                                      .nodes = states.node_count,
                                      .dim = static_cast<int>(dim),
                                      .tap_count = static_cast<int>(traits_.taps),
                                      .state_stride = states.state_stride},
                   nodes, dim);
  ops_.activate({.x = convolved,
                 .y = convolved,
                 .rows = nodes,
                 .dim = dim,
                 .activation = Activation::kSilu,
                 .is_gated = false});
  normalize_heads(convolved, query_scale_, nodes);
  normalize_heads(convolved + traits_.key_heads * traits_.key_dim, key_scale_, nodes);
}

void DeviceDelta::normalize_heads(FloatAddress heads, std::span<const float> scale, int64_t nodes) {
  const auto stride = static_cast<int>(traits_.conv_size());
  ops_.normalize({.x = heads,
                  .delta = {},
                  .y = heads,
                  .weight = scale,
                  .of = {.rows = static_cast<int>(nodes),
                         .parts = static_cast<int>(traits_.key_heads),
                         .dim = static_cast<int>(traits_.key_dim),
                         .x_stride = stride,
                         .y_stride = stride,
                         .weight_stride = 0,
                         .epsilon = key_epsilon(traits_)}});
}

void DeviceDelta::make_rates(const DeltaWeights& net, const DeviceLayerStates& states,
                             const DeviceStateRows& rows) {
  const int64_t numbers = int64_t{states.node_count} * 2 * traits_.value_heads;
  ops_.launch_rows(KernelName::kDeltaRates,
                   simt::DeltaRatesArgs{.updates = states.inputs(rows),
                                        .time_bias = ops_.weights().numbers(net.time_bias),
                                        .decay = ops_.weights().numbers(net.decay),
                                        .rates = rows_at<float>(ops_.numbers_in(rates_, numbers), numbers),
                                        .nodes = states.node_count,
                                        .heads = static_cast<int>(traits_.value_heads),
                                        .first = static_cast<int>(traits_.conv_size())},
                   states.node_count, traits_.value_heads);
}

void DeviceDelta::follow_nodes(const DeviceLayerStates& states, const DeviceStateRows& rows) {
  const int64_t matrices = traits_.value_heads * traits_.key_dim * traits_.value_dim;
  const int64_t before = (traits_.taps - 1) * traits_.conv_size();  // inputs of the convolution
  const int64_t slots = states.slot_count * matrices;
  ops_.launch_rows(KernelName::kDeltaSteps,
                   simt::DeltaStepsArgs{
                       .nodes = states.nodes,
                       .sequences = states.sequences,
                       .order = states.order,
                       .convolved = rows_at<const float>(FloatAddress(convolved_.address()),
                                                         states.node_count * traits_.conv_size()),
                       .rates = rows_at<const float>(FloatAddress(rates_.address()),
                                                     int64_t{states.node_count} * 2 * traits_.value_heads),
                       .states = {states.states.data + before, states.states.count - before},
                       .slots = rows_at<float>(ops_.numbers_in(slots_, slots), slots),
                       .y = rows_at<float>(rows.y, rows.count * traits_.value_size()),
                       .sequence_count = states.sequence_count,
                       .key_heads = static_cast<int>(traits_.key_heads),
                       .value_heads = static_cast<int>(traits_.value_heads),
                       .key_dim = static_cast<int>(traits_.key_dim),
                       .value_dim = static_cast<int>(traits_.value_dim),
                       .state_stride = states.state_stride,
                       .interleaves_keys = traits_.interleaves_keys ? 1 : 0},
                   states.sequence_count * traits_.value_heads, traits_.value_dim);
}

void DeviceDelta::gate(const DeltaWeights& net, const DeviceStateRows& rows) {
  const int64_t size = traits_.value_size();
  ops_.normalize({.x = rows.y,
                  .delta = {},
                  .y = rows.y,
                  .weight = net.norm,
                  .of = {.rows = static_cast<int>(rows.count),
                         .parts = static_cast<int>(traits_.value_heads),
                         .dim = static_cast<int>(traits_.value_dim),
                         .x_stride = static_cast<int>(size),
                         .y_stride = static_cast<int>(size),
                         .weight_stride = 0,
                         .epsilon = epsilon_}});
  ops_.run(KernelName::kMultiplySilu, {.x = rows.y,
                                       .y = rows.projected + traits_.update_size(),
                                       .rows = rows.count,
                                       .dim = size,
                                       .x_stride = size,
                                       .y_stride = rows.width});
}

void DeviceDelta::run(const DeltaWeights& net, const DeviceLayerStates& states, const DeviceStateRows& rows) {
  keep_updates(ops_, states, rows, traits_.update_size());
  convolve(net, states, rows);
  make_rates(net, states, rows);
  follow_nodes(states, rows);
  gate(net, rows);
  push_inputs(ops_, states, rows, traits_.taps - 1, traits_.conv_size());
}

}  // namespace outrider
