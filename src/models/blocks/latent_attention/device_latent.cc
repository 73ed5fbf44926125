// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/latent_attention/device_latent.h"

#include <utility>
#include <vector>

namespace outrider {

DeviceLatent::DeviceLatent(const LatentTraits& traits, int64_t heads, DeviceOps& ops)
    : traits_(traits),
      heads_(heads),
      ops_(ops),
      query_vector_(ops.device()),
      query_rows_(ops.device()),
      entry_rows_(ops.device()),
      inputs_(ops.device()),
      outputs_(ops.device()),
      tile_heads_(ops.launcher()),
      query_numbers_(ops.launcher()),
      vector_numbers_(ops.launcher()) {}

DeviceLatent::Places DeviceLatent::place(int64_t rows) {
  const int64_t tiles = (rows + simt::kTileRows - 1) / simt::kTileRows;  // of a head
  std::vector<int> heads, queries, vectors;
  for (int64_t head = 0; head < heads_; ++head) {
    heads.insert(heads.end(), static_cast<size_t>(tiles), static_cast<int>(head));
    for (int64_t row = 0; row < tiles * simt::kTileRows; ++row) {
      const bool is_row = row < rows;
      queries.push_back(is_row ? static_cast<int>(row * heads_ + head) : -1);
      vectors.push_back(is_row ? static_cast<int>(row * (heads_ + 1) + head) : -1);
    }
  }
  return {.tiles = heads_ * tiles,
          .heads = rows_of_list(ops_.fixed_list(tile_heads_, std::move(heads))),
          .queries = rows_of_list(ops_.fixed_list(query_numbers_, std::move(queries))),
          .vectors = rows_of_list(ops_.fixed_list(vector_numbers_, std::move(vectors)))};
}

void DeviceLatent::multiply(const std::vector<Projection>& heads, const Places& places,
                            const HeadVectors& from, const HeadVectors& to) {
  const int64_t n = heads.front().n, k = heads.front().k, count = places.count();
  const FloatAddress inputs = ops_.numbers_in(inputs_, count * k),
                     outputs = ops_.numbers_in(outputs_, count * n);
  ops_.launch_rows(
      KernelName::kCopyListedRows,
      simt::ListedCopyArgs{.x = rows_at<const float>(from.at, (from.count - 1) * from.stride + k),
                           .y = rows_at<float>(inputs, count * k),
                           .from = from.numbers,
                           .to = {},
                           .factors = {},
                           .rows = static_cast<int>(count),
                           .dim = static_cast<int>(k),
                           .x_stride = static_cast<int>(from.stride),
                           .y_stride = static_cast<int>(k)},
      count, k);
  std::vector<const Projection*> stack;
  for (const Projection& head : heads) stack.push_back(&head);
  ops_.project_stacked(
      {.stack = stack, .list = places.heads, .x = inputs, .y = outputs, .tiles = places.tiles});
  ops_.launch_rows(KernelName::kCopyListedRows,
                   simt::ListedCopyArgs{.x = rows_at<const float>(outputs, count * n),
                                        .y = rows_at<float>(to.at, (to.count - 1) * to.stride + n),
                                        .from = {},
                                        .to = to.numbers,
                                        .factors = {},
                                        .rows = static_cast<int>(count),
                                        .dim = static_cast<int>(n),
                                        .x_stride = static_cast<int>(n),
                                        .y_stride = static_cast<int>(to.stride)},
                   count, n);
}

void DeviceLatent::split_pairs(const HeadVectors& from, const HeadVectors& to, int64_t rows, int64_t parts) {
  const auto dim = static_cast<int>(traits_.rope_dim);
  ops_.launch_items(
      KernelName::kSplitPairs,
      simt::SplitPairsArgs{.x = rows_at<const float>(from.at, (rows * from.count - 1) * from.stride + dim),
                           .y = rows_at<float>(to.at, ((rows - 1) * to.count + parts - 1) * to.stride + dim),
                           .rows = static_cast<int>(rows),
                           .parts = static_cast<int>(parts),
                           .dim = dim,
                           .x_row_stride = static_cast<int>(from.count * from.stride),
                           .x_part_stride = static_cast<int>(from.stride),
                           .y_row_stride = static_cast<int>(to.count * to.stride),
                           .y_part_stride = static_cast<int>(to.stride)},
      rows * parts);
}

void DeviceLatent::make_entries(const LatentWeights& weights, FloatAddress qkv, int64_t rows) {
  const int64_t size = traits_.entry_size();
  const FloatAddress entries(entry_rows_.address()), out = qkv + heads_ * size;
  split_pairs({.at = entries + traits_.rank, .stride = size, .count = 1},
              {.at = out, .stride = size, .count = heads_ + 1}, rows, 1);
  ops_.normalize({.x = entries,
                  .delta = {},
                  .y = out + traits_.rope_dim,
                  .weight = weights.entry_norm,
                  .of = {.rows = static_cast<int>(rows),
                         .parts = 1,
                         .dim = static_cast<int>(traits_.rank),
                         .x_stride = static_cast<int>(size),
                         .y_stride = static_cast<int>((heads_ + 1) * size),
                         .weight_stride = 0,
                         .epsilon = kLatentEpsilon}});
}

void DeviceLatent::make_queries(const LatentWeights& weights, FloatAddress input, FloatAddress qkv,
                                int64_t rows) {
  const int64_t size = traits_.entry_size(), query_dim = traits_.query_dim(), vector = traits_.query_rank;
  FloatAddress query_input = input;
  ops_.project(weights.entry, input, ops_.numbers_in(entry_rows_, rows * size), rows);
  if (weights.query_down.n != 0) {
    query_input = ops_.numbers_in(query_vector_, rows * vector);
    ops_.project(weights.query_down, input, query_input, rows);
    ops_.normalize({.x = query_input,
                    .delta = {},
                    .y = query_input,
                    .weight = weights.query_norm,
                    .of = {.rows = static_cast<int>(rows),
                           .parts = 1,
                           .dim = static_cast<int>(vector),
                           .x_stride = static_cast<int>(vector),
                           .y_stride = static_cast<int>(vector),
                           .weight_stride = 0,
                           .epsilon = kLatentEpsilon}});
  }
  const FloatAddress queries = ops_.numbers_in(query_rows_, rows * weights.queries.n);
  ops_.project(weights.queries, query_input, queries, rows);
  make_entries(weights, qkv, rows);
  split_pairs({.at = queries + traits_.plain_dim, .stride = query_dim, .count = heads_},
              {.at = qkv, .stride = size, .count = heads_ + 1}, rows, heads_);
  const Places places = place(rows);
  multiply(weights.keys, places,
           {.at = queries, .stride = query_dim, .count = rows * heads_, .numbers = places.queries},
           {.at = qkv + traits_.rope_dim,
            .stride = size,
            .count = rows * (heads_ + 1),
            .numbers = places.vectors});
}

void DeviceLatent::read_values(const LatentWeights& weights, FloatAddress attended, FloatAddress y,
                               int64_t rows) {
  const Places places = place(rows);
  multiply(weights.values, places,
           {.at = attended + traits_.rope_dim,
            .stride = traits_.entry_size(),
            .count = rows * heads_,
            .numbers = places.queries},
           {.at = y, .stride = traits_.value_dim, .count = rows * heads_, .numbers = places.queries});
}

}  // namespace outrider
