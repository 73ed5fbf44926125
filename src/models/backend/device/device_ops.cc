// SPDX-License-Identifier: Apache-2.0
#include "models/backend/device/device_ops.h"

#include <algorithm>

namespace outrider {
namespace {

// Up to so many rows, warps of a block share a panel; more rows have a warp for each panel.
constexpr int64_t kFewRows = 16;

int64_t panels_of(int64_t features) { return (features + simt::kPanelFeatures - 1) / simt::kPanelFeatures; }

// The kernel for a form of grouped codes, of which `first` is the first one.
KernelName kernel_of_form(KernelName first, WeightForm form) {
  return static_cast<KernelName>(static_cast<int>(first) + static_cast<int>(form));
}

LaunchShape shape_of_few_rows(int64_t features, int padded) {
  return {.blocks = static_cast<int>(panels_of(features)) * (padded / simt::kTileRows),
          .warps = simt::CodeRing::kMostWarps,
          .shared_bytes = simt::FewRowsMemory::kBytes};
}

bool has_grouped_codes(WeightForm form) { return form < WeightForm::kChannels; }

simt::ActivationArgs activation_args(const LayerBackend::Activate& args, const simt::InputCodes& packed) {
  const int64_t numbers = args.rows * args.dim;
  return {.x = rows_at<const float>(args.x, args.is_gated ? 2 * numbers : numbers),
          .y = rows_at<float>(args.y, numbers),
          .rows = static_cast<int>(args.rows),
          .dim = static_cast<int>(args.dim),
          .is_gated = args.is_gated ? 1 : 0,
          .packed = packed};
}

// Whether a row is one part, and rows lie side by side.
bool are_whole_rows(const simt::NormParts& of) {
  return of.parts == 1 && of.x_stride == of.dim && of.y_stride == of.dim;
}

}  // namespace

DeviceOps::DeviceOps(Device& device, const RankLinks* ranks, ThreadPool* pool, ProductProfile profile)
    : launcher_(device),
      ranks_(ranks),
      weights_(device, pool, profile),
      packed_{PackedInputs(device), PackedInputs(device)},
      packing_(launcher_),
      copied_(device),
      cut_inputs_(device),
      cut_outputs_(device),
      gathered_(device),
      rotations_(launcher_),
      factors_(launcher_),
      tokens_(launcher_),
      slots_(launcher_),
      entries_(launcher_),
      pages_(launcher_),
      tails_(launcher_),
      listed_rows_(launcher_),
      column_places_(launcher_),
      gathered_pieces_(launcher_) {}

void DeviceOps::record(const RecordedRows* rows, DeviceList* list) {
  packing_.forget();
  recorded_ = rows;
  launcher_.record_into(list);
}

void DeviceOps::reserve(DeviceBuffer& scratch, int64_t bytes) {
  if (scratch.bytes() > 0 && bytes > scratch.bytes()) ++moves_;
  scratch.reserve(bytes);
}

FloatAddress DeviceOps::numbers_in(DeviceBuffer& scratch, int64_t count) {
  reserve(scratch, count * static_cast<int64_t>(sizeof(float)));
  return FloatAddress(scratch.address());
}

simt::Rows<int> DeviceOps::integers_in(DeviceBuffer& scratch, int64_t count) {
  reserve(scratch, count * static_cast<int64_t>(sizeof(int)));
  return rows_of<int>(scratch);
}

simt::Rows<int> DeviceOps::arrivals(int64_t count) {
  const int64_t bytes = count * static_cast<int64_t>(sizeof(int));
  if (bytes > arrivals_.bytes()) {
    reserve(arrivals_, bytes);
    device().fill(arrivals_.address(), std::byte{0}, bytes);
  }
  return rows_of<int>(arrivals_);
}

simt::GroupedProductArgs DeviceOps::grouped_args(const Product& product, const simt::GroupedInputs& x) const {
  return {.weights = product.matrix.grouped,
          .x = x,
          .y = rows_at<float>(product.y, product.y_count),
          .y_stride = static_cast<int>(product.y_stride)};
}

void DeviceOps::multiply_groups(const Product& product) {
  const PackingMemory::Inputs inputs{product.x, product.rows, product.part.k};
  const simt::GroupedInputs x = pack_groups(inputs);
  const simt::GroupedProductArgs args = grouped_args(product, x);
  if (product.rows <= kFewRows) {
    launch(kernel_of_form(KernelName::kFewRowsCentredNibbles, product.matrix.form), args,
           shape_of_few_rows(product.part.n, x.padded));
  } else {
    launch_items(kernel_of_form(KernelName::kManyRowsCentredNibbles, product.matrix.form), args,
                 panels_of(product.part.n) * ((x.padded + simt::kManyRows - 1) / simt::kManyRows));
  }
  keep_packed(inputs, product.y, product.y_count);
}

void DeviceOps::multiply_channels(const Product& product, const simt::ChannelInputs& x) {
  const simt::ChannelProductArgs args{.weights = product.matrix.channels,
                                      .x = x,
                                      .y = rows_at<float>(product.y, product.y_count),
                                      .y_stride = static_cast<int>(product.y_stride)};
  const auto tiles = static_cast<int>(panels_of(product.part.n)) * (x.padded / simt::kTileRows);
  if (product.rows <= kFewRows) {
    return launch(
        KernelName::kFewChannelRows, args,
        {.blocks = tiles, .warps = simt::CodeRing::kMostWarps, .shared_bytes = simt::ChannelMemory::kBytes});
  }
  launch_items(KernelName::kManyChannelRows, args, tiles);
}

TensorKernels tensor_kernels(WeightForm form) {
  using enum KernelName;
  switch (form) {
    case WeightForm::kTensorF16:
      return {kPackF16Inputs, kFewRowsTensorF16, kManyRowsTensorF16, kStackedRowsTensorF16};
    case WeightForm::kTensorF8:
      return {kPackBf16Inputs, kFewRowsTensorF8, kManyRowsTensorF8, kStackedRowsTensorF8};
    default:
      return {kPackBf16Inputs, kFewRowsTensorBf16, kManyRowsTensorBf16, kStackedRowsTensorBf16};
  }
}

void DeviceOps::multiply_tensor(const Product& product) {
  const TensorKernels kernels = tensor_kernels(product.matrix.form);
  const simt::TensorProductArgs args{.weights = product.matrix.plain,
                                     .scales = product.matrix.scales,
                                     .x = pack_tensor(product.x, product.rows, product.part.k, kernels.pack),
                                     .y = rows_at<float>(product.y, product.y_count),
                                     .n = static_cast<int>(product.part.n),
                                     .k = static_cast<int>(product.part.k),
                                     .y_stride = static_cast<int>(product.y_stride)};
  const int64_t panels = panels_of(product.part.n);
  if (product.rows <= kFewRows) {
    return launch(kernels.few, args,
                  {.blocks = static_cast<int>(panels * (args.x.padded / simt::kTileRows)),
                   .warps = simt::CodeRing::kMostWarps,
                   .shared_bytes = simt::TensorMemory::kBytes});
  }
  launch_items(kernels.many, args, panels * ((args.x.padded + simt::kTensorRows - 1) / simt::kTensorRows));
}

template <typename Numbers>
void DeviceOps::multiply_plain(const Product& product, KernelName kernel) {
  using Stored = typename Numbers::Stored;
  const simt::Weights<int>& words = product.matrix.plain;
  const simt::FloatProductArgs<Numbers> args{
      .weights = {reinterpret_cast<const Stored*>(words.data),
                  words.count * static_cast<int64_t>(sizeof(int) / sizeof(Stored))},
      .scales = product.matrix.scales,
      .x = rows_at<const float>(product.x, product.rows * product.part.k),
      .y = rows_at<float>(product.y, product.y_count),
      .rows = static_cast<int>(product.rows),
      .n = static_cast<int>(product.part.n),
      .k = static_cast<int>(product.part.k),
      .y_stride = static_cast<int>(product.y_stride)};
  const int64_t tiles = panels_of(product.part.n) * (padded_rows(product.rows) / simt::kTileRows);
  launch(kernel, args,
         {.blocks = static_cast<int>(tiles),
          .warps = simt::FloatMemory::kMostWarps,
          .shared_bytes = simt::FloatMemory::kBytes});
}

void DeviceOps::upload(const Projection& projection) {
  for (const PackedMatrix& part : projection.parts) {
    if (part.n > 0) weights_.matrix(part);
  }
}

void DeviceOps::multiply(const Product& product) {
  switch (product.matrix.form) {
    case WeightForm::kChannels:
      return multiply_channels(product, pack_channels(product.x, product.rows, product.part.k));
    case WeightForm::kF32:
      return multiply_plain<simt::F32Weights>(product, KernelName::kF32Rows);
    case WeightForm::kF16:
      return multiply_plain<simt::F16Weights>(product, KernelName::kF16Rows);
    case WeightForm::kBF16:
      return multiply_plain<simt::Bf16Weights>(product, KernelName::kBf16Rows);
    case WeightForm::kF8:
      return multiply_plain<simt::F8Weights>(product, KernelName::kF8Rows);
    case WeightForm::kTensorF16:
    case WeightForm::kTensorBf16:
    case WeightForm::kTensorF8:
      return multiply_tensor(product);
    default:
      return multiply_groups(product);
  }
}

void DeviceOps::project_share(const Projection& projection, FloatAddress x, FloatAddress y, int64_t rows) {
  int64_t column = 0;
  for (const PackedMatrix& part : projection.parts) {
    if (part.n == 0) continue;  // a shard without outputs
    multiply({.matrix = weights_.matrix(part),
              .part = part,
              .x = x,
              .y = y + column,
              .rows = rows,
              .y_stride = projection.n,
              .y_count = rows * projection.n - column});
    column += part.n;
  }
  if (projection.bias.empty()) return;
  const simt::Weights<float> bias = weights_.numbers(projection.bias);
  run(KernelName::kAddRows, {.x = y,
                             .y = FloatAddress(reinterpret_cast<uintptr_t>(bias.data)),
                             .rows = rows,
                             .dim = projection.n,
                             .x_stride = projection.n});
}

void DeviceOps::normalize_rows(const NormOfParts& args) {
  const int64_t rows = args.of.rows, dim = args.of.dim, numbers = rows * dim;
  const simt::InputCodes packed = codes_for_products(rows, dim);
  const auto delta = args.delta ? rows_at<const float>(args.delta, numbers) : simt::Rows<const float>{};
  launch(KernelName::kNormRows,
         simt::NormRowsArgs{.x = rows_at<float>(args.x, numbers),
                            .delta = delta,
                            .weight = weights_.numbers(args.weight),
                            .y = rows_at<float>(args.y, numbers),
                            .packed = packed,
                            .rows = args.of.rows,
                            .dim = args.of.dim,
                            .epsilon = args.of.epsilon},
         {.blocks = packed.is_null() ? args.of.rows : packed.padded,
          .warps = simt::NormRowMemory::warps(args.of.dim),
          .shared_bytes = simt::NormRowMemory::bytes(args.of.dim)});
  if (!packed.is_null()) packing_.remember({args.y, rows, dim});
}

void DeviceOps::normalize(const NormOfParts& args) {
  const int64_t parts = args.of.count();
  if (parts == 0) return;
  const bool is_rms = args.kind == NormKind::kRms;
  if (is_rms && !args.weight.empty() && are_whole_rows(args.of) &&
      args.of.dim <= simt::NormRowMemory::kMostNumbers)
    return normalize_rows(args);
  if (args.delta) run(KernelName::kAddRows, {.x = args.x, .y = args.delta, .dim = parts * args.of.dim});
  if (args.weight.empty()) return;
  const int64_t row = int64_t{args.of.parts} * args.of.dim;
  const int64_t x_count = (args.of.rows - 1) * int64_t{args.of.x_stride} + row;
  const int64_t y_count = (args.of.rows - 1) * int64_t{args.of.y_stride} + row;
  const simt::Weights<float> weight = weights_.numbers(args.weight);
  if (is_rms) {
    return launch_items(KernelName::kRmsNorm,
                        simt::RmsNormArgs{.x = rows_at<const float>(args.x, x_count),
                                          .weight = weight,
                                          .y = rows_at<float>(args.y, y_count),
                                          .of = args.of},
                        parts);
  }
  launch_items(KernelName::kLayerNorm,
               simt::LayerNormArgs{.x = rows_at<const float>(args.x, x_count),
                                   .weight = weight,
                                   .bias = weights_.numbers(args.bias),
                                   .y = rows_at<float>(args.y, y_count),
                                   .of = args.of},
               parts);
}

void DeviceOps::activate(const LayerBackend::Activate& args) {
  if (args.rows == 0) return;
  const simt::InputCodes packed = codes_for_products(args.rows, args.dim);
  const auto kernel =
      static_cast<KernelName>(static_cast<int>(KernelName::kSilu) + static_cast<int>(args.activation));
  launch_rows(kernel, activation_args(args, packed), packed.is_null() ? args.rows : packed.padded, args.dim);
  if (!packed.is_null()) packing_.remember({args.y, args.rows, args.dim});
}

bool DeviceOps::activates_with(const Projection& projection, const LayerBackend::Activate& args) {
  if (args.rows == 0 || args.rows > kFewRows || args.dim % simt::kChunk != 0) return false;
  if (projection.parts.size() != 1 || !projection.bias.empty()) return false;
  if (!projection.cut.inputs.empty() || !projection.cut.outputs.empty()) return false;
  const PackedMatrix& part = projection.parts.front();
  return part.n == args.dim * (args.is_gated ? 2 : 1) && has_grouped_codes(weights_.matrix(part).form);
}

void DeviceOps::project_and_activate(const Projection& projection, FloatAddress x,
                                     const LayerBackend::Activate& args) {
  const PackedMatrix& part = projection.parts.front();
  const Product product{.matrix = weights_.matrix(part),
                        .part = part,
                        .x = x,
                        .y = args.x,
                        .rows = args.rows,
                        .y_stride = part.n,
                        .y_count = args.rows * part.n};
  const simt::Rows<int> counters = arrivals(kFewRows / simt::kTileRows * (args.dim / simt::kChunk));
  const simt::GroupedInputs inputs = pack_groups({x, args.rows, part.k});
  const simt::InputCodes packed = codes_for_products(args.rows, args.dim);
  launch(kernel_of_form(KernelName::kActivatedFewRowsCentredNibbles, product.matrix.form),
         simt::ActivatedProductArgs{.product = grouped_args(product, inputs),
                                    .activation = activation_args(args, packed),
                                    .function = static_cast<int>(args.activation),
                                    .arrivals = counters},
         shape_of_few_rows(part.n, inputs.padded));
  if (!packed.is_null()) packing_.remember({args.y, args.rows, args.dim});
}

void DeviceOps::softcap(FloatAddress x, int64_t count, float cap) {
  launch_items(KernelName::kSoftcap,
               simt::SoftcapArgs{rows_at<float>(x, count), static_cast<int>(count), cap},
               (count + simt::kWarp - 1) / simt::kWarp);
}

void DeviceOps::run(KernelName kernel, const Elementwise& args) {
  if (args.rows == 0 || args.dim == 0) return;
  const int64_t y_count = (args.rows - 1) * args.y_stride + args.dim;
  launch_items(kernel,
               simt::ElementwiseArgs{.x = rows_at<float>(args.x, (args.rows - 1) * args.x_stride + args.dim),
                                     .y = rows_at<const float>(args.y, y_count),
                                     .rows = static_cast<int>(args.rows),
                                     .dim = static_cast<int>(args.dim),
                                     .x_stride = static_cast<int>(args.x_stride),
                                     .y_stride = static_cast<int>(args.y_stride),
                                     .number = args.number},
               args.rows * ((args.dim + simt::kWarp - 1) / simt::kWarp));
}

void DeviceOps::normalize_heads(const LayerBackend::Attention& attention, std::span<const float> norm,
                                FloatAddress x, int64_t heads, int64_t rows) {
  if (norm.empty() || heads == 0) return;
  const AttentionShape& shape = *attention.shape;
  const bool is_each = shape.qk_norm == QkNorm::kEach;  // each head has its own weights
  const int64_t dim = std::ssize(norm) / (is_each ? heads : 1);
  normalize({.x = x,
             .delta = {},
             .y = x,
             .kind = shape.norm_kind,
             .weight = norm,
             .of = {.rows = static_cast<int>(rows),
                    .parts = static_cast<int>(heads * shape.head_dim / dim),
                    .dim = static_cast<int>(dim),
                    .x_stride = static_cast<int>(shape.qkv_size()),
                    .y_stride = static_cast<int>(shape.qkv_size()),
                    .weight_stride = is_each ? static_cast<int>(dim) : 0,
                    .epsilon = shape.epsilon}});
}

}  // namespace outrider
