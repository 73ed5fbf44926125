// SPDX-License-Identifier: Apache-2.0
#include "models/weights/memory_plan.h"

#include <algorithm>

namespace outrider {
namespace {

// The plan in which that many of the layers are streamed.
StreamPlan plan_with(std::span<const size_t> layer_bytes, int64_t streamed) {
  const auto count = std::ssize(layer_bytes);
  StreamPlan plan;
  size_t kept = 0;
  size_t read = 0;
  size_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const size_t bytes = layer_bytes[static_cast<size_t>(i)];
    plan.streamed.push_back((i + 1) * streamed / count > i * streamed / count);
    (plan.streamed.back() ? read : kept) += bytes;
    if (plan.streamed.back()) largest = std::max(largest, bytes);
  }
  plan.streamed_bytes = static_cast<int64_t>(read);
  plan.memory = static_cast<int64_t>(kept + 2 * largest);
  return plan;
}

}  // namespace

StreamPlan plan_streaming(std::span<const size_t> layer_bytes, int64_t memory) {
  int64_t streamed = 0;
  StreamPlan plan = plan_with(layer_bytes, streamed);
  while (plan.memory > memory && streamed < std::ssize(layer_bytes))
    plan = plan_with(layer_bytes, ++streamed);
  return plan;
}

MemoryPlan plan_memory(std::span<const size_t> layer_bytes, const ExpertSizes& experts, int64_t memory) {
  // The experts of a row in one layer are computed while the experts of the next row are read.
  const int64_t least = std::min(experts.count, 2 * experts.used);
  MemoryPlan plan{.layers = plan_streaming(layer_bytes, memory - least * experts.bytes)};
  plan.memory = plan.layers.memory;
  plan.row_bytes = plan.layers.streamed_bytes;
  if (experts.count == 0) return plan;
  plan.kept_experts = std::clamp((memory - plan.layers.memory) / experts.bytes, least, experts.count);
  plan.memory += plan.kept_experts * experts.bytes;
  const double read = 1 - static_cast<double>(plan.kept_experts) / static_cast<double>(experts.count);
  plan.row_bytes += static_cast<int64_t>(read * double(experts.used * experts.layers * experts.bytes));
  return plan;
}

}  // namespace outrider
