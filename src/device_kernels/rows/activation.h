// SPDX-License-Identifier: Apache-2.0
// The functions between the two products of an MLP, number by number.
#pragma once

#include "device_kernels/products/pack_inputs.h"
#include "device_kernels/rows/exponential.h"
#include "device_kernels/rows/row_part.h"

namespace outrider::simt {

// y = act(gate) * up where `is_gated`, x being [rows, 2 * dim] with the gate first; else y = act(x).
struct ActivationArgs {
  Rows<const float> x;
  Rows<float> y;  // [rows, dim]
  int rows;
  int dim;
  int is_gated;
  InputCodes packed;  // y as codes, where `dim` is chunks; or null
};

struct Silu {
  SIMT static Floats apply(Floats x) {
    return div_rn(x, add_rn(Floats(1.0F), exp_of(sub_rn(Floats(0.0F), x))));
  }
  SIMT static Floats factor(Floats up) { return up; }
};

// Half of erfc(x), x >= 0.
SIMT Floats half_erfc(Floats x) {
  const Floats t = div_rn(Floats(1.0F), fma_rn(x, Floats(0.5F), Floats(1.0F)));
  Floats series(0.14805983F);
  series = fma_rn(series, t, Floats(-0.697874188F));
  series = fma_rn(series, t, Floats(1.19684815F));
  series = fma_rn(series, t, Floats(-0.749624848F));
  series = fma_rn(series, t, Floats(-0.0361684784F));
  series = fma_rn(series, t, Floats(-0.022138983F));
  series = fma_rn(series, t, Floats(0.042548392F));
  series = fma_rn(series, t, Floats(0.384982437F));
  series = fma_rn(series, t, Floats(0.998825133F));
  series = fma_rn(series, t, Floats(-1.26545739F));
  return mul_rn(mul_rn(t, Floats(0.5F)), exp_of(sub_rn(series, mul_rn(x, x))));
}

struct Gelu {
  SIMT static Floats apply(Floats x) {
    const Floats tail = half_erfc(mul_rn(abs_of(x), Floats(0.707106781F)));
    const Floats right = sub_rn(Floats(1.0F), add_rn(tail, tail));
    return mul_rn(x, add_rn(select(x < Floats(0.0F), Floats(0.0F), right), tail));
  }
  SIMT static Floats factor(Floats up) { return up; }
};

struct GeluTanh {
  SIMT static Floats apply(Floats x) {
    const Floats cubic = fma_rn(mul_rn(mul_rn(x, x), x), Floats(0.044715F), x);
    return div_rn(x, add_rn(Floats(1.0F), exp_of(mul_rn(cubic, Floats(-1.59576912F)))));
  }
  SIMT static Floats factor(Floats up) { return up; }
};

struct Relu {
  SIMT static Floats apply(Floats x) { return max_of(Floats(0.0F), x); }
  SIMT static Floats factor(Floats up) { return up; }
};

struct ClampedSwiglu {
  SIMT static Floats apply(Floats x) {
    const Floats gate = min_of(Floats(7.0F), x);
    return div_rn(gate, add_rn(Floats(1.0F), exp_of(mul_rn(gate, Floats(-1.702F)))));
  }
  SIMT static Floats factor(Floats up) {
    return add_rn(min_of(Floats(7.0F), max_of(Floats(-7.0F), up)), Floats(1.0F));
  }
};

// Numbers [32 * part, 32 * part + 32) of a row; where rows are packed, of a padding row, too.
template <typename Function>
SIMT_PART void activate_part(const ActivationArgs& args, int row, int part) {
  const Ints i = lane_id() + Ints(part * kWarp);
  const Bools in = i < Ints(args.dim);
  Floats y(0.0F);
  if (row < args.rows) {
    const auto x = args.x.from(static_cast<int64_t>(row) * args.dim * (args.is_gated != 0 ? 2 : 1));
    y = Function::apply(x.load_if(in, i, 0.0F));
    if (args.is_gated != 0) y = mul_rn(y, Function::factor(x.load_if(in, i + Ints(args.dim), 0.0F)));
    args.y.from(static_cast<int64_t>(row) * args.dim).store_if(in, i, y);
  }
  if (!args.packed.is_null()) pack_chunk(args.packed, row, part, y);
}

// A warp takes 32 numbers of a row.
template <typename Function>
SIMT void activate(const Block& block, const ActivationArgs& args) {
  const int parts = (args.dim + kWarp - 1) / kWarp, item = item_of(block);
  if (item >= (args.packed.is_null() ? args.rows : args.packed.padded) * parts) return;
  block.wait_for_previous();
  activate_part<Function>(args, item / parts, item % parts);
}

// x = cap * tanh(x / cap), in place.
struct SoftcapArgs {
  Rows<float> x;
  int count;
  float cap;
};

// A warp takes 32 numbers.
SIMT void softcap(const Block& block, const SoftcapArgs& args) {
  const Ints i = lane_id() + Ints((block.index() * block.warps() + block.warp()) * kWarp);
  block.wait_for_previous();
  const Bools in = i < Ints(args.count);
  args.x.store_if(in, i, softcap_of(args.x.load_if(in, i, 0.0F), 1.0F, args.cap));
}

}  // namespace outrider::simt
