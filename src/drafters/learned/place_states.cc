// SPDX-License-Identifier: Apache-2.0
#include "drafters/learned/place_states.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "device_kernels/rows/cached_heads.h"

namespace outrider {
namespace {

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

int64_t in_whole_units(int64_t size) {
  return (size + simt::kHeadUnit - 1) / simt::kHeadUnit * simt::kHeadUnit;
}

}  // namespace

PlaceStates::PlaceStates(Device& device, int64_t size, const DeviceDraft::Shape& shape)
    : device_(device),
      size_(size),
      row_size_(in_whole_units(size)),
      most_(shape.max_tokens + 1),
      first_(static_cast<size_t>(shape.max_sequences)),
      max_length_(shape.max_length),
      slots_(static_cast<size_t>(shape.max_sequences * most_)),
      states_(device, shape.max_sequences * most_ * row_size_ * kFloatBytes) {
  std::iota(slots_.begin(), slots_.end(), 0);
}

int64_t PlaceStates::slot(int64_t index, int64_t place) const {
  const int64_t of_sequence = place - first_[static_cast<size_t>(index)];
  OUTRIDER_CHECK(of_sequence >= 0 && of_sequence < most_);
  return index * most_ + of_sequence;
}

DeviceAddress PlaceStates::address(int64_t slot) const {
  return states_.address() + static_cast<DeviceAddress>(slot * row_size_ * kFloatBytes);
}

void PlaceStates::start(int64_t index, int64_t length, std::span<const float> state) {
  first_[static_cast<size_t>(index)] = length - 2;
  device_.upload(std::as_bytes(state), address(slot(index, length - 2)));
}

DevicePassRows::Pages PlaceStates::pages(int64_t index) const {
  const int64_t first = first_[static_cast<size_t>(index)];
  const int64_t count = std::min(most_, max_length_ - first);
  return {std::span(slots_).subspan(static_cast<size_t>(index * most_), static_cast<size_t>(count)), first};
}

void PlaceStates::record_keep(Launcher& launcher, simt::List<int> slots, FloatAddress features,
                              int64_t rows) {
  launcher.launch_items(
      KernelName::kRotateAndStoreF32,
      simt::RotateAndStoreF32Args{.rope = {.x = rows_at<float>(features.address(), rows * size_),
                                           .rotations = {},
                                           .rows = static_cast<int>(rows),
                                           .heads = 1,
                                           .head_dim = static_cast<int>(size_),
                                           .rotated = 0,
                                           .x_stride = static_cast<int>(size_)},
                                  .kv_heads = 1,
                                  .keys = rows_at<float>(states_.address(), states_.bytes() / kFloatBytes),
                                  .values = {},
                                  .slots = slots},
      rows);
}

void PlaceStates::record_gather(Launcher& launcher, simt::List<int> slots, int64_t rows, FloatAddress out) {
  launcher.launch_items(
      KernelName::kReadF32,
      simt::ReadF32Args{.cache = rows_at<const float>(states_.address(), states_.bytes() / kFloatBytes),
                        .slots = slots,
                        .y = rows_at<float>(out.address(), rows * size_),
                        .rows = static_cast<int>(rows),
                        .heads = 1,
                        .head_dim = static_cast<int>(size_),
                        .y_stride = static_cast<int>(size_),
                        .head_stride = static_cast<int>(size_)},
      rows);
}

std::vector<float> PlaceStates::state_before(int64_t index, int64_t length) const {
  std::vector<float> state(static_cast<size_t>(size_));
  device_.download(address(slot(index, length - 2)), std::as_writable_bytes(std::span(state)));
  return state;
}

}  // namespace outrider
