// SPDX-License-Identifier: Apache-2.0
#include "models/team/recorded_pass.h"

#include <utility>

namespace outrider {

std::vector<std::byte> record_pass(const PassOrder& order) {
  MessageWriter writer;
  each_field(writer, order);
  return {writer.bytes().begin(), writer.bytes().end()};
}

SubsetOutput run_recorded(std::span<const std::byte> pass, Model& model, KvCache& cache) {
  MessageReader reader(pass);
  PassOrder order;
  each_field(reader, order);
  for (const KvMove& move : order.moves) cache.repeat(move);
  if (order.is_subset) return model.forward_subset(order.batch, cache, order.layers);
  return {.logits = model.forward(order.batch, cache), .states = {}};
}

}  // namespace outrider
