// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "device/cuda_device.h"
#include "formats/model_file.h"
#include "kernels/kernel_table.h"
#include "open/device_placement.h"
#include "outrider/engine.h"
#include "outrider/result.h"

namespace outrider {

// A device for the networks of an engine, never kAuto.
struct DeviceChoice {
  ComputeDevice device = ComputeDevice::kCpu;
  std::string reason = {};  // why it is not the GPU of this machine; empty: it is, or nobody expects it
};

// The device that the options name, or the one that kAuto means for these files.
DeviceChoice choose_device(const EngineOptions& options, const ModelFile& target);

// Means kAuto on a machine with this GPU. It is taken if its capability is among the checked ones, on which
// tools/device_check.sh has passed.
DeviceChoice choose_gpu(const EngineOptions& options, const ModelFile& target, const FoundCuda& gpu,
                        std::span<const ComputeCapability> checked);

// Puts the choice into the options. The first reason that the program finds is logged.
void take_device(EngineOptions& options, const ModelFile& target);

// The bytes that are free in the memory of the device; nullopt: it uses this machine's, or it is not there.
std::optional<int64_t> free_device_bytes(ComputeDevice device);

// The placement that the options lead to on the GPU of this machine; on any GPU where there is none, or none
// of the model fits.
Placement expected_placement(const EngineOptions& options, const ModelFile& target);

// "auto", "cpu", "cuda" or "emulated"
std::string_view device_name(ComputeDevice device);

// The name of its BackendKind; empty: the kind that is there for all.
std::string_view backend_name(ComputeDevice device);

// The kernel table that the options name, or the fastest that the device has the bits of.
Result<const KernelTable*> kernels_of(const EngineOptions& options);

}  // namespace outrider
