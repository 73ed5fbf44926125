// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/blocks/device_state_lists.h"
#include "models/blocks/short_convolution/convolution_ops.h"

namespace outrider {

// convolve() on a device, with its bits.
void convolve(DeviceOps& device, const ConvolutionWeights& weights, const DeviceLayerStates& states,
              const DeviceStateRows& rows);

}  // namespace outrider
