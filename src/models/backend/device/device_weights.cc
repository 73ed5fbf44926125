// SPDX-License-Identifier: Apache-2.0
#include "models/backend/device/device_weights.h"

#include "base/check.h"

namespace outrider {

template <typename T>
simt::Weights<T> DeviceWeights::upload(std::span<const T> numbers) {
  if (numbers.empty()) return {nullptr, 0};
  const DeviceBuffer& buffer = memory_.emplace_back(device_, static_cast<int64_t>(numbers.size_bytes()));
  device_.upload(std::as_bytes(numbers), buffer.address());
  return {reinterpret_cast<const T*>(buffer.address()), std::ssize(numbers)};
}

const UploadedMatrix& DeviceWeights::matrix(const PackedMatrix& packed) {
  const auto [found, is_new] = matrices_.try_emplace(packed.data.data());
  UploadedMatrix& uploaded = found->second;
  if (!is_new) return uploaded;
  auto made = device_matrix(packed);
  OUTRIDER_CHECK(made.ok());
  uploaded.form = made->form;
  uploaded.grouped = made->grouped();
  uploaded.grouped.codes = upload(std::span<const int32_t>(made->codes));
  uploaded.grouped.scales = upload(std::span<const uint16_t>(made->scales));
  uploaded.grouped.mins = upload(std::span<const uint16_t>(made->mins));
  uploaded.grouped.units = upload(std::span<const float>(made->units));
  uploaded.channels = made->channels();
  uploaded.channels.codes = uploaded.grouped.codes;
  uploaded.channels.scales = uploaded.grouped.units;
  uploaded.plain = uploaded.grouped.codes;
  return uploaded;
}

simt::Weights<float> DeviceWeights::numbers(std::span<const float> numbers) {
  if (numbers.empty()) return {nullptr, 0};
  const auto [found, is_new] = numbers_.try_emplace(numbers.data());
  if (is_new) found->second = upload(numbers);
  return found->second;
}

}  // namespace outrider
