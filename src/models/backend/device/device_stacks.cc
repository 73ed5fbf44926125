// SPDX-License-Identifier: Apache-2.0
// Products with stacks of matrices.
#include <vector>

#include "models/backend/device/device_ops.h"

namespace outrider {
namespace {

using simt::kTileRows;

// Matrix `part` of each projection.
std::vector<const PackedMatrix*> matrices_of(std::span<const Projection* const> stack, size_t part) {
  std::vector<const PackedMatrix*> matrices;
  for (const Projection* projection : stack) matrices.push_back(&projection->parts[part]);
  return matrices;
}

simt::Rows<float> outputs_of(FloatAddress y, int64_t count) { return rows_at<float>(y, count); }

}  // namespace

void DeviceOps::upload(std::span<const Projection* const> stack) {
  for (size_t part = 0; part < stack.front()->parts.size(); ++part) {
    if (stack.front()->parts[part].n > 0) weights_.stack(matrices_of(stack, part));
  }
}

template <typename Args>
void DeviceOps::launch_stacked(KernelName kernel, const StackedPart& part, const Args& product,
                               int shared_bytes) {
  const int64_t panels = (part.part.n + simt::kPanelFeatures - 1) / simt::kPanelFeatures;
  launch(kernel,
         simt::StackedArgs<Args>{.product = product, .tiles = part.list, .matrices = part.stack.count},
         {.blocks = static_cast<int>(panels * part.tiles),
          .warps = simt::CodeRing::kMostWarps,
          .shared_bytes = shared_bytes});
}

template <typename Numbers>
void DeviceOps::multiply_plain_stacked(const StackedPart& part, KernelName kernel) {
  using Stored = typename Numbers::Stored;
  const simt::Weights<int>& words = part.stack.matrices.plain;
  const int64_t rows = part.tiles * kTileRows;
  const simt::FloatProductArgs<Numbers> product{
      .weights = {reinterpret_cast<const Stored*>(words.data),
                  words.count * static_cast<int64_t>(sizeof(int) / sizeof(Stored))},
      .scales = part.stack.matrices.scales,
      .x = rows_at<const float>(part.x, rows * part.part.k),
      .y = outputs_of(part.y, part.y_count),
      .rows = static_cast<int>(rows),
      .n = static_cast<int>(part.part.n),
      .k = static_cast<int>(part.part.k),
      .y_stride = static_cast<int>(part.y_stride)};
  launch_stacked(kernel, part, product, simt::FloatMemory::kBytes);
}

void DeviceOps::multiply_tensor_stacked(const StackedPart& part) {
  const TensorKernels kernels = tensor_kernels(part.stack.matrices.form);
  const simt::TensorProductArgs product{
      .weights = part.stack.matrices.plain,
      .scales = part.stack.matrices.scales,
      .x = pack_tensor(part.x, part.tiles * kTileRows, part.part.k, kernels.pack),
      .y = outputs_of(part.y, part.y_count),
      .n = static_cast<int>(part.part.n),
      .k = static_cast<int>(part.part.k),
      .y_stride = static_cast<int>(part.y_stride)};
  launch_stacked(kernels.stacked, part, product, simt::TensorMemory::kBytes);
}

void DeviceOps::multiply_stacked(const StackedPart& part) {
  const UploadedMatrix& matrices = part.stack.matrices;
  const int64_t rows = part.tiles * kTileRows;
  const simt::Rows<float> y = outputs_of(part.y, part.y_count);
  const auto stride = static_cast<int>(part.y_stride);
  switch (matrices.form) {
    case WeightForm::kChannels:
      return launch_stacked(KernelName::kStackedChannelRows, part,
                            simt::ChannelProductArgs{.weights = matrices.channels,
                                                     .x = pack_channels(part.x, rows, part.part.k),
                                                     .y = y,
                                                     .y_stride = stride},
                            simt::ChannelMemory::kBytes);
    case WeightForm::kF32:
      return multiply_plain_stacked<simt::F32Weights>(part, KernelName::kStackedF32Rows);
    case WeightForm::kF16:
      return multiply_plain_stacked<simt::F16Weights>(part, KernelName::kStackedF16Rows);
    case WeightForm::kBF16:
      return multiply_plain_stacked<simt::Bf16Weights>(part, KernelName::kStackedBf16Rows);
    case WeightForm::kF8:
      return multiply_plain_stacked<simt::F8Weights>(part, KernelName::kStackedF8Rows);
    case WeightForm::kTensorF16:
    case WeightForm::kTensorBf16:
    case WeightForm::kTensorF8:
      return multiply_tensor_stacked(part);
    default:
      return multiply_stacked_groups(part);
  }
}

void DeviceOps::multiply_stacked_groups(const StackedPart& part) {
  const UploadedMatrix& matrices = part.stack.matrices;
  const PackingMemory::Inputs inputs{part.x, part.tiles * kTileRows, part.part.k};
  const simt::GroupedProductArgs product{.weights = matrices.grouped,
                                         .x = pack_groups(inputs),
                                         .y = outputs_of(part.y, part.y_count),
                                         .y_stride = static_cast<int>(part.y_stride)};
  const int kernel =
      static_cast<int>(KernelName::kStackedFewRowsCentredNibbles) + static_cast<int>(matrices.form);
  launch_stacked(static_cast<KernelName>(kernel), part, product, simt::FewRowsMemory::kBytes);
  keep_packed(inputs, part.y, part.y_count);
}

void DeviceOps::project_stacked(const StackedProduct& product) {
  const Projection& first = *product.stack.front();
  const int64_t rows = product.tiles * kTileRows;
  int64_t column = 0;
  for (size_t part = 0; part < first.parts.size(); ++part) {
    const PackedMatrix& matrix = first.parts[part];
    if (matrix.n == 0) continue;  // a shard without outputs
    multiply_stacked({.stack = weights_.stack(matrices_of(product.stack, part)),
                      .part = matrix,
                      .list = product.list,
                      .x = product.x,
                      .y = product.y + column,
                      .tiles = product.tiles,
                      .y_stride = first.n,
                      .y_count = rows * first.n - column});
    column += matrix.n;
  }
  std::vector<std::span<const float>> lists;
  for (const Projection* projection : product.stack) lists.emplace_back(projection->bias);
  const simt::Weights<float> biases = weights_.rows(lists);
  if (biases.count == 0) return;
  launch_rows(KernelName::kAddListedRows,
              simt::ListedOperandArgs{.x = rows_at<float>(product.y, rows * first.n),
                                      .y = {biases.data, biases.count},
                                      .list = product.list,
                                      .rows = static_cast<int>(rows),
                                      .dim = static_cast<int>(first.n),
                                      .x_stride = static_cast<int>(first.n),
                                      .y_stride = static_cast<int>(first.n),
                                      .together = kTileRows},
              rows, first.n);
}

}  // namespace outrider
