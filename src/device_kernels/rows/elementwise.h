// SPDX-License-Identifier: Apache-2.0
// Arithmetic of rows, number by number. A warp takes 32 numbers.
#pragma once

#include "device_kernels/rows/activation.h"
#include "device_kernels/rows/portable_functions.h"
#include "device_kernels/rows/row_part.h"

namespace outrider::simt {

// x[row][i] = x[row][i] + y[row][i], and so on. A stride of 0 reads one row again and again.
struct ElementwiseArgs {
  Rows<float> x;        // [rows, x_stride]
  Rows<const float> y;  // [rows, y_stride]
  int rows;
  int dim;
  int x_stride;
  int y_stride;
  float number;
};

// The numbers of y that belong to numbers of x.
SIMT Floats other_numbers(const ElementwiseArgs& args, int row, Ints i, Bools in) {
  return args.y.from(static_cast<int64_t>(row) * args.y_stride).load_if(in, i, 0.0F);
}

struct AddRows {
  SIMT static Floats apply(const ElementwiseArgs& args, Floats x, int row, Ints i, Bools in) {
    return add_rn(x, other_numbers(args, row, i, in));
  }
};

struct AddScaledRows {
  SIMT static Floats apply(const ElementwiseArgs& args, Floats x, int row, Ints i, Bools in) {
    return add_rn(x, mul_rn(Floats(args.number), other_numbers(args, row, i, in)));
  }
};

struct MultiplyRows {
  SIMT static Floats apply(const ElementwiseArgs& args, Floats x, int row, Ints i, Bools in) {
    return mul_rn(x, other_numbers(args, row, i, in));
  }
};

struct MultiplySilu {
  SIMT static Floats apply(const ElementwiseArgs& args, Floats x, int row, Ints i, Bools in) {
    return mul_rn(x, Silu::apply(other_numbers(args, row, i, in)));
  }
};

struct MultiplySigmoid {
  SIMT static Floats apply(const ElementwiseArgs& args, Floats x, int row, Ints i, Bools in) {
    return mul_rn(x, portable_sigmoid_of(other_numbers(args, row, i, in)));
  }
};

// The number of a row is all of y.
struct GateRows {
  SIMT static Floats apply(const ElementwiseArgs& args, Floats x, int row, Ints, Bools) {
    const Floats gate(args.y.load_one(static_cast<int64_t>(row) * args.y_stride));
    return mul_rn(x, portable_sigmoid_of(gate));
  }
};

// SiLU of base/portable_math.h, which steps of draft heads have
struct AddPortableSilu {
  SIMT static Floats apply(const ElementwiseArgs& args, Floats x, int row, Ints i, Bools in) {
    const Floats y = other_numbers(args, row, i, in);
    return add_rn(x, div_rn(y, add_rn(Floats(1.0F), portable_exp_of(negated(y)))));
  }
};

struct ScaleNumbers {
  SIMT static Floats apply(const ElementwiseArgs& args, Floats x, int, Ints, Bools) {
    return mul_rn(x, Floats(args.number));
  }
};

// A factor for each row.
struct ScaleRows {
  SIMT static Floats apply(const ElementwiseArgs& args, Floats x, int row, Ints, Bools) {
    return mul_rn(x, Floats(args.y.load_one(static_cast<int64_t>(row) * args.y_stride)));
  }
};

// NaN stays NaN.
struct ClampNumbers {
  SIMT static Floats apply(const ElementwiseArgs& args, Floats x, int, Ints, Bools) {
    const Floats limit(args.number), lowest(sub_rn(0.0F, args.number));
    return select(x < lowest, lowest, select(x > limit, limit, x));
  }
};

template <typename Operation>
SIMT void elementwise(const Block& block, const ElementwiseArgs& args) {
  const auto [row, i, in] = row_part_of(block, args.rows, args.dim);
  if (row < 0) return;
  block.wait_for_previous();
  const auto x = args.x.from(static_cast<int64_t>(row) * args.x_stride);
  x.store_if(in, i, Operation::apply(args, x.load_if(in, i, 0.0F), row, i, in));
}

}  // namespace outrider::simt
