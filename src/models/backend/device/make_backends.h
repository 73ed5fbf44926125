// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "device/cuda_device.h"
#include "device/device.h"
#include "models/backend/layer_backend.h"
#include "models/decoder_weights.h"

namespace outrider {

// The backend of a network, or of a rank's part of it, on a device. Errors: weights that are not all in
// memory or do not fit into the device's, experts of several types, a kernel table with other arithmetic than
// devices have.
Result<std::unique_ptr<LayerBackend>> make_device_backend(Device& device, const ModelConfig& config,
                                                          const ModelOptions& options,
                                                          const LoadWeights& load);

// The fastest table of this machine with the arithmetic of devices. Error: it has none.
Result<const KernelTable*> select_device_kernels();

// GPU `number` of this machine, opened once.
const FoundCuda& found_cuda(int number = 0);

// These make the backend of a BackendKind, on the device of that kind that the options number: all networks
// of a rank are on one device. Error: there is no usable GPU of that number.
Result<std::unique_ptr<LayerBackend>> make_emulated_backend(const ModelConfig& config,
                                                            const ModelOptions& options,
                                                            const LoadWeights& load);
Result<std::unique_ptr<LayerBackend>> make_cuda_backend(const ModelConfig& config,
                                                        const ModelOptions& options, const LoadWeights& load);

}  // namespace outrider
