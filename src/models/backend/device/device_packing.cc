// SPDX-License-Identifier: Apache-2.0
// Inputs of integer products as codes. The kernels that make rows pack them where some product of this device
// may read them, and a product packs its inputs unless the last kernel has.
#include "models/backend/device/device_ops.h"

namespace outrider {

simt::InputCodes DeviceOps::room_for_codes(int64_t rows, int64_t k) {
  packing_.forget();
  last_packed_ = 1 - last_packed_;
  auto& [codes, scales, sums] = packed_[last_packed_];
  const int padded = padded_rows(rows);
  const int64_t groups = padded * (k / simt::kChunk);
  reserve(codes, padded * k);
  reserve(scales, groups * static_cast<int64_t>(sizeof(float)));
  reserve(sums, 2 * groups * static_cast<int64_t>(sizeof(int)));
  return {.codes = rows_of<int8_t>(codes),
          .scales = rows_of<float>(scales),
          .sums = rows_of<int>(sums),
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
  const PackedInputs& packed = packed_[last_packed_];
  return {.codes = rows_of<const int>(packed.codes),
          .scales = rows_of<const float>(packed.scales),
          .sums = rows_of<const int>(packed.sums),
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
  PackedInputs& packed = packed_[last_packed_];
  reserve(packed.codes, padded * ((k + simt::kChunk - 1) / simt::kChunk * simt::kChunk));
  reserve(packed.scales, padded * static_cast<int64_t>(sizeof(float)));
  launch_items(KernelName::kPackChannelInputs,
               simt::PackChannelInputsArgs{.x = rows_at<const float>(x, rows * k),
                                           .codes = rows_of<int8_t>(packed.codes),
                                           .scales = rows_of<float>(packed.scales),
                                           .rows = static_cast<int>(rows),
                                           .padded = padded,
                                           .k = static_cast<int>(k)},
               padded);
  return {.codes = rows_of<const int>(packed.codes),
          .scales = rows_of<const float>(packed.scales),
          .rows = static_cast<int>(rows),
          .padded = padded};
}

simt::TensorInputs DeviceOps::pack_tensor(FloatAddress x, int64_t rows, int64_t k, KernelName kernel) {
  packing_.forget();
  const int padded = padded_rows(rows);
  DeviceBuffer& words = packed_[last_packed_].codes;
  const int64_t tiles = (k + simt::kTileInputs - 1) / simt::kTileInputs;
  reserve(words, tiles * padded * simt::kTileRowWords * int64_t{sizeof(int)});
  launch_items(kernel,
               simt::PackTensorInputsArgs{.x = rows_at<const float>(x, rows * k),
                                          .words = rows_of<int>(words),
                                          .rows = static_cast<int>(rows),
                                          .padded = padded,
                                          .k = static_cast<int>(k)},
               tiles * padded / 4);
  return {.words = rows_of<const int>(words), .rows = static_cast<int>(rows), .padded = padded};
}

}  // namespace outrider
