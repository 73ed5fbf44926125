// SPDX-License-Identifier: Apache-2.0
#include "models/backend/device/device_ops.h"

#include <algorithm>

#include "models/backend/device/attended_lists.h"

namespace outrider {
namespace {

// Up to so many rows, warps of a block share a panel; more rows have a warp for each panel.
constexpr int64_t kFewRows = 16;

int64_t panels_of(int64_t features) { return (features + simt::kPanelFeatures - 1) / simt::kPanelFeatures; }

// Whether a row is one part, and rows lie side by side.
bool are_whole_rows(const simt::NormParts& of) {
  return of.parts == 1 && of.x_stride == of.dim && of.y_stride == of.dim;
}

// The numbers of some rows of a list, `dim` each.
std::vector<float> numbers_of_rows(const float* numbers, int64_t dim, std::span<const int32_t> rows) {
  std::vector<float> chosen;
  for (const int32_t row : rows) chosen.insert(chosen.end(), numbers + row * dim, numbers + (row + 1) * dim);
  return chosen;
}

}  // namespace

DeviceOps::DeviceOps(Device& device, ShardExchange* exchange, ThreadPool* pool, ProductProfile profile)
    : launcher_(device),
      exchange_(exchange),
      weights_(device, pool, profile),
      codes_(device),
      scales_(device),
      sums_(device),
      packing_(launcher_),
      copied_(device),
      cut_inputs_(device),
      cut_outputs_(device),
      rotations_(launcher_),
      factors_(launcher_),
      tokens_(launcher_),
      slots_(launcher_),
      entries_(launcher_),
      pages_(launcher_),
      tails_(launcher_),
      listed_rows_(launcher_),
      column_places_(launcher_) {}

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

void DeviceOps::multiply_groups(const Product& product) {
  const PackingMemory::Inputs inputs{product.x, product.rows, product.part.k};
  const simt::GroupedInputs x = pack_groups(inputs);
  const simt::GroupedProductArgs args{.weights = product.matrix.grouped,
                                      .x = x,
                                      .y = rows_at<float>(product.y, product.y_count),
                                      .y_stride = static_cast<int>(product.y_stride)};
  const int form = static_cast<int>(product.matrix.form);
  const auto panels = static_cast<int>(panels_of(product.part.n));
  if (product.rows <= kFewRows) {
    launch(static_cast<KernelName>(static_cast<int>(KernelName::kFewRowsCentredNibbles) + form), args,
           {.blocks = panels * (x.padded / simt::kTileRows),
            .warps = simt::CodeRing::kMostWarps,
            .shared_bytes = simt::FewRowsMemory::kBytes});
  } else {
    launch_items(static_cast<KernelName>(static_cast<int>(KernelName::kManyRowsCentredNibbles) + form), args,
                 int64_t{panels} * ((x.padded + simt::kManyRows - 1) / simt::kManyRows));
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

simt::TensorInputs DeviceOps::pack_tensor(FloatAddress x, int64_t rows, int64_t k, KernelName kernel) {
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

void DeviceOps::multiply_tensor(const Product& product) {
  const bool is_f16 = product.matrix.form == WeightForm::kTensorF16;
  const KernelName pack = is_f16 ? KernelName::kPackF16Inputs : KernelName::kPackBf16Inputs;
  const simt::TensorProductArgs args{.weights = product.matrix.plain,
                                     .x = pack_tensor(product.x, product.rows, product.part.k, pack),
                                     .y = rows_at<float>(product.y, product.y_count),
                                     .n = static_cast<int>(product.part.n),
                                     .k = static_cast<int>(product.part.k),
                                     .y_stride = static_cast<int>(product.y_stride)};
  const int64_t panels = panels_of(product.part.n);
  if (product.rows <= kFewRows) {
    return launch(is_f16 ? KernelName::kFewRowsTensorF16 : KernelName::kFewRowsTensorBf16, args,
                  {.blocks = static_cast<int>(panels * (args.x.padded / simt::kTileRows)),
                   .warps = simt::CodeRing::kMostWarps,
                   .shared_bytes = simt::TensorMemory::kBytes});
  }
  launch_items(is_f16 ? KernelName::kManyRowsTensorF16 : KernelName::kManyRowsTensorBf16, args,
               panels * ((args.x.padded + simt::kTensorRows - 1) / simt::kTensorRows));
}

template <typename Numbers>
void DeviceOps::multiply_plain(const Product& product, KernelName kernel) {
  using Stored = typename Numbers::Stored;
  const simt::Weights<int>& words = product.matrix.plain;
  const simt::FloatProductArgs<Numbers> args{
      .weights = {reinterpret_cast<const Stored*>(words.data),
                  words.count * static_cast<int64_t>(sizeof(int) / sizeof(Stored))},
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
    case WeightForm::kTensorF16:
    case WeightForm::kTensorBf16:
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
  const int64_t numbers = args.rows * args.dim;
  const simt::InputCodes packed = codes_for_products(args.rows, args.dim);
  const auto kernel =
      static_cast<KernelName>(static_cast<int>(KernelName::kSilu) + static_cast<int>(args.activation));
  launch_rows(kernel,
              simt::ActivationArgs{.x = rows_at<const float>(args.x, args.is_gated ? 2 * numbers : numbers),
                                   .y = rows_at<float>(args.y, numbers),
                                   .rows = static_cast<int>(args.rows),
                                   .dim = static_cast<int>(args.dim),
                                   .is_gated = args.is_gated ? 1 : 0,
                                   .packed = packed},
              packed.is_null() ? args.rows : packed.padded, args.dim);
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

namespace {

template <typename Cached>
simt::StoreHeadsArgs<Cached> store_args(const LayerBackend::Attention& attention, FloatAddress x,
                                        DeviceAddress cache, simt::List<int> slots, int64_t rows) {
  using Stored = typename Cached::Stored;
  const AttentionShape& shape = *attention.shape;
  const KvShape& kv = attention.cache->shape();
  const int64_t bytes = kv.page_count * kv.page_size * kv.row_bytes(attention.layer);
  return {.x = rows_at<const float>(x, (rows - 1) * shape.qkv_size() + shape.kv_size()),
          .cache = {reinterpret_cast<Stored*>(cache), bytes / static_cast<int64_t>(sizeof(Stored))},
          .slots = slots,
          .rows = static_cast<int>(rows),
          .heads = static_cast<int>(shape.kv_head_count),
          .head_dim = static_cast<int>(shape.head_dim),
          .x_stride = static_cast<int>(shape.qkv_size())};
}

}  // namespace

void DeviceOps::store(const LayerBackend::Attention& attention, const Stored& args) {
  const int64_t items = args.rows * attention.shape->kv_head_count;
  const auto run = [&]<typename Cached>(KernelName kernel, Cached) {
    launch_items(kernel, store_args<Cached>(attention, args.x, args.cache, args.slots, args.rows), items);
  };
  switch (attention.cache->shape().type) {
    case DType::kBF16:
      return run(KernelName::kStoreBf16, simt::CachedBf16{});
    case DType::kF16:
      return run(KernelName::kStoreF16, simt::CachedF16{});
    case DType::kQ8_0:
      return run(KernelName::kStoreQ8, simt::CachedQ8{});
    default:
      return run(KernelName::kStoreF32, simt::CachedF32{});
  }
}

simt::List<float> DeviceOps::all_rotations(const RotaryEmbedding& embedding) {
  const int64_t count = recorded_->position_count, dim = embedding.rotated();
  auto found = all_rotations_.find(&embedding);
  if (found == all_rotations_.end() || found->second.count() < count * dim) {
    std::vector<float> numbers(static_cast<size_t>(count * dim));
    for (int64_t i = 0; i < count; ++i) embedding.fill(static_cast<int32_t>(i), numbers.data() + i * dim);
    if (found != all_rotations_.end()) ++moves_;
    all_rotations_.erase(&embedding);
    found = all_rotations_.try_emplace(&embedding, launcher_.device(), count * dim).first;
    found->second.write(numbers);
  }
  return found->second.list();
}

void DeviceOps::place_rotations(const LayerBackend::RowPlaces& places, simt::RopeArgs& args) {
  const RowRotations& of = places.rotations;
  if (!records()) {
    args.rotations = rotations_.view(numbers_of_rows(of.numbers, of.dim, places.rows));
    return;
  }
  const auto found =
      std::ranges::find(recorded_->rotations, of.of_all, [](const auto& one) { return one.first; });
  if (found != recorded_->rotations.end()) {
    args.rotations = found->second;
  } else {
    args.rotations = all_rotations(*of.of_all);
    args.places = recorded_->positions;
  }
}

void DeviceOps::rotate(const LayerBackend::Attention& attention, const LayerBackend::RowPlaces& places,
                       int64_t heads) {
  const int64_t rows = std::ssize(places.rows), dim = places.rotations.dim;
  const int64_t stride = attention.shape->qkv_size();
  simt::RopeArgs args{.x = rows_at<float>(attention.qkv, rows * stride),
                      .rotations = {},
                      .places = {nullptr, 0},
                      .rows = static_cast<int>(rows),
                      .heads = static_cast<int>(heads),
                      .head_dim = static_cast<int>(attention.shape->head_dim),
                      .rotated = static_cast<int>(dim),
                      .x_stride = static_cast<int>(stride)};
  place_rotations(places, args);
  launch_items(KernelName::kRope, args, rows * heads);
}

void DeviceOps::rotate_and_store(const LayerBackend::Attention& attention,
                                 const LayerBackend::RowPlaces& places) {
  const AttentionShape& shape = *attention.shape;
  const int64_t rows = std::ssize(places.rows), stride = shape.qkv_size();
  if (rows == 0) return;
  const int64_t kv_heads = shape.stores ? shape.kv_head_count : 0;
  const FloatAddress q = attention.qkv, k = q + shape.q_size(), v = k + shape.kv_size();
  normalize_heads(attention, attention.q_norm, q, shape.head_count, rows);
  normalize_heads(attention, attention.k_norm, k, kv_heads, rows);
  normalize_heads(attention, attention.v_norm, v, kv_heads, rows);
  if (places.rotations.numbers != nullptr) rotate(attention, places, shape.head_count + kv_heads);
  if (!places.query_factors.empty()) {
    const simt::List<float> factors =
        records() ? recorded_->query_factors
                  : factors_.view(numbers_of_rows(places.query_factors.data(), 1, places.rows));
    run(KernelName::kScaleRows, {.x = q,
                                 .y = FloatAddress(reinterpret_cast<uintptr_t>(factors.data)),
                                 .rows = rows,
                                 .dim = shape.q_size(),
                                 .x_stride = stride,
                                 .y_stride = 1});
  }
  if (kv_heads == 0) return;
  const simt::List<int> list = slots_of(places);
  const auto& pages = dynamic_cast<const DevicePages&>(attention.cache->storage());
  store(attention, {k, pages.keys(attention.layer), list, rows});
  if (!shape.values_are_keys) store(attention, {v, pages.values(attention.layer), list, rows});
}

simt::List<int> DeviceOps::slots_of(const LayerBackend::RowPlaces& places) {
  if (records()) return recorded_->slots;
  std::vector<int> slots;
  for (const int32_t row : places.rows) slots.push_back(places.slots[static_cast<size_t>(row)]);
  return slots_.view(std::move(slots));
}

DeviceOps::Attended DeviceOps::attended(std::span<const AttentionRow> rows, int64_t page_size) {
  if (records()) {
    const bool narrows = std::ssize(rows) < recorded_->tokens.count && !recorded_->wanted.is_null();
    return {narrows ? recorded_->wanted_entries : recorded_->entries, recorded_->pages, recorded_->tails};
  }
  AttendedLists lists(rows, page_size);
  return {entries_.view(std::move(lists.entries)), pages_.view(std::move(lists.pages)),
          tails_.view(std::move(lists.tails))};
}

template <typename Cached>
void DeviceOps::attend_cached(const LayerBackend::Attention& attention, std::span<const AttentionRow> rows,
                              FloatAddress y, KernelName kernel) {
  using Stored = typename Cached::Stored;
  const AttentionShape& shape = *attention.shape;
  const KvShape& kv = attention.cache->shape();
  const auto& pages = dynamic_cast<const DevicePages&>(attention.cache->storage());
  const int64_t count =
      kv.page_count * kv.page_size * kv.row_bytes(attention.layer) / static_cast<int64_t>(sizeof(Stored));
  const auto view = [count](DeviceAddress at) {
    return simt::Rows<const Stored>{reinterpret_cast<const Stored*>(at), count};
  };
  const Attended lists = attended(rows, kv.page_size);
  const int64_t numbers = std::ssize(rows) * shape.q_size();
  const simt::AttentionArgs<Cached> args{
      .q = rows_at<const float>(attention.qkv, (std::ssize(rows) - 1) * shape.qkv_size() + shape.q_size()),
      .k = view(pages.keys(attention.layer)),
      .v = view(pages.values(attention.layer)),
      .y = rows_at<float>(y, numbers),
      .entries = lists.entries,
      .pages = lists.pages,
      .tails = lists.tails,
      .slopes = weights_.numbers(shape.slopes),
      .sinks = weights_.numbers(attention.sinks),
      .rows = static_cast<int>(std::ssize(rows)),
      .q_stride = static_cast<int>(shape.qkv_size()),
      .heads = static_cast<int>(shape.head_count),
      .kv_heads = static_cast<int>(shape.kv_head_count),
      .head_dim = static_cast<int>(shape.head_dim),
      .page_size = kv.page_size,
      .window = static_cast<int>(shape.window),
      .chunk = static_cast<int>(shape.chunk),
      .scale = shape.scale,
      .softcap = shape.softcap};
  const int64_t slices = (shape.head_dim + simt::kWarpOutputs - 1) / simt::kWarpOutputs;
  launch_items(kernel, args, std::ssize(rows) * shape.head_count * slices);
}

void DeviceOps::attend(const LayerBackend::Attention& attention, std::span<const AttentionRow> rows,
                       FloatAddress y) {
  if (rows.empty()) return;
  switch (attention.cache->shape().type) {
    case DType::kBF16:
      return attend_cached<simt::CachedBf16>(attention, rows, y, KernelName::kAttentionBf16);
    case DType::kF16:
      return attend_cached<simt::CachedF16>(attention, rows, y, KernelName::kAttentionF16);
    case DType::kQ8_0:
      return attend_cached<simt::CachedQ8>(attention, rows, y, KernelName::kAttentionQ8);
    default:
      return attend_cached<simt::CachedF32>(attention, rows, y, KernelName::kAttentionF32);
  }
}

}  // namespace outrider
