// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/experts/device_experts.h"

#include <algorithm>

namespace outrider {
namespace {

static_assert(static_cast<int>(RouterWeights::kSoftmax) == static_cast<int>(simt::RouterRule::kSoftmax) &&
              static_cast<int>(RouterWeights::kSigmoidOfChosen) ==
                  static_cast<int>(simt::RouterRule::kSigmoidOfChosen));

template <typename T>
simt::Rows<const T> read_only(const simt::Rows<T>& rows) {
  return {rows.data, rows.count};
}

}  // namespace

DeviceExperts::DeviceExperts(const ExpertTraits& traits, const MlpTraits& mlp, int64_t hidden_size,
                             DeviceOps& ops)
    : traits_(traits),
      mlp_(mlp),
      hidden_size_(hidden_size),
      ops_(ops),
      outputs_(ops.device()),
      values_(ops.device()),
      sums_(ops.device()),
      experts_(ops.device()),
      places_(ops.device()),
      weights_(ops.device()),
      counts_(ops.device()),
      tile_experts_(ops.device()),
      place_rows_(ops.device()),
      place_weights_(ops.device()),
      inputs_(ops.device()),
      gate_up_(ops.device()),
      gated_(ops.device()),
      results_(ops.device()),
      whole_(ops.device()),
      shard_sums_(ops.device()) {}

// Each active expert has at most seven places without a row.
DeviceExperts::Lists DeviceExperts::make_lists(int64_t rows) {
  const int64_t choices = rows * traits_.used, most_active = std::min(choices, traits_.count);
  const int64_t tiles = (choices + (simt::kTileRows - 1) * most_active) / simt::kTileRows;
  const int64_t places = tiles * simt::kTileRows;
  ops_.numbers_in(weights_, choices);
  ops_.numbers_in(place_weights_, places);
  return {.choices = choices,
          .tiles = tiles,
          .experts = ops_.integers_in(experts_, choices),
          .places = ops_.integers_in(places_, choices),
          .weights = rows_of<float>(weights_),
          .counts = ops_.integers_in(counts_, traits_.count),
          .tile_experts = ops_.integers_in(tile_experts_, tiles),
          .place_rows = ops_.integers_in(place_rows_, places),
          .place_weights = rows_of<float>(place_weights_)};
}

void DeviceExperts::choose(const ExpertWeights& layer, const Rows& rows, const Lists& lists) {
  const int64_t outputs = rows.count * traits_.count;
  const FloatAddress of_router = ops_.numbers_in(outputs_, outputs);
  ops_.project(layer.router, rows.router, of_router, rows.count);
  ops_.launch_items(
      KernelName::kChooseExperts,
      simt::ChooseExpertsArgs{.outputs = rows_at<const float>(of_router, outputs),
                              .choice_bias = ops_.weights().numbers(layer.choice_bias),
                              .scales = ops_.weights().numbers(layer.scales),
                              .slots = ops_.slots_of_recorded(rows.count),
                              .values = rows_at<float>(ops_.numbers_in(values_, outputs), outputs),
                              .sums = rows_at<float>(ops_.numbers_in(sums_, rows.count * traits_.groups),
                                                     rows.count * traits_.groups),
                              .experts = lists.experts,
                              .weights = lists.weights,
                              .rows = static_cast<int>(rows.count),
                              .count = static_cast<int>(traits_.count),
                              .used = static_cast<int>(traits_.used),
                              .groups = static_cast<int>(traits_.groups),
                              .used_groups = static_cast<int>(traits_.used_groups),
                              .ranks_groups_by_best = traits_.ranks_groups_by_best ? 1 : 0,
                              .rule = static_cast<simt::RouterRule>(traits_.weights),
                              .scale = static_cast<float>(traits_.scale)},
      rows.count);
}

void DeviceExperts::sort(const Lists& lists) {
  const simt::GroupChoicesArgs args{.experts = read_only(lists.experts),
                                    .weights = read_only(lists.weights),
                                    .counts = lists.counts,
                                    .tiles = lists.tile_experts,
                                    .rows = lists.place_rows,
                                    .place_weights = lists.place_weights,
                                    .places = lists.places,
                                    .choices = static_cast<int>(lists.choices),
                                    .used = static_cast<int>(traits_.used),
                                    .expert_count = static_cast<int>(traits_.count),
                                    .tile_count = static_cast<int>(lists.tiles)};
  ops_.launch_items(KernelName::kCountChoices, args, traits_.count);
  ops_.launch_items(KernelName::kPlaceChoices, args, traits_.count + 1);
}

void DeviceExperts::gather(const Rows& rows, const Lists& lists) {
  const int64_t places = lists.place_count(), dim = hidden_size_;
  ops_.launch_rows(
      KernelName::kCopyListedRows,
      simt::ListedCopyArgs{
          .x = rows_at<const float>(rows.x, rows.count * dim),
          .y = rows_at<float>(ops_.numbers_in(inputs_, places * dim), places * dim),
          .from = read_only(lists.place_rows),
          .to = {},
          .factors = traits_.weighs_inputs ? read_only(lists.place_weights) : simt::Rows<const float>{},
          .rows = static_cast<int>(places),
          .dim = static_cast<int>(dim),
          .x_stride = static_cast<int>(dim),
          .y_stride = static_cast<int>(dim)},
      places, dim);
}

void DeviceExperts::multiply(const ExpertWeights& layer, const Lists& lists) {
  const int64_t places = lists.place_count(), width = layer.experts.front().gate_up.n;
  const int64_t dim = width / (mlp_.is_gated ? 2 : 1);
  const FloatAddress gate_up = ops_.numbers_in(gate_up_, places * width),
                     gated = ops_.numbers_in(gated_, places * dim);
  const simt::Rows<const int> experts = read_only(lists.tile_experts);
  ops_.project_stacked({.stack = layer.stack(&MlpWeights::gate_up),
                        .list = experts,
                        .x = FloatAddress(inputs_.address()),
                        .y = gate_up,
                        .tiles = lists.tiles});
  ops_.activate({.x = gate_up,
                 .y = gated,
                 .rows = places,
                 .dim = dim,
                 .activation = mlp_.activation,
                 .is_gated = mlp_.is_gated});
  FloatAddress inputs = gated;
  if (const ProductCut& cut = layer.cut(); !cut.inputs.empty()) {
    inputs = ops_.numbers_in(whole_, places * traits_.ffn_size);
    ops_.gather(gated, {cut.inputs}, inputs, places);
  }
  ops_.project_stacked({.stack = layer.stack(&MlpWeights::down),
                        .list = experts,
                        .x = inputs,
                        .y = ops_.numbers_in(results_, places * layer.experts.front().down.n),
                        .tiles = lists.tiles});
}

// rows.y = the weighted sums of results, `dim` numbers each.
void DeviceExperts::combine(const Rows& rows, const Lists& lists, int64_t dim) {
  ops_.launch_rows(
      KernelName::kWeightedSums,
      simt::WeightedSumsArgs{
          .x = rows_at<const float>(FloatAddress(results_.address()), lists.place_count() * dim),
          .places = read_only(lists.places),
          .weights = traits_.weighs_inputs ? simt::Rows<const float>{} : read_only(lists.weights),
          .y = rows_at<float>(rows.y, rows.count * dim),
          .rows = static_cast<int>(rows.count),
          .used = static_cast<int>(traits_.used),
          .dim = static_cast<int>(dim)},
      rows.count, dim);
}

void DeviceExperts::run(const ExpertWeights& layer, const Rows& rows) {
  if (rows.count == 0) return;
  const Lists lists = make_lists(rows.count);
  choose(layer, rows, lists);
  sort(lists);
  gather(rows, lists);
  multiply(layer, lists);
  const ProductCut& cut = layer.cut();
  if (cut.outputs.empty()) return combine(rows, lists, hidden_size_);
  const int64_t dim = layer.experts.front().down.n;
  const FloatAddress sums = ops_.numbers_in(shard_sums_, rows.count * dim);
  combine({.router = {}, .x = {}, .y = sums, .count = rows.count}, lists, dim);
  ops_.gather(sums, {cut.outputs}, rows.y, rows.count);
}

}  // namespace outrider
