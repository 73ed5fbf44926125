// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/kernel_table.h"

namespace outrider {

// Rows as stored, one after the other.
Result<PackedMatrix> pack_rows(const TensorView& matrix);

// Strips of kStripFeatures rows; within a strip the rows are interleaved unit by unit:
// [strip][unit of the row][row of the strip][unit]. A unit is one number of F32, F16 and BF16, one byte of
// the block types. Missing rows of the last strip are zero.
Result<PackedMatrix> pack_strips(const TensorView& matrix);

// As pack_strips, but a unit of BF16 is a pair of numbers and rows are padded with zeros to kTileDepth
// numbers: 16 consecutive units are one right-hand tile of TDPBF16PS.
Result<PackedMatrix> pack_tiles(const TensorView& matrix);

inline constexpr int64_t kTileDepth = 32;

}  // namespace outrider
