// SPDX-License-Identifier: Apache-2.0
// Inputs of integer products as codes. The kernels that make rows pack them where some product of this device
// may read them, and a product packs its inputs unless the last kernel has.
#include "models/backend/device/device_ops.h"

namespace outrider {

simt::InputCodes DeviceOps::room_for_codes(int64_t rows, int64_t k) {
  packing_.forget();
  const int padded = padded_rows(rows);
  const int64_t groups = padded * (k / simt::kChunk);
  reserve(codes_, padded * k);
  reserve(scales_, groups * static_cast<int64_t>(sizeof(float)));
  reserve(sums_, 2 * groups * static_cast<int64_t>(sizeof(int)));
  return {.codes = rows_of<int8_t>(codes_),
          .scales = rows_of<float>(scales_),
          .sums = rows_of<int>(sums_),
          .padded = padded};
}

simt::InputCodes DeviceOps::codes_for_products(int64_t rows, int64_t k) {
  return weights_.has_products_of(k) ? room_for_codes(rows, k) : simt::InputCodes{};
}

simt::GroupedInputs DeviceOps::pack_groups(const PackingMemory::Inputs& inputs) {
  const auto [x, rows, k] = inputs;
  if (!packing_.holds(inputs)) {
    const simt::InputCodes packed = room_for_codes(rows, k);
    launch_rows(KernelName::kPackInputs,
                simt::PackInputsArgs{.x = rows_at<const float>(x, rows * k),
                                     .packed = packed,
                                     .rows = static_cast<int>(rows),
                                     .k = static_cast<int>(k)},
                packed.padded, k);
    packing_.remember(inputs);
  }
  return {.codes = rows_of<const int>(codes_),
          .scales = rows_of<const float>(scales_),
          .sums = rows_of<const int>(sums_),
          .rows = static_cast<int>(rows),
          .padded = padded_rows(rows)};
}

void DeviceOps::keep_packed(const PackingMemory::Inputs& inputs, FloatAddress y, int64_t y_count) {
  const FloatAddress end = inputs.x + inputs.rows * inputs.k;
  if (y.address() >= end.address() || inputs.x.address() >= (y + y_count).address())
    packing_.remember(inputs);
}

simt::ChannelInputs DeviceOps::pack_channels(FloatAddress x, int64_t rows, int64_t k) {
  packing_.forget();
  const int padded = padded_rows(rows);
  reserve(codes_, padded * ((k + simt::kChunk - 1) / simt::kChunk * simt::kChunk));
  reserve(scales_, padded * static_cast<int64_t>(sizeof(float)));
  launch_items(KernelName::kPackChannelInputs,
               simt::PackChannelInputsArgs{.x = rows_at<const float>(x, rows * k),
                                           .codes = rows_of<int8_t>(codes_),
                                           .scales = rows_of<float>(scales_),
                                           .rows = static_cast<int>(rows),
                                           .padded = padded,
                                           .k = static_cast<int>(k)},
               padded);
  return {.codes = rows_of<const int>(codes_),
          .scales = rows_of<const float>(scales_),
          .rows = static_cast<int>(rows),
          .padded = padded};
}

simt::TensorInputs DeviceOps::pack_tensor(FloatAddress x, int64_t rows, int64_t k, KernelName kernel) {
  packing_.forget();
  const int padded = padded_rows(rows);
  const int64_t tiles = (k + simt::kTileInputs - 1) / simt::kTileInputs;
  reserve(codes_, tiles * padded * simt::kTileRowWords * int64_t{sizeof(int)});
  launch_items(kernel,
               simt::PackTensorInputsArgs{.x = rows_at<const float>(x, rows * k),
                                          .words = rows_of<int>(codes_),
                                          .rows = static_cast<int>(rows),
                                          .padded = padded,
                                          .k = static_cast<int>(k)},
               tiles * padded / 4);
  return {.words = rows_of<const int>(codes_), .rows = static_cast<int>(rows), .padded = padded};
}

}  // namespace outrider
