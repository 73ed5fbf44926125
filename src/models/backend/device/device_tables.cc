// SPDX-License-Identifier: Apache-2.0
// Rows of tables by lists of tokens.
#include "models/backend/device/device_ops.h"

namespace outrider {
namespace {

// Items of a look-up.
int64_t chunks_of(const simt::LookedUp& of) {
  return int64_t{of.rows} * ((of.k + simt::kChunk - 1) / simt::kChunk);
}

}  // namespace

template <typename Numbers>
void DeviceOps::look_up_plain(const UploadedTable& table, KernelName kernel, const simt::LookedUp& of) {
  using Stored = typename Numbers::Stored;
  launch_items(
      kernel,
      simt::FloatTableArgs<Numbers>{.table = {reinterpret_cast<const Stored*>(table.plain.data),
                                              table.plain.count / static_cast<int64_t>(sizeof(Stored))},
                                    .of = of,
                                    .panel = table.panel_features},
      chunks_of(of));
}

void DeviceOps::look_up_codes(const UploadedTable& table, const simt::LookedUp& of) {
  if (table.packed == nullptr) {
    return launch_items(
        KernelName::kLookUpCodes,
        simt::CodeTableArgs{
            .codes = table.codes, .scales = table.scales, .mins = table.mins, .of = of, .group = table.group},
        chunks_of(of));
  }
  const int form = static_cast<int>(table.packed->form);
  launch_items(static_cast<KernelName>(static_cast<int>(KernelName::kLookUpCentredNibbles) + form),
               simt::GroupedTableArgs{.table = table.packed->grouped, .of = of}, chunks_of(of));
}

void DeviceOps::look_up(const PackedMatrix& table, std::span<const int32_t> tokens, float factor,
                        FloatAddress y) {
  const int64_t rows = std::ssize(tokens);
  if (rows == 0) return;
  const UploadedTable& uploaded = weights_.table(table);
  simt::LookedUp of{.tokens = {},
                    .y = rows_at<float>(y, rows * table.k),
                    .rows = static_cast<int>(rows),
                    .k = static_cast<int>(table.k),
                    .factor = factor};
  if (records()) {
    of.tokens = recorded_->tokens;
  } else {
    const simt::List<int> list = tokens_.view({tokens.begin(), tokens.end()});
    of.tokens = {list.data, list.count};
  }
  if (uploaded.packed != nullptr && uploaded.packed->form == WeightForm::kChannels) {
    return launch_items(KernelName::kLookUpChannels,
                        simt::ChannelTableArgs{.table = uploaded.packed->channels, .of = of}, chunks_of(of));
  }
  if (uploaded.packed != nullptr && uploaded.packed->form == WeightForm::kTensorF16)
    return launch_items(KernelName::kLookUpTensorF16, simt::TensorTableArgs{uploaded.packed->plain, of},
                        chunks_of(of));
  if (uploaded.packed != nullptr && uploaded.packed->form == WeightForm::kTensorBf16)
    return launch_items(KernelName::kLookUpTensorBf16, simt::TensorTableArgs{uploaded.packed->plain, of},
                        chunks_of(of));
  if (has_codes(uploaded.dtype)) return look_up_codes(uploaded, of);
  switch (uploaded.dtype) {
    case DType::kF32:
      return look_up_plain<simt::F32Weights>(uploaded, KernelName::kLookUpF32, of);
    case DType::kF16:
      return look_up_plain<simt::F16Weights>(uploaded, KernelName::kLookUpF16, of);
    default:
      return look_up_plain<simt::Bf16Weights>(uploaded, KernelName::kLookUpBf16, of);
  }
}

// Rows by position are the same in every pass, so that a table has them in order.
void DeviceOps::add_position_rows(const LayerBackend::TableRows& args) {
  OUTRIDER_CHECK(args.scale == 1 && args.share == 1 && args.x.address() == args.y.address());
  const int64_t rows = std::ssize(args.rows), dim = args.table->k;
  const simt::List<float> all = numbers_of_positions(args.table, dim, [&](int32_t position, float* y) {
    unpack_row(*args.table, args.positions->row_of(position), y);
  });
  launch_rows(KernelName::kAddListedRows,
              simt::ListedOperandArgs{.x = rows_at<float>(args.y, rows * dim),
                                      .y = {all.data, all.count},
                                      .list = recorded_->positions,
                                      .rows = static_cast<int>(rows),
                                      .dim = static_cast<int>(dim),
                                      .x_stride = static_cast<int>(dim),
                                      .y_stride = static_cast<int>(dim),
                                      .together = 1},
              rows, dim);
}

void DeviceOps::add_table_rows(const LayerBackend::TableRows& args) {
  if (args.positions != nullptr) return add_position_rows(args);
  const int64_t count = std::ssize(args.rows) * args.table->k;
  look_up(*args.table, args.rows, args.scale, args.y);
  run(KernelName::kAddRows, {.x = args.y, .y = args.x, .dim = count});
  run(KernelName::kScaleNumbers, {.x = args.y, .y = args.y, .dim = count, .number = args.share});
}

}  // namespace outrider
