// SPDX-License-Identifier: Apache-2.0
// Inputs of device products, for tests.
#pragma once

#include <limits>
#include <vector>

#include "device_kernels/kernel_comparison.h"
#include "device_kernels/products/device_matrix.h"
#include "device_kernels/products/grouped_products.h"
#include "device_kernels/products/pack_inputs.h"

namespace outrider {

inline KernelName few_rows_of(WeightForm form) {
  return static_cast<KernelName>(static_cast<int>(KernelName::kFewRowsCentredNibbles) +
                                 static_cast<int>(form));
}
inline KernelName many_rows_of(WeightForm form) {
  return static_cast<KernelName>(static_cast<int>(KernelName::kManyRowsCentredNibbles) +
                                 static_cast<int>(form));
}

// Inputs as a kernel packs them.
struct PackedInputs {
  int rows, padded;
  std::vector<int8_t> codes;
  Floats scales;
  std::vector<int> sums;

  // Stale numbers that a kernel is to write.
  PackedInputs(int row_count, int k) : rows(row_count), padded((row_count + 7) / 8 * 8) {
    codes.assign(static_cast<size_t>(padded) * k, 99);
    scales.assign(static_cast<size_t>(padded) * k / 32, std::numeric_limits<float>::quiet_NaN());
    sums.assign(scales.size() * 2, 12345);
  }
  PackedInputs(const Floats& x, int row_count, int k, uint64_t seed) : PackedInputs(row_count, k) {
    const int items = padded * k / 32;
    run_kernel(KernelName::kPackInputs,
               simt::PackInputsArgs{.x = rows_of(x), .packed = to(), .rows = rows, .k = k},
               {.blocks = (items + 7) / 8, .warps = 8}, seed);
  }
  simt::InputCodes to() {
    return {.codes = rows_of(codes), .scales = rows_of(scales), .sums = rows_of(sums), .padded = padded};
  }
  simt::GroupedInputs inputs() const {
    return {.codes = {reinterpret_cast<const int*>(codes.data()), std::ssize(codes) / 4},
            .scales = rows_of(scales),
            .sums = rows_of(sums),
            .rows = rows,
            .padded = padded};
  }
};

// Inputs with one scale for each row, packed by the kernel over stale numbers.
struct PackedChannelInputs {
  int rows, padded;
  std::vector<int8_t> codes;
  Floats scales;

  PackedChannelInputs(const Floats& x, int row_count, int k, uint64_t seed)
      : rows(row_count), padded((row_count + 7) / 8 * 8) {
    codes.assign(static_cast<size_t>(padded) * ((k + 31) / 32 * 32), 99);
    scales.assign(static_cast<size_t>(padded), std::numeric_limits<float>::quiet_NaN());
    run_kernel(KernelName::kPackChannelInputs,
               simt::PackChannelInputsArgs{.x = rows_of(x),
                                           .codes = rows_of(codes),
                                           .scales = rows_of(scales),
                                           .rows = rows,
                                           .padded = padded,
                                           .k = k},
               {.blocks = (padded + 3) / 4, .warps = 4}, seed);
  }
  simt::ChannelInputs inputs() const {
    return {.codes = {reinterpret_cast<const int*>(codes.data()), std::ssize(codes) / 4},
            .scales = rows_of(scales),
            .rows = rows,
            .padded = padded};
  }
};

}  // namespace outrider
