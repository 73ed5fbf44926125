// SPDX-License-Identifier: Apache-2.0
// RoPE, the storing of keys and values, and attention.
#include <algorithm>

#include "models/backend/device/attended_lists.h"
#include "models/backend/device/device_ops.h"
#include "models/backend/device/row_limits.h"

namespace outrider {
namespace {

// The numbers of some rows of a list, `dim` each.
std::vector<float> numbers_of_rows(const float* numbers, int64_t dim, std::span<const int32_t> rows) {
  std::vector<float> chosen;
  for (const int32_t row : rows) chosen.insert(chosen.end(), numbers + row * dim, numbers + (row + 1) * dim);
  return chosen;
}

}  // namespace

simt::List<float> DeviceOps::numbers_of_positions(const void* of, int64_t dim,
                                                  const std::function<void(int32_t, float*)>& fill) {
  const int64_t count = recorded_->max_length;
  auto found = of_positions_.find(of);
  if (found == of_positions_.end() || found->second.count() < count * dim) {
    std::vector<float> numbers(static_cast<size_t>(count * dim));
    for (int64_t i = 0; i < count; ++i) fill(static_cast<int32_t>(i), numbers.data() + i * dim);
    if (found != of_positions_.end()) ++moves_;
    of_positions_.erase(of);
    found = of_positions_.try_emplace(of, launcher_.device(), count * dim).first;
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
    args.rotations = numbers_of_positions(of.of_all, of.dim,
                                          [&](int32_t position, float* y) { of.of_all->fill(position, y); });
    args.places = recorded_->positions;
  }
}

simt::RopeArgs DeviceOps::rope_args(const LayerBackend::Attention& attention,
                                    const LayerBackend::RowPlaces& places, int64_t heads) {
  const int64_t rows = std::ssize(places.rows), stride = attention.shape->qkv_size();
  simt::RopeArgs args{.x = rows_at<float>(attention.qkv, rows * stride),
                      .rotations = {},
                      .places = {nullptr, 0},
                      .rows = static_cast<int>(rows),
                      .heads = static_cast<int>(heads),
                      .head_dim = static_cast<int>(attention.shape->head_dim),
                      .rotated = static_cast<int>(places.rotations.dim),
                      .x_stride = static_cast<int>(stride)};
  if (places.rotations.numbers != nullptr) place_rotations(places, args);
  return args;
}

template <typename Cached>
void DeviceOps::store_rotated(const LayerBackend::Attention& attention, const simt::RopeArgs& rope,
                              simt::List<int> slots, KernelName kernel) {
  using Stored = typename Cached::Stored;
  const AttentionShape& shape = *attention.shape;
  const KvShape& kv = attention.cache->shape();
  const auto& pages = dynamic_cast<const DevicePages&>(attention.cache->storage());
  const int64_t bytes = kv.page_count * kv.page_size * kv.row_bytes(attention.layer);
  const auto view = [&](DeviceAddress at) {
    return simt::Rows<Stored>{reinterpret_cast<Stored*>(at), bytes / static_cast<int64_t>(sizeof(Stored))};
  };
  const simt::RotateAndStoreArgs<Cached> args{
      .rope = rope,
      .kv_heads = static_cast<int>(shape.kv_head_count),
      .keys = view(pages.keys(attention.layer)),
      .values = shape.values_are_keys ? simt::Rows<Stored>{} : view(pages.values(attention.layer)),
      .slots = slots};
  launch_items(kernel, args, rope.rows * (rope.heads + (shape.values_are_keys ? 0 : shape.kv_head_count)));
}

void DeviceOps::store(const LayerBackend::Attention& attention, const simt::RopeArgs& rope,
                      simt::List<int> slots) {
  switch (attention.cache->shape().type) {
    case DType::kBF16:
      return store_rotated<simt::CachedBf16>(attention, rope, slots, KernelName::kRotateAndStoreBf16);
    case DType::kF16:
      return store_rotated<simt::CachedF16>(attention, rope, slots, KernelName::kRotateAndStoreF16);
    case DType::kE4M3:
      return store_rotated<simt::CachedE4m3>(attention, rope, slots, KernelName::kRotateAndStoreE4m3);
    case DType::kQ8_0:
      return store_rotated<simt::CachedQ8>(attention, rope, slots, KernelName::kRotateAndStoreQ8);
    default:
      return store_rotated<simt::CachedF32>(attention, rope, slots, KernelName::kRotateAndStoreF32);
  }
}

void DeviceOps::rotate_and_store(const LayerBackend::Attention& attention,
                                 const LayerBackend::RowPlaces& places) {
  const AttentionShape& shape = *attention.shape;
  const int64_t rows = std::ssize(places.rows), kv_heads = shape.stores ? shape.kv_head_count : 0;
  if (rows == 0) return;
  const FloatAddress q = attention.qkv, k = q + shape.q_size(), v = k + shape.kv_size();
  normalize_heads(attention, attention.q_norm, q, shape.head_count, rows);
  normalize_heads(attention, attention.k_norm, k, kv_heads, rows);
  normalize_heads(attention, attention.v_norm, v, kv_heads, rows);
  const simt::RopeArgs rope = rope_args(attention, places, shape.head_count + kv_heads);
  if (kv_heads > 0) {
    store(attention, rope, slots_of(places));
  } else if (!rope.rotations.is_null()) {
    launch_items(KernelName::kRope, rope, rows * shape.head_count);
  }
  if (places.query_factors.empty()) return;
  const simt::List<float> factors = query_factors(places);
  run(KernelName::kScaleRows, {.x = q,
                               .y = FloatAddress(reinterpret_cast<uintptr_t>(factors.data)),
                               .rows = rows,
                               .dim = shape.q_size(),
                               .x_stride = shape.qkv_size(),
                               .y_stride = 1});
}

simt::List<float> DeviceOps::query_factors(const LayerBackend::RowPlaces& places) {
  const QueryFactors& of = places.query_factors;
  if (!records()) return factors_.view(numbers_of_rows(of.numbers.data(), 1, places.rows));
  if (!recorded_->query_factors.is_null()) return recorded_->query_factors;
  const simt::List<float> all = numbers_of_positions(
      of.of_all, 1, [&](int32_t position, float* y) { *y = query_factor(*of.of_all, position); });
  const int64_t rows = std::ssize(places.rows);
  const FloatAddress factors = numbers_in(placed_factors_, rows);
  launch_rows(KernelName::kCopyListedRows,
              simt::ListedCopyArgs{.x = {all.data, all.count},
                                   .y = rows_at<float>(factors, rows),
                                   .from = recorded_->positions,
                                   .to = {},
                                   .factors = {},
                                   .rows = static_cast<int>(rows),
                                   .dim = 1,
                                   .x_stride = 1,
                                   .y_stride = 1},
              rows, 1);
  return {reinterpret_cast<const float*>(factors.address()), rows};
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

// The chunks that a row has at most, which a recorded pass must not know.
int64_t DeviceOps::most_chunks(const AttentionShape& shape, std::span<const AttentionRow> rows) const {
  int64_t longest = 0;
  for (const AttentionRow& row : rows) longest = std::max<int64_t>(longest, row.prefix_len + row.tail_len);
  const int64_t length = records() ? recorded_->max_length : length_bucket(longest);
  return simt::chunks_within(static_cast<int>(length), static_cast<int>(shape.window),
                             static_cast<int>(shape.chunk));
}

// Rows of long texts take turns in the scratch, some together. The chunks of a row cannot: merged apart,
// parts of them would round otherwise.
int64_t DeviceOps::rows_together(const AttentionShape& shape, int64_t rows, int64_t chunks) const {
  const int64_t of_row = chunks * shape.head_count * (shape.head_dim + simt::kSoftmaxNumbers);
  const int64_t most = std::clamp<int64_t>(most_chunk_numbers_ / of_row, 1, rows);
  const int64_t turns = (rows + most - 1) / most;
  return (rows + turns - 1) / turns;
}

simt::ChunkSums DeviceOps::chunk_sums(int64_t heads, int64_t head_dim) {
  const int64_t softmax = heads * simt::kSoftmaxNumbers, outputs = heads * head_dim;
  return {.softmax = rows_at<float>(numbers_in(chunk_softmax_, softmax), softmax),
          .y = rows_at<float>(numbers_in(chunk_sums_, outputs), outputs)};
}

DeviceOps::AttentionKernel DeviceOps::attention_kernel(DType cached) const {
  const bool is_tensor = weights_.profile() == ProductProfile::kTensorCores;
  switch (cached) {
    case DType::kBF16:
      return {is_tensor ? KernelName::kTensorAttentionBf16 : KernelName::kAttentionBf16, is_tensor};
    case DType::kF16:
      return {is_tensor ? KernelName::kTensorAttentionF16 : KernelName::kAttentionF16, is_tensor};
    case DType::kE4M3:
      return {is_tensor ? KernelName::kTensorAttentionE4m3 : KernelName::kAttentionE4m3, is_tensor};
    case DType::kQ8_0:
      return {is_tensor ? KernelName::kTensorAttentionQ8 : KernelName::kAttentionQ8, is_tensor};
    default:
      return {KernelName::kAttentionF32};
  }
}

template <typename Cached>
void DeviceOps::launch_attention(const AttentionKernel& kernel, const simt::AttentionArgs<Cached>& args,
                                 int64_t chunks) {
  constexpr int64_t kWarps = 4;
  const simt::MergedAttention& merged = args.merged;
  // A device has room for no more.
  const auto blocks = [](int64_t items, int64_t warps) {
    return static_cast<int>(std::min<int64_t>((items + warps - 1) / warps, 1024));
  };
  if (kernel.takes_tiles) {
    const int64_t tiles =
        simt::QueryTiles::of(merged, args.kv_heads).items(merged, args.kv_heads, static_cast<int>(chunks));
    launch(kernel.name, args,
           {.blocks = blocks(tiles, simt::kTileWarps),
            .warps = simt::kTileWarps,
            .shared_bytes = simt::kTileWarps * simt::query_bytes(merged.head_dim)});
  } else {
    const int64_t items = chunks * merged.seen.rows * merged.heads * simt::slices_of(merged.head_dim);
    launch(kernel.name, args, {.blocks = blocks(items, kWarps), .warps = kWarps});
  }
}

template <typename Cached>
void DeviceOps::attend_cached(const LayerBackend::Attention& attention, std::span<const AttentionRow> rows,
                              FloatAddress y) {
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
  const int64_t all = std::ssize(rows), chunks = most_chunks(shape, rows);
  const int64_t together = rows_together(shape, all, chunks);
  const simt::ChunkSums sums = chunk_sums(chunks * together * shape.head_count, shape.head_dim);
  const int heads_together =
      simt::heads_merged_together(static_cast<int>(shape.head_count), static_cast<int>(shape.head_dim));
  const simt::Rows<int> counters = arrivals(together * (shape.head_count / heads_together));
  // Rows that take turns are packed together by the product.
  const simt::InputCodes packed =
      together == all ? codes_for_products(all, shape.q_size()) : simt::InputCodes{};
  for (int64_t first = 0; first < all; first += together) {
    const int64_t some = std::min(together, all - first);
    const simt::AttentionArgs<Cached> args{
        .q = rows_at<const float>(attention.qkv + first * shape.qkv_size(),
                                  (some - 1) * shape.qkv_size() + shape.q_size()),
        .k = view(pages.keys(attention.layer)),
        .v = view(pages.values(attention.layer)),
        .merged = {.sums = sums,
                   .y = rows_at<float>(y + first * shape.q_size(), some * shape.q_size()),
                   .seen = {.entries = lists.entries.from(first * simt::RowEntries::kNumbers),
                            .rows = static_cast<int>(some),
                            .window = static_cast<int>(shape.window),
                            .chunk = static_cast<int>(shape.chunk)},
                   .sinks = weights_.numbers(attention.sinks),
                   .heads = static_cast<int>(shape.head_count),
                   .head_dim = static_cast<int>(shape.head_dim),
                   .heads_together = heads_together,
                   .arrivals = counters,
                   .packed = packed},
        .pages = lists.pages,
        .tails = lists.tails,
        .slopes = weights_.numbers(shape.slopes),
        .q_stride = static_cast<int>(shape.qkv_size()),
        .kv_heads = static_cast<int>(shape.kv_head_count),
        .page_size = kv.page_size,
        .scale = shape.scale,
        .softcap = shape.softcap};
    launch_attention(attention_kernel(kv.type), args, chunks);
  }
  if (!packed.is_null()) packing_.remember({y, all, shape.q_size()});
}

void DeviceOps::attend(const LayerBackend::Attention& attention, std::span<const AttentionRow> rows,
                       FloatAddress y) {
  if (rows.empty() || attention.shape->head_count == 0) return;
  switch (attention.cache->shape().type) {
    case DType::kBF16:
      return attend_cached<simt::CachedBf16>(attention, rows, y);
    case DType::kF16:
      return attend_cached<simt::CachedF16>(attention, rows, y);
    case DType::kE4M3:
      return attend_cached<simt::CachedE4m3>(attention, rows, y);
    case DType::kQ8_0:
      return attend_cached<simt::CachedQ8>(attention, rows, y);
    default:
      return attend_cached<simt::CachedF32>(attention, rows, y);
  }
}

}  // namespace outrider
