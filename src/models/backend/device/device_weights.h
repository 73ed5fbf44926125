// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "device/device.h"
#include "device_kernels/products/device_matrix.h"
#include "kernels/packed_matrix.h"

namespace outrider {

// A matrix in the memory of a device; the views name places there.
struct UploadedMatrix {
  WeightForm form = WeightForm::kBytes;
  simt::GroupedWeights grouped = {};  // of forms of grouped codes
  simt::ChannelWeights channels = {};
  simt::Weights<int> plain = {};  // as words
};

// Weights that lie in this machine's memory, and copies of them on a device, which are made when they are
// first wanted. Weights do not move while the object lives.
class DeviceWeights {
 public:
  explicit DeviceWeights(Device& device) : device_(device) {}

  // Throws std::bad_alloc when the device has no room. Precondition: the matrix is packed for vectors.
  const UploadedMatrix& matrix(const PackedMatrix& packed);
  // Null for no numbers.
  simt::Weights<float> numbers(std::span<const float> numbers);

 private:
  template <typename T>
  simt::Weights<T> upload(std::span<const T> numbers);

  Device& device_;
  std::vector<DeviceBuffer> memory_;
  std::map<const void*, UploadedMatrix> matrices_;
  std::map<const void*, simt::Weights<float>> numbers_;
};

}  // namespace outrider
