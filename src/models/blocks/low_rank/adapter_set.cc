// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/low_rank/adapter_set.h"

#include <algorithm>
#include <utility>

namespace outrider {

AdapterSet::AdapterSet(const KernelTable& kernels, std::vector<const Projection*> products)
    : kernels_(kernels) {
  for (const Projection* product : products) {
    int64_t first = 0;
    for (const Projection::Outputs& outputs : product->outputs) {
      places_.emplace(outputs.matrix, Place{product, first});
      first += outputs.count;
    }
  }
}

Result<int32_t> AdapterSet::add(const AdapterFile& file) {
  Updates packed;
  for (const LowRankUpdate& update : file.updates) {
    const auto [begin, end] = places_.equal_range(update.matrix);
    if (begin == end) {
      return input_error(
          file.path.string() + ": it changes " + update.matrix +
          ", and matrices of this kind take no adapters: experts, routers, the output head and the "
          "inner products of latent attention do not");
    }
    for (auto place = begin; place != end; ++place) {
      PackedUpdate one{.first_output = place->second.first_output, .scale = update.scale};
      OUTRIDER_TRY(one.a, pack(update.a));
      OUTRIDER_TRY(one.b, pack(update.b));
      packed[place->second.product].push_back(std::move(one));
    }
  }
  auto free = std::ranges::find_if(adapters_, &Updates::empty);
  if (free == adapters_.end()) free = adapters_.emplace(free);
  *free = std::move(packed);
  return static_cast<int32_t>(free - adapters_.begin());
}

// Numbers of 16 bits stay so where the products read them exactly, with inputs and sums in f32.
Result<PackedMatrix> AdapterSet::pack(const TensorView& view) const {
  DType type = view.dtype == DType::kF16 || view.dtype == DType::kBF16 ? view.dtype : DType::kF32;
  OUTRIDER_TRY(PackedMatrix matrix, kernels_.layout({{&view, 1}, type}));
  if (matrix.inputs != InputLayout::kF32 && matrix.inputs != InputLayout::kF32Tiles) {
    type = DType::kF32;
    OUTRIDER_TRY(matrix, kernels_.layout({{&view, 1}, type}));
  }
  OUTRIDER_RETURN_IF_ERROR(allocate(matrix));
  kernels_.pack({{&view, 1}, type}, matrix, {0, 1});
  return matrix;
}

void AdapterSet::remove(int32_t adapter) { adapters_[static_cast<size_t>(adapter)].clear(); }

std::span<const PackedUpdate> AdapterSet::updates(int32_t adapter, const Projection& product) const {
  const Updates& updates = adapters_[static_cast<size_t>(adapter)];
  const auto found = updates.find(&product);
  if (found == updates.end()) return {};
  return found->second;
}

int64_t AdapterSet::bytes() const {
  int64_t bytes = 0;
  for (const Updates& adapter : adapters_) {
    for (const auto& [product, updates] : adapter) {
      for (const PackedUpdate& update : updates) bytes += update.a.bytes() + update.b.bytes();
    }
  }
  return bytes;
}

}  // namespace outrider
