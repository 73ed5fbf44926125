// SPDX-License-Identifier: Apache-2.0
#include "training/head_data/head_batches.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace outrider::training {
namespace {

// Stacks one part of every window's states, f32 (or int64) [windows, length, ...], padded with zeros;
// undefined if that part is.
at::Tensor padded(const std::vector<TargetStates>& states, at::Tensor TargetStates::*part, int64_t length) {
  const at::Tensor& first = states.front().*part;
  if (!first.defined()) return {};
  std::vector<int64_t> shape = first.sizes().vec();
  shape[0] = length;
  shape.insert(shape.begin(), std::ssize(states));
  const auto type = first.is_floating_point() ? at::kFloat : first.scalar_type();
  at::Tensor all = at::zeros(shape, first.options().dtype(type));
  for (size_t i = 0; i < states.size(); ++i) {
    const at::Tensor& rows = states[i].*part;
    all.select(0, static_cast<int64_t>(i)).narrow(0, 0, rows.size(0)).copy_(rows);
  }
  return all;
}

}  // namespace

Result<HeadBatch> make_head_batch(std::span<const Window> windows, StateSource& source, at::Device device) {
  size_t longest = 0;
  for (const Window& window : windows) longest = std::max(longest, window.tokens.size());
  OUTRIDER_TRY(const std::vector<TargetStates> states, source.states(windows));
  const int64_t length = padded_length(static_cast<int64_t>(longest)), count = std::ssize(windows);
  at::Tensor tokens = at::zeros({count, length}, at::kLong);
  at::Tensor counted = at::zeros({count, length}), known = at::zeros({count, length});
  for (int64_t i = 0; i < count; ++i) {
    const Window& window = windows[static_cast<size_t>(i)];
    std::copy(window.tokens.begin(), window.tokens.end(), tokens.data_ptr<int64_t>() + i * length);
    std::copy(window.counted.begin(), window.counted.end(), counted.data_ptr<float>() + i * length);
    std::fill_n(known.data_ptr<float>() + i * length, window.tokens.size(), 1.0f);
  }
  const auto moved = [&](const at::Tensor& tensor) { return tensor.defined() ? tensor.to(device) : tensor; };
  return HeadBatch{.tokens = moved(tokens),
                   .counted = moved(counted),
                   .known = moved(known),
                   .hidden = moved(padded(states, &TargetStates::hidden, length)),
                   .features = moved(padded(states, &TargetStates::features, length)),
                   .keys_values = moved(padded(states, &TargetStates::keys_values, length)),
                   .likeliest = moved(padded(states, &TargetStates::likeliest, length))};
}

}  // namespace outrider::training
