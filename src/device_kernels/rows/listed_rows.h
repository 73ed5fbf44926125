// SPDX-License-Identifier: Apache-2.0
// Rows that lists name. A warp takes 32 numbers of a row.
#pragma once

#include "device_kernels/rows/row_part.h"

namespace outrider::simt {

// y[to[i]] = factors[i] * x[from[i]]; from[i] = -1 stands for zeros, and to[i] = -1 for no row.
struct ListedCopyArgs {
  Rows<const float> x;        // rows x_stride apart
  Rows<float> y;              // rows y_stride apart
  Rows<const int> from;       // [rows], or null: i
  Rows<const int> to;         // [rows], or null: i
  Rows<const float> factors;  // [rows], or null: 1
  int rows;
  int dim;
  int x_stride;
  int y_stride;
};

SIMT void copy_listed_rows(const Block& block, const ListedCopyArgs& args) {
  const auto [row, i, in] = row_part_of(block, args.rows, args.dim);
  if (row < 0) return;
  block.wait_for_previous();
  const int64_t from = args.from.is_null() ? row : args.from.load_one(row);
  const int64_t to = args.to.is_null() ? row : args.to.load_one(row);
  if (to < 0) return;
  Floats numbers(0.0F);
  if (from >= 0) {
    numbers = args.x.from(from * args.x_stride).load_if(in, i, 0.0F);
    if (!args.factors.is_null()) numbers = mul_rn(numbers, Floats(args.factors.load_one(row)));
  }
  args.y.from(to * args.y_stride).store_if(in, i, numbers);
}

// x[i] = x[i] + y[list[i / together]], or the product. Rows of an entry below 0 stay as they are.
struct ListedOperandArgs {
  Rows<float> x;         // rows x_stride apart
  Rows<const float> y;   // rows y_stride apart
  Rows<const int> list;  // [rows / together]
  int rows;
  int dim;
  int x_stride;
  int y_stride;
  int together;
};

struct SumOfRows {
  SIMT static Floats apply(Floats x, Floats y) { return add_rn(x, y); }
};
struct ProductOfRows {
  SIMT static Floats apply(Floats x, Floats y) { return mul_rn(x, y); }
};

template <typename Operation>
SIMT void listed_operand(const Block& block, const ListedOperandArgs& args) {
  const auto [row, i, in] = row_part_of(block, args.rows, args.dim);
  if (row < 0) return;
  block.wait_for_previous();
  const int64_t other = args.list.load_one(row / args.together);
  if (other < 0) return;
  const auto x = args.x.from(static_cast<int64_t>(row) * args.x_stride);
  x.store_if(
      in, i,
      Operation::apply(x.load_if(in, i, 0.0F), args.y.from(other * args.y_stride).load_if(in, i, 0.0F)));
}

}  // namespace outrider::simt
