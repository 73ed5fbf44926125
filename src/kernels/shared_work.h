// SPDX-License-Identifier: Apache-2.0
// Divides the work of a call among workers and hands plain data to the loops of an instruction set.
#pragma once

#include "kernels/isa_ops.h"
#include "kernels/packing.h"

namespace outrider {

// Counts the items that workers divide among themselves when inputs are packed.
int64_t input_items(InputLayout layout, int64_t rows, int64_t k);

// The functions of a kernel table.
template <IsaOps (*ops)(), WeightLayout (*layout_of)(DType)>
struct SharedWork {
  static Result<PackedMatrix> layout(const MatrixSource& source) {
    return packed_layout(source, layout_of(source.dtype));
  }

  static void pack_inputs(const LinearArgs& args, Worker worker) {
    const PackedMatrix& weights = *args.weights;
    const Range items = share_of(worker, input_items(weights.inputs, args.rows, weights.k));
    if (items.begin == items.end) return;
    ops().pack_inputs({weights.inputs, args.x, args.packed_x, args.rows, weights.k, items});
  }

  static void linear(const LinearArgs& args, Worker worker) {
    const PackedMatrix& weights = *args.weights;
    const Range features = share_of(worker, weights.n, weights.panel_features);
    if (features.begin == features.end || args.rows == 0) return;
    ops().linear(linear_share(args, features));
  }

  static void attention(const AttentionArgs& args, Worker worker) {
    const auto row_count = static_cast<int64_t>(args.rows.size());
    const Range items = share_of(worker, row_count * args.head_count);
    if (items.begin == items.end) return;
    ops().attention({&args, args.rows.data(), row_count, items});
  }

  static void rms_norm(const NormArgs& args, Worker worker) {
    ops().rms_norm(args, share_of(worker, args.rows));
  }

  static void layer_norm(const NormArgs& args, Worker worker) {
    ops().layer_norm(args, share_of(worker, args.rows));
  }

  static void rope(const RopeArgs& args, Worker worker) { ops().rope(args, share_of(worker, args.rows)); }

  static void store_kv(const StoreKvArgs& args) { ops().store_kv(args); }

  static void activate(const ActivationArgs& args, Worker worker) {
    constexpr int64_t kGrain = 64;
    ops().activate(args, share_of(worker, args.rows * args.dim, kGrain));
  }

  static void softcap(float* x, int64_t count, float cap, Worker worker) {
    constexpr int64_t kGrain = 64;
    const Range share = share_of(worker, count, kGrain);
    ops().softcap(x + share.begin, share.end - share.begin, cap);
  }

  static void delta_steps(std::span<const DeltaArgs> steps) {
    ops().delta_steps(steps.data(), static_cast<int64_t>(steps.size()));
  }

  static int64_t multiply_add(InputLayout inputs, int64_t rounds) {
    return ops().multiply_add(inputs, rounds);
  }
};

}  // namespace outrider
