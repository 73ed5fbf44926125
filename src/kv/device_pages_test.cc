// SPDX-License-Identifier: Apache-2.0
#include "kv/device_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "device/emulated_device.h"

namespace outrider {
namespace {

constexpr int64_t kDeviceSlots = 8, kDeviceLayers = 2;

// All numbers of a storage; NaN becomes -7.
std::vector<float> all_numbers(const KvStorage& storage, const KvShape& shape) {
  std::vector<float> numbers;
  for (int64_t layer = 0; layer < kDeviceLayers; ++layer) {
    for (const KvPart part : {KvPart::kKeys, KvPart::kValues}) {
      for (int64_t slot = 0; slot < kDeviceSlots; ++slot) {
        std::vector<float> row(static_cast<size_t>(shape.kv_head_count * shape.head_dim));
        storage.read({layer, part, slot}, row.data(), shape.head_dim);
        for (const float number : row) numbers.push_back(std::isnan(number) ? -7.0F : number);
      }
    }
  }
  return numbers;
}

TEST(DevicePages, DoWhatHostPagesDo) {
  for (const bool values_are_keys : {false, true}) {
    for (const DType type : {DType::kF32, DType::kBF16, DType::kF16, DType::kE4M3, DType::kQ8_0}) {
      const KvShape shape{.layer_count = kDeviceLayers,
                          .kv_head_count = 2,
                          .head_dim = 40,
                          .type = type,
                          .page_size = 4,
                          .page_count = kDeviceSlots / 4,
                          .values_are_keys = values_are_keys};
      EmulatedDevice device({});
      HostPages host(shape);
      DevicePages pages(device, shape);
      EXPECT_EQ(all_numbers(pages, shape), all_numbers(host, shape));  // zeros
      std::mt19937 engine(1);
      for (int64_t layer = 0; layer < kDeviceLayers; ++layer) {
        std::vector<std::byte> bytes(static_cast<size_t>(kDeviceSlots * shape.row_bytes()));
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(engine() & 0x3F);  // no NaN
        std::copy(bytes.begin(), bytes.end(), host.keys(layer));
        device.upload(bytes, pages.keys(layer));
        std::ranges::reverse(bytes);
        std::copy(bytes.begin(), bytes.end(), host.values(layer));
        device.upload(bytes, pages.values(layer));
      }
      for (KvStorage* storage : {static_cast<KvStorage*>(&host), static_cast<KvStorage*>(&pages)}) {
        storage->move({.from = 5, .to = 1, .count = 2});
        storage->poison(3, 2);
        storage->clear(7, 1);
      }
      EXPECT_EQ(all_numbers(pages, shape), all_numbers(host, shape));
    }
  }
}

}  // namespace
}  // namespace outrider
