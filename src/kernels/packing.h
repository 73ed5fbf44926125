// SPDX-License-Identifier: Apache-2.0
// The private layouts of weights. Features are the rows of the matrix; missing features of the last panel and
// missing inputs of the last step are zero.
#pragma once

#include "kernels/isa_ops.h"
#include "kernels/kernel_table.h"

namespace outrider {

// Which layout a table uses for a type.
using FormOf = WeightLayout (*)(DType dtype);

WeightLayout row_form(DType dtype);   // as stored
WeightLayout dot_form(DType dtype);   // for vectors of 16 features
WeightLayout pair_form(DType dtype);  // likewise, bf16 in pairs
WeightLayout tile_form(DType dtype);  // for AMX tiles

// Error: no matrix of whole blocks.
Result<PackedMatrix> packed_layout(const MatrixSource& source, WeightLayout form);

// Packs the worker's share of the panels.
void pack_panels(const MatrixSource& source, PackedMatrix& packed, Worker worker);

}  // namespace outrider
