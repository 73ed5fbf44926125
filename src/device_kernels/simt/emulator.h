// SPDX-License-Identifier: Apache-2.0
// Runs the blocks of a launch on this thread, one after the other. The warps of a block are fibers that take
// turns at barriers; a seed decides the order of blocks, and the order of warps anew after each barrier.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "device_kernels/simt/fault.h"

namespace outrider::simt {

struct Block;
// A kernel, compiled for this machine.
using EmulatedKernel = void (*)(const Block& block, const void* args);

struct LaunchShape {
  int blocks = 1;
  int warps = 1;  // of a block
  int shared_bytes = 0;
};

struct EmulationOptions {
  uint64_t seed = 0;
  bool checks_races = false;  // takes several times as long
  // Mistakes for tests, made in every warp: this barrier of the block is none (counted from 0), or waits for
  // copies or for previous launches do nothing.
  int skipped_barrier = -1;
  bool skips_copy_waits = false;
  bool skips_wait_for_previous = false;
};

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
