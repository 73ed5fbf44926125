// SPDX-License-Identifier: Apache-2.0
// Operations over rows that lists name, or that are some numbers apart.
#include <algorithm>
#include <utility>
#include <vector>

#include "models/backend/device/device_ops.h"

namespace outrider {
namespace {

constexpr auto kNumberBytes = static_cast<int64_t>(sizeof(float));

// The numbers from the first to the last of rows that are `stride` apart.
int64_t reach(int64_t rows, int64_t stride, int64_t dim) { return (rows - 1) * stride + dim; }

// Whether every row already is where it goes. Rows rise where both are in the same place.
bool moves_nothing(const LayerBackend::RowCopy& copy) {
  return copy.from.address() == copy.to.address() && copy.from_stride == copy.to_stride &&
         copy.rows.back() + 1 == std::ssize(copy.rows);
}

}  // namespace

void DeviceOps::copy_strided(const LayerBackend::StridedCopy& copy) {
  if (copy.rows == 0 || copy.dim == 0) return;
  if (copy.rows == 1 || (copy.from_stride == copy.dim && copy.to_stride == copy.dim))
    return launcher_.copy(copy.from.address(), copy.to.address(), copy.rows * copy.dim * kNumberBytes);
  launch_rows(
      KernelName::kCopyListedRows,
      simt::ListedCopyArgs{.x = rows_at<const float>(copy.from, reach(copy.rows, copy.from_stride, copy.dim)),
                           .y = rows_at<float>(copy.to, reach(copy.rows, copy.to_stride, copy.dim)),
                           .from = {},
                           .to = {},
                           .factors = {},
                           .rows = static_cast<int>(copy.rows),
                           .dim = static_cast<int>(copy.dim),
                           .x_stride = static_cast<int>(copy.from_stride),
                           .y_stride = static_cast<int>(copy.to_stride)},
      copy.rows, copy.dim);
}

// Recorded rows are all of them, or the wanted ones, or the first ones.
bool DeviceOps::are_wanted(int64_t rows) const {
  return rows < recorded_->tokens.count && !recorded_->wanted.is_null();
}

void DeviceOps::copy_recorded(const LayerBackend::RowCopy& copy) {
  const auto rows = std::ssize(copy.rows);
  if (are_wanted(rows))
    return copy_listed(copy, recorded_->wanted, reach(recorded_->tokens.count, copy.from_stride, copy.dim));
  OUTRIDER_CHECK(copy.rows.back() + 1 == rows);
  if (copy.from.address() != copy.to.address())
    copy_strided({copy.from, copy.from_stride, copy.to, copy.to_stride, rows, copy.dim});
}

void DeviceOps::copy(const LayerBackend::RowCopy& copy) {
  if (copy.rows.empty() || copy.dim == 0) return;
  if (records()) return copy_recorded(copy);
  if (moves_nothing(copy)) return;
  const auto list = listed_rows_.view({copy.rows.begin(), copy.rows.end()});
  copy_listed(copy, rows_of_list(list),
              reach(*std::ranges::max_element(copy.rows) + 1, copy.from_stride, copy.dim));
}

// Rows that move within one place go through other memory, because warps copy in any order.
void DeviceOps::copy_listed(const LayerBackend::RowCopy& copy, simt::Rows<const int> list, int64_t reached) {
  const auto rows = std::ssize(copy.rows);
  const bool is_apart = copy.to.address() >= (copy.from + reached).address() ||
                        copy.from.address() >= (copy.to + reach(rows, copy.to_stride, copy.dim)).address();
  const FloatAddress to = is_apart ? copy.to : numbers_in(copied_, rows * copy.dim);
  const int64_t to_stride = is_apart ? copy.to_stride : copy.dim;
  launch_rows(KernelName::kCopyListedRows,
              simt::ListedCopyArgs{.x = rows_at<const float>(copy.from, reached),
                                   .y = rows_at<float>(to, reach(rows, to_stride, copy.dim)),
                                   .from = list,
                                   .to = {},
                                   .factors = {},
                                   .rows = static_cast<int>(rows),
                                   .dim = static_cast<int>(copy.dim),
                                   .x_stride = static_cast<int>(copy.from_stride),
                                   .y_stride = static_cast<int>(to_stride)},
              rows, copy.dim);
  if (!is_apart) copy_strided({to, to_stride, copy.to, copy.to_stride, rows, copy.dim});
}

void DeviceOps::multiply_rows(const LayerBackend::RowProduct& args) {
  if (args.rows.empty()) return;
  const auto rows = std::ssize(args.rows);
  const bool wanted = records() && are_wanted(rows);
  const int64_t last = wanted ? recorded_->tokens.count : *std::ranges::max_element(args.rows) + 1;
  const int64_t reached = reach(last, args.stride, args.dim);
  const auto list =
      wanted ? recorded_->wanted
             : rows_of_list(fixed_list(listed_rows_, std::vector<int>(args.rows.begin(), args.rows.end())));
  launch_rows(KernelName::kMultiplyListedRows,
              simt::ListedOperandArgs{.x = rows_at<float>(args.x, rows * args.dim),
                                      .y = rows_at<const float>(args.factors, reached),
                                      .list = list,
                                      .rows = static_cast<int>(rows),
                                      .dim = static_cast<int>(args.dim),
                                      .x_stride = static_cast<int>(args.dim),
                                      .y_stride = static_cast<int>(args.stride),
                                      .together = 1},
              rows, args.dim);
}

void DeviceOps::add_silu(const LayerBackend::AddSilu& args) {
  const int64_t numbers = args.rows * args.dim;
  for (int64_t group = 0; group < args.groups; ++group) {
    const FloatAddress y = args.y + group * numbers;
    if (y.address() != args.residual.address())
      launcher_.copy(args.residual.address(), y.address(), numbers * kNumberBytes);
    run(KernelName::kAddPortableSilu, {.x = y,
                                       .y = args.x + group * args.dim,
                                       .rows = args.rows,
                                       .dim = args.dim,
                                       .x_stride = args.dim,
                                       .y_stride = args.groups * args.dim});
  }
}

void DeviceOps::average(const LayerBackend::Means& args) {
  const int64_t numbers = args.rows * args.dim;
  launch_rows(KernelName::kMeans,
              simt::MeansArgs{.x = rows_at<const float>(args.x, numbers * args.count),
                              .y = rows_at<float>(args.y, numbers),
                              .rows = static_cast<int>(args.rows),
                              .count = static_cast<int>(args.count),
                              .dim = static_cast<int>(args.dim)},
              args.rows, args.dim);
}

simt::List<int> DeviceOps::fixed_list(UploadedList<int>& uploaded, std::vector<int> numbers) {
  if (!records()) return uploaded.view(std::move(numbers));
  const auto found = std::ranges::find(kept_lists_, numbers, &KeptList::first);
  if (found != kept_lists_.end()) return found->second.list();
  DeviceNumbers<int> kept(device(), std::ssize(numbers));
  kept.write(numbers);
  return kept_lists_.emplace_back(std::move(numbers), std::move(kept)).second.list();
}

void DeviceOps::place_columns(const LayerBackend::Columns& args, FloatAddress base) {
  std::vector<int> places(static_cast<size_t>(args.width), -1);
  for (int64_t i = 0; i < args.count; ++i) {
    const int64_t column = args.columns.empty() ? i : args.columns[static_cast<size_t>(i)];
    places[static_cast<size_t>(column)] = static_cast<int>(i);
  }
  launch_rows(KernelName::kPlaceColumns,
              simt::ColumnsArgs{.x = rows_at<const float>(args.x, args.rows * args.count),
                                .base = base ? rows_at<const float>(base, args.base_rows * args.width)
                                             : simt::Rows<const float>{},
                                .places = fixed_list(column_places_, std::move(places)),
                                .y = rows_at<float>(args.y, args.rows * args.width),
                                .rows = static_cast<int>(args.rows),
                                .count = static_cast<int>(args.count),
                                .width = static_cast<int>(args.width),
                                .base_rows = static_cast<int>(args.base_rows)},
              args.rows, args.width);
}

void DeviceOps::convolve_blocks(const LayerBackend::Convolution& args) {
  const int64_t of_row = args.taps * (args.dim / args.group);
  const int64_t blocks = (args.rows + args.block - 1) / args.block;
  launch_rows(KernelName::kConvolveBlocks,
              simt::BlockConvolutionArgs{
                  .base = weights_.numbers(args.base),
                  .weights = rows_at<const float>(args.weights, reach(args.rows, args.weight_stride, of_row)),
                  .x = rows_at<float>(args.x, args.rows * args.dim),
                  .rows = static_cast<int>(args.rows),
                  .places = static_cast<int>(args.block),
                  .taps = static_cast<int>(args.taps),
                  .dim = static_cast<int>(args.dim),
                  .group = static_cast<int>(args.group),
                  .weight_stride = static_cast<int>(args.weight_stride)},
              blocks, args.dim);
}

void DeviceOps::step_cells(const LayerBackend::CellStep& args) {
  const int64_t numbers = args.rows * args.dim;
  launch_rows(KernelName::kStepCells,
              simt::CellStepArgs{.x = rows_at<const float>(args.x, 3 * numbers),
                                 .before = rows_at<const float>(args.before, numbers),
                                 .cells = rows_at<float>(args.cells, numbers),
                                 .y = rows_at<float>(args.y, numbers),
                                 .rows = static_cast<int>(args.rows),
                                 .dim = static_cast<int>(args.dim)},
              args.rows, args.dim);
}

template <typename Cached>
void DeviceOps::read_cached(const LayerBackend::Entries& entries, FloatAddress y, KernelName kernel) {
  using Stored = typename Cached::Stored;
  const KvShape& shape = entries.cache->shape();
  const auto& pages = dynamic_cast<const DevicePages&>(entries.cache->storage());
  const KvHeads heads = shape.heads(entries.layers.begin);
  const int64_t parts = shape.values_are_keys ? 1 : 2, of_layer = parts * heads.count * heads.dim;
  const int64_t layers = entries.layers.end - entries.layers.begin, rows = std::ssize(entries.slots);
  const simt::List<int> slots = records() ? simt::List<int>{recorded_->slots.data, rows}
                                          : listed_rows_.view({entries.slots.begin(), entries.slots.end()});
  for (int64_t i = 0; i < layers * parts; ++i) {
    const int64_t layer = entries.layers.begin + i / parts;
    const DeviceAddress at = i % parts == 0 ? pages.keys(layer) : pages.values(layer);
    const int64_t bytes = shape.page_count * shape.page_size * shape.row_bytes(layer);
    const int64_t first = i / parts * of_layer + i % parts * heads.dim;
    launch_items(kernel,
                 simt::ReadHeadsArgs<Cached>{.cache = {reinterpret_cast<const Stored*>(at),
                                                       bytes / static_cast<int64_t>(sizeof(Stored))},
                                             .slots = slots,
                                             .y = rows_at<float>(y + first, rows * layers * of_layer - first),
                                             .rows = static_cast<int>(rows),
                                             .heads = static_cast<int>(heads.count),
                                             .head_dim = static_cast<int>(heads.dim),
                                             .y_stride = static_cast<int>(layers * of_layer),
                                             .head_stride = static_cast<int>(parts * heads.dim)},
                 rows * heads.count);
  }
}

void DeviceOps::read_entries(const LayerBackend::Entries& entries, FloatAddress y) {
  switch (entries.cache->shape().type) {
    case DType::kBF16:
      return read_cached<simt::CachedBf16>(entries, y, KernelName::kReadBf16);
    case DType::kF16:
      return read_cached<simt::CachedF16>(entries, y, KernelName::kReadF16);
    case DType::kE4M3:
      return read_cached<simt::CachedE4m3>(entries, y, KernelName::kReadE4m3);
    case DType::kQ8_0:
      return read_cached<simt::CachedQ8>(entries, y, KernelName::kReadQ8);
    default:
      return read_cached<simt::CachedF32>(entries, y, KernelName::kReadF32);
  }
}

}  // namespace outrider
