// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/low_rank/adapter_set.h"

#include <algorithm>
#include <utility>

namespace outrider {

int64_t PackedUpdates::bytes() const {
  int64_t bytes = a.bytes();
  for (const Expansion& expansion : expansions) bytes += expansion.b.bytes();
  return bytes;
}

int64_t PackedUpdates::operations() const {
  int64_t operations = a.n * a.k;
  for (const Expansion& expansion : expansions) operations += expansion.b.n * expansion.b.k;
  return operations;
}

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
  std::map<const Projection*, std::vector<Placed>> placed;
  for (const LowRankUpdate& update : file.updates) {
    const auto [begin, end] = places_.equal_range(update.matrix);
    if (begin == end) {
      return input_error(
          file.path.string() + ": it changes " + update.matrix +
          ", and matrices of this kind take no adapters: experts, routers, the output head and the "
          "inner products of latent attention do not");
    }
    for (auto place = begin; place != end; ++place)
      placed[place->second.product].push_back({&update, place->second.first_output});
  }
  Adapter packed;
  for (const auto& [product, updates] : placed) {
    OUTRIDER_TRY(packed[product], pack(updates));
  }
  auto free = std::ranges::find_if(adapters_, &Adapter::empty);
  if (free == adapters_.end()) free = adapters_.emplace(free);
  *free = std::move(packed);
  return static_cast<int32_t>(free - adapters_.begin());
}

Result<std::shared_ptr<const PackedUpdates>> AdapterSet::pack(std::span<const Placed> placed) const {
  PackedUpdates packed;
  std::vector<TensorView> parts;
  int64_t rank = 0;
  for (const Placed& one : placed) {
    PackedUpdates::Expansion expansion{
        .first_rank = rank, .first_output = one.first_output, .scale = one.update->scale};
    OUTRIDER_TRY(expansion.b, pack_matrix({&one.update->b, 1}));
    packed.expansions.push_back(std::move(expansion));
    parts.push_back(one.update->a);
    rank += one.update->a.rows();
  }
  OUTRIDER_TRY(packed.a, pack_matrix(parts));
  return std::make_shared<const PackedUpdates>(std::move(packed));
}

// Numbers of 16 bits stay so where the products read them exactly, with inputs and sums in f32.
Result<PackedMatrix> AdapterSet::pack_matrix(std::span<const TensorView> parts) const {
  DType type = parts.front().dtype;
  const bool is_short = type == DType::kF16 || type == DType::kBF16;
  if (!is_short || !std::ranges::all_of(parts, [&](const TensorView& part) { return part.dtype == type; }))
    type = DType::kF32;
  OUTRIDER_TRY(PackedMatrix matrix, kernels_.layout({parts, type}));
  if (matrix.inputs != InputLayout::kF32 && matrix.inputs != InputLayout::kF32Tiles) {
    type = DType::kF32;
    OUTRIDER_TRY(matrix, kernels_.layout({parts, type}));
  }
  OUTRIDER_RETURN_IF_ERROR(allocate(matrix));
  kernels_.pack({parts, type}, matrix, {0, 1});
  return matrix;
}

void AdapterSet::remove(int32_t adapter) { adapters_[static_cast<size_t>(adapter)].clear(); }

std::shared_ptr<const PackedUpdates> AdapterSet::updates(int32_t adapter, const Projection& product) const {
  const Adapter& updates = adapters_[static_cast<size_t>(adapter)];
  const auto found = updates.find(&product);
  return found == updates.end() ? nullptr : found->second;
}

int64_t AdapterSet::bytes() const {
  int64_t bytes = 0;
  for (const Adapter& adapter : adapters_) {
    for (const auto& [product, updates] : adapter) bytes += updates->bytes();
  }
  return bytes;
}

}  // namespace outrider
