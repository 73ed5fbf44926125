// SPDX-License-Identifier: Apache-2.0
#include "models/backend/device/entry_moves.h"

#include <vector>

#include "kv/device_pages.h"

namespace outrider {
namespace {

constexpr auto kUnitBytes = static_cast<int64_t>(sizeof(uint16_t));

int64_t parts_of(const KvShape& shape) { return shape.layer_count * (shape.values_are_keys ? 1 : 2); }

}  // namespace

EntryMoves::EntryMoves(Device& device, const KvCache& cache)
    : begins_(device, parts_of(cache.shape())), sizes_(device, parts_of(cache.shape())) {
  const DeviceBuffer& memory = dynamic_cast<const DevicePages&>(cache.storage()).memory();
  numbers_ = rows_at<uint16_t>(memory.address(), memory.bytes() / kUnitBytes);
  std::vector<uint64_t> begins;
  std::vector<int> sizes;
  for_each_part(cache.shape(), [&](int64_t begin, int64_t row_bytes) {
    begins.push_back(static_cast<uint64_t>(begin / kUnitBytes));
    sizes.push_back(static_cast<int>(row_bytes / kUnitBytes));
  });
  begins_.write(begins);
  sizes_.write(sizes);
}

void EntryMoves::record(Launcher& launcher, const simt::Trees& trees, const simt::TreeNodes& nodes,
                        const simt::PassRows& rows) const {
  launcher.launch_items(KernelName::kMoveEntries,
                        simt::MoveEntriesArgs{.of = trees,
                                              .nodes = nodes,
                                              .rows = rows,
                                              .cache = numbers_,
                                              .begins = begins_.list(),
                                              .entry_size = sizes_.list(),
                                              .parts = static_cast<int>(sizes_.count())},
                        trees.sequences * sizes_.count());
}

}  // namespace outrider
