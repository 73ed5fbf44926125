// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
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
  simt::Weights<int> plain = {};     // as words
  simt::Weights<float> scales = {};  // of blocks of F8
};

// Matrices of one shape and form, one after the other, which the views name together.
struct UploadedStack {
  UploadedMatrix matrices = {};
  int count = 0;
};

// A table of rows in the memory of a device.
struct UploadedTable {
  const UploadedMatrix* packed = nullptr;  // null: the table is kept as stored
  DType dtype = DType::kF32;               // of plain numbers
  int panel_features = 1;
  simt::Weights<int8_t> plain = {};  // as bytes; null: there are codes
  simt::Weights<int8_t> codes = {};
  simt::Weights<float> scales = {}, mins = {};
  int group = 1;
};

// Weights that lie in this machine's memory, and copies of them on a device, which are made when they are
// first wanted. Weights do not move while the object lives.
class DeviceWeights {
 public:
  // pool: threads that pack; null: the caller packs.
  explicit DeviceWeights(Device& device, ThreadPool* pool = nullptr,
                         ProductProfile profile = ProductProfile::kPortable)
      : device_(device), pool_(pool), profile_(profile) {}

  ProductProfile profile() const { return profile_; }
  // Throws std::bad_alloc when the device has no room. Precondition: the matrix is packed for vectors.
  const UploadedMatrix& matrix(const PackedMatrix& packed);
  // The matrices have one shape and one type.
  const UploadedStack& stack(std::span<const PackedMatrix* const> matrices);
  // Lists of one length, one after the other. Null for no numbers.
  simt::Weights<float> rows(std::span<const std::span<const float>> lists);
  // A table of rows, packed for vectors or as stored, likewise.
  const UploadedTable& table(const PackedMatrix& table);
  // Whether a matrix of grouped codes has k inputs.
  bool has_products_of(int64_t k) const { return grouped_inputs_.contains(k); }
  // Null for no numbers.
  simt::Weights<float> numbers(std::span<const float> numbers);

 private:
  template <typename T>
  simt::Weights<T> upload(std::span<const T> numbers);
  UploadedStack upload_stack(std::span<const PackedMatrix* const> matrices);
  UploadedTable upload_stored(const PackedMatrix& table);

  Device& device_;
  ThreadPool* pool_;
  ProductProfile profile_;
  std::vector<DeviceBuffer> memory_;
  std::set<int64_t> grouped_inputs_;
  std::map<const void*, UploadedMatrix> matrices_;
  std::map<const void*, UploadedStack> stacks_;
  std::map<const void*, UploadedTable> tables_;
  std::map<const void*, simt::Weights<float>> numbers_, rows_;
};

}  // namespace outrider
