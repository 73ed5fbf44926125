// SPDX-License-Identifier: Apache-2.0
#include "models/backend/device/device_weights.h"

#include <array>

#include "base/check.h"
#include "device_kernels/products/stored_codes.h"

namespace outrider {

namespace {

// Copies lists of several matrices, which have one length each, one after the other.
class Copies {
 public:
  Copies(Device& device, std::vector<DeviceBuffer>& memory, int64_t matrices)
      : device_(device), memory_(memory), matrices_(matrices) {}

  // Copies the list of this matrix; returns all lists.
  template <typename T>
  simt::Weights<T> put(size_t list, const std::vector<T>& numbers) {
    if (numbers.empty()) return {nullptr, 0};
    const auto bytes = static_cast<int64_t>(numbers.size() * sizeof(T));
    DeviceAddress& begin = begins_[list];
    if (matrix_ == 0) begin = memory_.emplace_back(device_, matrices_ * bytes).address();
    device_.upload(std::as_bytes(std::span(numbers)), begin + static_cast<DeviceAddress>(matrix_ * bytes));
    return {reinterpret_cast<const T*>(begin), matrices_ * std::ssize(numbers)};
  }
  void next() { ++matrix_; }

 private:
  Device& device_;
  std::vector<DeviceBuffer>& memory_;
  int64_t matrices_;
  int64_t matrix_ = 0;
  std::array<DeviceAddress, 4> begins_ = {};
};

}  // namespace

template <typename T>
simt::Weights<T> DeviceWeights::upload(std::span<const T> numbers) {
  if (numbers.empty()) return {nullptr, 0};
  const DeviceBuffer& buffer = memory_.emplace_back(device_, static_cast<int64_t>(numbers.size_bytes()));
  device_.upload(std::as_bytes(numbers), buffer.address());
  return {reinterpret_cast<const T*>(buffer.address()), std::ssize(numbers)};
}

UploadedStack DeviceWeights::upload_stack(std::span<const PackedMatrix* const> matrices) {
  UploadedStack stack{.count = static_cast<int>(matrices.size())};
  UploadedMatrix& all = stack.matrices;
  Copies copies(device_, memory_, std::ssize(matrices));
  for (const PackedMatrix* packed : matrices) {
    auto made = device_matrix(*packed, pool_, profile_);
    OUTRIDER_CHECK(made.ok());
    all.form = made->form;
    all.grouped = made->grouped();
    all.channels = made->channels();
    all.scales = made->block_scales();
    all.grouped.codes = copies.put(0, made->codes);
    all.grouped.scales = copies.put(1, made->scales);
    all.grouped.mins = copies.put(2, made->mins);
    all.grouped.units = copies.put(3, made->units);
    copies.next();
  }
  if (!all.grouped.scales.is_null()) grouped_inputs_.insert(matrices.front()->k);
  all.channels.codes = all.plain = all.grouped.codes;
  all.channels.scales = all.grouped.units;
  if (!all.scales.is_null()) all.scales = all.grouped.units;
  return stack;
}

const UploadedMatrix& DeviceWeights::matrix(const PackedMatrix& packed) {
  const auto [found, is_new] = matrices_.try_emplace(packed.data.data());
  const PackedMatrix* const one = &packed;
  if (is_new) found->second = upload_stack({&one, 1}).matrices;
  return found->second;
}

const UploadedStack& DeviceWeights::stack(std::span<const PackedMatrix* const> matrices) {
  const auto [found, is_new] = stacks_.try_emplace(matrices.front()->data.data());
  if (is_new) found->second = upload_stack(matrices);
  return found->second;
}

simt::Weights<float> DeviceWeights::rows(std::span<const std::span<const float>> lists) {
  if (lists.front().empty()) return {nullptr, 0};
  const auto [found, is_new] = rows_.try_emplace(lists.front().data());
  if (!is_new) return found->second;
  std::vector<float> all;
  for (const std::span<const float> list : lists) all.insert(all.end(), list.begin(), list.end());
  return found->second = upload(std::span<const float>(all));
}

const UploadedTable& DeviceWeights::table(const PackedMatrix& table) {
  const auto [found, is_new] = tables_.try_emplace(table.data.data());
  UploadedTable& uploaded = found->second;
  if (!is_new) return uploaded;
  if (table.layout == WeightLayout::kRows) return uploaded = upload_stored(table);
  uploaded.packed = &matrix(table);
  const simt::Weights<int>& words = uploaded.packed->plain;
  uploaded.plain = {reinterpret_cast<const int8_t*>(words.data),
                    words.count * static_cast<int64_t>(sizeof(int))};
  uploaded.dtype = table.dtype;
  uploaded.panel_features = static_cast<int>(table.panel_features);
  return uploaded;
}

UploadedTable DeviceWeights::upload_stored(const PackedMatrix& table) {
  UploadedTable uploaded{.dtype = table.dtype};
  if (has_codes(table.dtype)) {
    const StoredCodes stored = stored_codes(table);
    uploaded.codes = upload(std::span<const int8_t>(stored.codes));
    uploaded.scales = upload(std::span<const float>(stored.scales));
    uploaded.mins = upload(std::span<const float>(stored.mins));
    uploaded.group = stored.group;
    return uploaded;
  }
  const auto* bytes = reinterpret_cast<const int8_t*>(table.data.data());
  uploaded.plain = upload(std::span<const int8_t>(bytes, static_cast<size_t>(table.bytes())));
  return uploaded;
}

simt::Weights<float> DeviceWeights::numbers(std::span<const float> numbers) {
  if (numbers.empty()) return {nullptr, 0};
  const auto [found, is_new] = numbers_.try_emplace(numbers.data());
  if (is_new) found->second = upload(numbers);
  return found->second;
}

}  // namespace outrider
