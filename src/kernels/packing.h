// SPDX-License-Identifier: Apache-2.0
// The private layouts of weights. Features are the rows of the matrix; missing features of the last strip and
// missing inputs of the last step are zero.
#pragma once

#include "kernels/isa_ops.h"
#include "kernels/kernel_table.h"

namespace outrider {

// Which layout a table uses for a type.
using FormOf = WeightForm (*)(DType dtype);

WeightForm row_form(DType dtype);   // as stored
WeightForm dot_form(DType dtype);   // for vectors of 16 features
WeightForm pair_form(DType dtype);  // likewise, bf16 in pairs
WeightForm tile_form(DType dtype);  // for AMX tiles

// Error: no matrix of whole blocks.
Result<PackedMatrix> packed_layout(const MatrixSource& source, WeightForm form);

// Packs the worker's share of the strips.
void pack_strips(const MatrixSource& source, PackedMatrix& packed, Worker worker);

}  // namespace outrider
