// SPDX-License-Identifier: Apache-2.0
// Weights of products in the layouts of the device kernels.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "device_kernels/products/channel_products.h"
#include "device_kernels/products/float_products.h"
#include "device_kernels/products/group_codes.h"
#include "device_kernels/products/tensor_products.h"
#include "kernels/packed_matrix.h"
#include "outrider/result.h"

namespace outrider {

// How the numbers of a matrix are read. Forms of grouped codes have the order of their kernels in
// product_kernels.h.
enum class WeightForm : uint8_t {
  kCentredNibbles,
  kMinNibbles,
  kNarrowMinNibbles,
  kTableNibbles,
  kNarrowTableNibbles,
  kBytes,
  kMinBytes,
  kNarrowBytes,
  kChannels,
  kF32,
  kF16,
  kBF16,
  kF8,
  kTensorF16,  // of the profile cuda_tc
  kTensorBf16,
  kTensorF8,
};

// The profile of devices in which tensor cores multiply 16-bit weights and F8. It has other bits than the
// CPU's tables, and the same ones for all rows.
inline constexpr std::string_view kTensorCoreProfile = "cuda_tc";
enum class ProductProfile : uint8_t { kPortable, kTensorCores };

struct DeviceMatrix {
  WeightForm form = WeightForm::kBytes;
  int64_t n = 0;
  int64_t k = 0;
  std::vector<int32_t> codes = {};  // or plain numbers, [panel][k][16], or tiles of tensor cores
  std::vector<uint16_t> scales = {};
  std::vector<uint16_t> mins = {};
  std::vector<float> units = {};  // or scales of channels, or of blocks of F8, [panel][block][16]
  int numbers[4] = {};

  // As kernels on this machine read it.
  simt::GroupedWeights grouped() const;
  simt::ChannelWeights channels() const;
  simt::Weights<float> block_scales() const;  // null where there are none
  template <typename Stored>
  simt::Weights<Stored> plain() const {
    return {reinterpret_cast<const Stored*>(codes.data()),
            std::ssize(codes) * static_cast<int64_t>(sizeof(int32_t) / sizeof(Stored))};
  }
};

// The numbers of a matrix that a table packed for vectors, rounded as there. Null: no other thread helps.
// Error: another layout.
Result<DeviceMatrix> device_matrix(const PackedMatrix& packed, ThreadPool* pool = nullptr,
                                   ProductProfile profile = ProductProfile::kPortable);

// Bytes of a matrix [n, k] of that type in the memory of a device.
int64_t device_matrix_bytes(DType dtype, int64_t n, int64_t k);

}  // namespace outrider
