// SPDX-License-Identifier: Apache-2.0
// The language of device kernels. One source is compiled by nvcc for a device and by the C++ compiler for
// this machine, where blocks are emulated (emulator.h).
//
// A warp moves in lockstep: control flow is the same in its 32 lanes. Lanes<T> is a number of each lane: a
// register of a thread on the device, an array here. Plain numbers are the same in all lanes. Lanes differ
// by selection (select) and by masks (load_if, store_if).
//
// Lanes of f32 and f64 have no operators. All arithmetic is by name and rounds once: fma_rn (of f32), mul_rn,
// add_rn, sub_rn, div_rn, sqrt_rn. So no compiler can contract or reorder it, and device and emulation have
// equal bits.
//
// Memory is reached through views that know their size:
// - Weights<T>: numbers that no kernel writes. Only these may be read before wait_for_previous().
// - Rows<T>: numbers that kernels read and write.
// - List<T>: what the host tells a launch: rows, pages, slots.
//   Memory that the host maps is Rows<int>, with publish() and observe(). Warps of a launch that go on with
//   what others have stored are counted by arrive() (arrivals.h).
// - Shared<T>: words of the block's shared memory. Lanes that exchange numbers there are separated by
//   block.sync(), or by block.sync_warp() within a warp.
// copy_async() fills shared memory from a view. Its words are NaN until wait_copies() has returned to the
// lane that ordered them.
//
// Kernels are templates over plain structs of arguments, which are passed by value. They use no standard
// library.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#include "device_kernels/simt/cuda_doubles.cuh"
#else
#include "device_kernels/simt/emulated_block.h"
#include "device_kernels/simt/emulated_doubles.h"
#endif

namespace outrider::simt {

using Floats = Lanes<float>;
using Ints = Lanes<int>;
using Doubles = Lanes<double>;
using Longs = Lanes<uint64_t>;

template <typename T>
using Weights = Global<const T, Kind::kWeights>;
template <typename T>
using Rows = Global<T, Kind::kRows>;
template <typename T>
using List = Global<const T, Kind::kList>;

// The order of f32 sums, as in kernels/simd/sum_chains.h: number i belongs to chain i % kSumChains.
inline constexpr int kSumChains = 16;

// -x, of zeros and NaN, too.
SIMT Floats negated(Floats x) { return from_bits(bits_of(x) ^ Ints(INT32_MIN)); }

// Combines the numbers of `width` neighbouring lanes, which all get the result: lane i is first combined with
// lane i + width / 2. This is the order in which a CPU's vector of that width adds its lanes.
SIMT Floats sum_lanes(Floats x, int width) {
  for (int apart = width / 2; apart > 0; apart /= 2) x = add_rn(x, shuffle_xor(x, apart));
  return x;
}

SIMT Ints sum_lanes(Ints x, int width) {
  for (int apart = width / 2; apart > 0; apart /= 2) x = x + shuffle_xor(x, apart);
  return x;
}

// The sum of the numbers of the lanes before each lane, and of all lanes.
struct LaneSums {
  Ints before, all;
};
SIMT LaneSums lane_sums(Ints x) {
  LaneSums sums = {Ints(0), x};
  for (int apart = 1; apart < kWarp; apart *= 2) {
    const Ints others = shuffle_xor(sums.all, apart);
    sums.before = sums.before + select((lane_id() & Ints(apart)) == Ints(0), Ints(0), others);
    sums.all = sums.all + others;
  }
  return sums;
}

SIMT Floats max_lanes(Floats x, int width) {
  for (int apart = width / 2; apart > 0; apart /= 2) x = max_of(x, shuffle_xor(x, apart));
  return x;
}

}  // namespace outrider::simt
