// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/short_convolution/device_convolution.h"

namespace outrider {

void convolve(DeviceOps& device, const ConvolutionWeights& weights, const DeviceLayerStates& states,
              const DeviceStateRows& rows) {
  const int64_t size = weights.size, kept = weights.tap_count() - 1;
  device.run(KernelName::kMultiplyRows, {.x = rows.projected,  // b becomes b * x
                                         .y = rows.projected + 2 * size,
                                         .rows = rows.count,
                                         .dim = size,
                                         .x_stride = rows.width,
                                         .y_stride = rows.width});
  keep_updates(device, states, rows, size);
  device.launch_rows(KernelName::kConvolveGated,
                     simt::ConvolveArgs{.inputs = states.inputs(rows),
                                        .states = {states.states.data, states.states.count},
                                        .taps = device.weights().numbers(weights.taps),
                                        .bias = device.weights().numbers(weights.bias),
                                        .y = rows_at<float>(rows.y, rows.count * size),
                                        .nodes = states.node_count,
                                        .dim = static_cast<int>(size),
                                        .tap_count = static_cast<int>(kept + 1),
                                        .state_stride = states.state_stride},
                     states.node_count, size);
  push_inputs(device, states, rows, kept, size);
}

}  // namespace outrider
