// SPDX-License-Identifier: Apache-2.0
// What an instruction-set folder delivers: loops over a worker's share, on plain data. Those folders call no
// inline function of a shared header, because the linker could keep the copy compiled with their flags for
// everybody; tools/check_isa_symbols.py proves it. Sharing work, packing and allocation stay outside.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"

namespace outrider {

// Packed weights interleave this many output features, so that one vector holds one input of each.
inline constexpr int64_t kStripFeatures = 16;

struct LinearShare {
  DType dtype = DType::kF32;
  const std::byte* weights = nullptr;  // [n, k], packed by the same table
  int64_t n = 0;
  int64_t k = 0;
  const float* x = nullptr;  // [rows, k]
  float* y = nullptr;        // [rows, n]
  int64_t rows = 0;
  Range features;  // begins at a whole strip
};

// Items are (key/value head, row, query head of the group) triples, flattened in this order.
struct AttentionShare {
  const AttentionArgs* args = nullptr;
  const AttentionRow* rows = nullptr;
  int64_t row_count = 0;
  Range items;
};

struct IsaOps {
  void (*linear)(const LinearShare& share);
  void (*attention)(const AttentionShare& share);
  void (*rms_norm)(const NormArgs& args, Range rows);
  void (*rope)(const RopeArgs& args, Range rows);
  void (*store_kv)(const StoreKvArgs& args);
  // Items are the numbers of y [rows, dim], flattened.
  void (*swiglu)(const float* gate_up, float* y, int64_t dim, Range items);
};

IsaOps reference_ops();
IsaOps avx2_ops();
IsaOps avx512_ops();
IsaOps amx_ops();

}  // namespace outrider
