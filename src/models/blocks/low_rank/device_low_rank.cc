// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/low_rank/device_low_rank.h"

namespace outrider {

DeviceLowRank::DeviceLowRank(DeviceOps& ops)
    : ops_(ops), inner_(ops.device()), inputs_(ops.device()), outputs_(ops.device()) {}

DeviceWeights& DeviceLowRank::weights_of(const std::shared_ptr<const PackedUpdates>& updates) {
  std::erase_if(uploaded_, [](const auto& one) { return one.second.updates.expired(); });
  Uploaded& uploaded = uploaded_[updates.get()];
  if (!uploaded.weights) uploaded = {updates, std::make_unique<DeviceWeights>(ops_.device())};
  return *uploaded.weights;
}

// y += factor * scale * B (A x)
void DeviceLowRank::add(const Product& product, const AdaptedRows& rows, const ScaledAdapter& adapter) {
  const auto updates = product.adapters.updates(adapter.adapter, product.projection);
  if (updates == nullptr) return;
  DeviceWeights& weights = weights_of(updates);
  const int64_t count = rows.count, ranks = updates->a.n, n = product.projection.n;
  const FloatAddress inner = ops_.numbers_in(inner_, count * ranks);
  ops_.multiply({.matrix = weights.matrix(updates->a),
                 .part = updates->a,
                 .x = product.x + rows.begin * product.projection.k,
                 .y = inner,
                 .rows = count,
                 .y_stride = ranks,
                 .y_count = count * ranks});
  for (const PackedUpdates::Expansion& expansion : updates->expansions) {
    const PackedMatrix& b = expansion.b;
    const FloatAddress inputs = ops_.numbers_in(inputs_, count * b.k),
                       outputs = ops_.numbers_in(outputs_, count * b.n);
    ops_.copy_strided({inner + expansion.first_rank, ranks, inputs, b.k, count, b.k});
    ops_.multiply({.matrix = weights.matrix(b),
                   .part = b,
                   .x = inputs,
                   .y = outputs,
                   .rows = count,
                   .y_stride = b.n,
                   .y_count = count * b.n});
    ops_.run(KernelName::kAddScaledRows, {.x = product.y + rows.begin * n + expansion.first_output,
                                          .y = outputs,
                                          .rows = count,
                                          .dim = b.n,
                                          .x_stride = n,
                                          .y_stride = b.n,
                                          .number = adapter.factor * expansion.scale});
  }
}

void DeviceLowRank::run(const Product& product) {
  for (const AdaptedRows& rows : product.rows) {
    for (const ScaledAdapter& adapter : rows.adapters) add(product, rows, adapter);
  }
}

}  // namespace outrider
