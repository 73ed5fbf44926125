// SPDX-License-Identifier: Apache-2.0
// Packing of weights into their private layouts. Features are the rows of the matrix; missing features of the
// last panel and missing inputs of the last step are zero.
#pragma once

#include "base/thread_pool.h"
#include "kernels/isa_ops.h"
#include "kernels/packed_matrix.h"

namespace outrider {

// The layout that a table uses for a type.
using LayoutOf = WeightLayout (*)(DType dtype);

WeightLayout stored_layout(DType dtype);  // as stored
WeightLayout dot_layout(DType dtype);     // for vectors of 16 features
WeightLayout pair_layout(DType dtype);    // as dot_layout(), with bf16 in pairs
WeightLayout tile_layout(DType dtype);    // for AMX tiles

// Error: the rows are no whole blocks, or a part is no matrix.
Result<PackedMatrix> packed_layout(const MatrixSource& source, WeightLayout layout);

// Packs the worker's share of the panels.
void pack_panels(const MatrixSource& source, PackedMatrix& packed, Worker worker);

// Whole and begun units in a count.
constexpr int64_t units_of(int64_t count, int64_t unit) { return (count + unit - 1) / unit; }

// The share of a product that has these features: plain data for the loops of an instruction set.
LinearShare linear_share(const LinearArgs& args, Range features);

}  // namespace outrider
