// SPDX-License-Identifier: Apache-2.0
// Runs the blocks of a launch on this thread, one after the other. The warps of a block are fibers that take
// turns at barriers; a seed decides the order of blocks, and the order of warps anew after each barrier.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "device/device.h"
#include "device_kernels/simt/fault.h"

namespace outrider::simt {

struct Block;
// A kernel, compiled for this machine.
using EmulatedKernel = void (*)(const Block& block, const void* args);

struct EmulationReport {
  std::array<int64_t, kFaults> faults = {};
  std::string first = {};  // fault, with its place

  int64_t count(Fault fault) const { return faults[static_cast<size_t>(fault)]; }
  bool is_clean() const { return first.empty(); }
};

// Shared memory is NaN at the beginning of a block.
EmulationReport emulate(EmulatedKernel kernel, const void* args, const LaunchShape& shape,
                        const EmulationOptions& options);

}  // namespace outrider::simt
