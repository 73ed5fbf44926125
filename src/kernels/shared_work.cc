// SPDX-License-Identifier: Apache-2.0
// Divides the work of a call among workers, and hands plain data to the loops of an instruction set.
#include "kernels/isa_ops.h"
#include "kernels/packing.h"

namespace outrider {
namespace {

// Counts the items that workers divide among themselves when inputs are packed.
int64_t input_items(InputLayout layout, int64_t rows, int64_t k) {
  switch (layout) {
    case InputLayout::kF32:
      return 0;
    case InputLayout::kInt8Groups:
      return rows * units_of(k, kInputGroup);
    case InputLayout::kInt8Rows:
      return rows;
    case InputLayout::kBF16Pairs:
      return units_of(rows, kPairRows) * units_of(k, kCodeBlock);
    case InputLayout::kBF16Tiles:
      return units_of(rows, 16) * units_of(k, kCodeBlock);
    case InputLayout::kF32Tiles:
      return rows <= kUntiledRows ? 0 : units_of(rows, kFloatRows) * units_of(k, kCodeBlock);
  }
  return 0;
}

// Numbers that a share of them has at least, so that workers do not write to one cache line.
constexpr int64_t kGrain = 64;

Range share_of_items(const NormArgs& args, Worker worker) { return share_of(worker, args.rows); }
Range share_of_items(const RopeArgs& args, Worker worker) { return share_of(worker, args.rows); }
Range share_of_items(const ActivationArgs& args, Worker worker) {
  return share_of(worker, args.rows * args.dim, kGrain);
}
Range share_of_items(const SoftcapArgs& args, Worker worker) { return share_of(worker, args.count, kGrain); }

}  // namespace

template <>
void DividedOp<LinearArgs, InputShare>::operator()(const LinearArgs& args, Worker worker) const {
  const PackedMatrix& weights = *args.weights;
  const Range items = share_of(worker, input_items(weights.inputs, args.rows, weights.k));
  if (items.begin == items.end) return;
  run({weights.inputs, args.x, args.packed_x, args.rows, weights.k, items});
}

template <>
void DividedOp<LinearArgs, LinearShare>::operator()(const LinearArgs& args, Worker worker) const {
  const PackedMatrix& weights = *args.weights;
  const Range features = share_of(worker, weights.n, weights.panel_features);
  if (features.begin == features.end || args.rows == 0) return;
  run(linear_share(args, features));
}

template <>
void DividedOp<AttentionArgs, AttentionShare>::operator()(const AttentionArgs& args, Worker worker) const {
  const auto row_count = static_cast<int64_t>(args.rows.size());
  const Range items = share_of(worker, row_count * args.head_count);
  if (items.begin == items.end) return;
  run({&args, args.rows.data(), row_count, items});
}

template <typename Args>
void RangeOp<Args>::operator()(const Args& args, Worker worker) const {
  run(args, share_of_items(args, worker));
}

template struct RangeOp<NormArgs>;
template struct RangeOp<RopeArgs>;
template struct RangeOp<ActivationArgs>;
template struct RangeOp<SoftcapArgs>;

}  // namespace outrider
