// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

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

// The parts of make_device_backend(), for backends that keep some weights on this machine. The third function
// turns std::bad_alloc of `make` into an error.
Status check_device_options(const Device& device, const ModelOptions& options);
Status check_device_weights(const Device& device, const ModelConfig& config, const DecoderWeights& weights,
                            const std::unordered_set<const void*>& kept);
Result<std::unique_ptr<LayerBackend>> on_device(const Device& device,
                                                const std::function<std::unique_ptr<LayerBackend>()>& make);

// The table of this machine beside a device, by its name or the profile's; empty: the fastest one with the
// arithmetic of devices. The profile has the name of the table. Error: this machine does not have it.
Result<const KernelTable*> select_device_kernels(std::string_view name = {});

// The devices of this machine by their numbers, each opened once.
const FoundCuda& found_cuda(int number = 0);
Device& emulated_device(int number);

}  // namespace outrider
