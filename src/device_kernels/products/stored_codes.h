// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/packed_matrix.h"

namespace outrider {

// A table that is kept as stored, as numbers for kernels: x = scale * code - min.
struct StoredCodes {
  std::vector<int8_t> codes = {};  // [n, k], the numbers that codes stand for
  std::vector<float> scales = {};  // [n, k / group]
  std::vector<float> mins = {};    // the same, or empty
  int group = 1;
};

// Precondition: its rows are as stored, and are no plain numbers.
StoredCodes stored_codes(const PackedMatrix& table);

// Bytes of a table [n, k] of that type, kept as stored, in the memory of a device.
int64_t stored_table_bytes(DType dtype, int64_t n, int64_t k);

}  // namespace outrider
