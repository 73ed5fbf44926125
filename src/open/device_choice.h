// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "device/cuda_device.h"
#include "formats/model_file.h"
#include "kernels/kernel_table.h"
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

// "auto", "cpu", "cuda" or "emulated"
std::string_view device_name(ComputeDevice device);

// The name of its BackendKind; empty: the kind that is there for all.
std::string_view backend_name(ComputeDevice device);

// The kernel table that the options name, or the fastest that the device has the bits of.
Result<const KernelTable*> kernels_of(const EngineOptions& options);

// The bytes that a target needs in the memory of a device: the products' weights, and the keys and values of
// the longest sequence.
struct DeviceNeeds {
  int64_t weights = 0;
  int64_t cache = 0;
  int64_t context = 0;  // tokens

  int64_t bytes() const { return weights + cache; }
};
DeviceNeeds device_needs(const EngineOptions& options, const ModelFile& target);

}  // namespace outrider
