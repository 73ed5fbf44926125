// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "device/device_list.h"
#include "device/emulated_device.h"

namespace outrider {

// A device whose every launch is emulated, too: it shows whether its kernels have the bits of their
// emulation. After a launch all memory that its arguments name is compared. It then holds what the emulation
// wrote, so that each kernel answers for itself.
class ComparedDevice final : public Device {
 public:
  struct Comparison {
    int64_t launches = 0;
    int64_t words = 0;      // of 32 bits, compared after launches
    int64_t differing = 0;  // of which both are not NaN
    std::string first = {};
  };

  // It must outlive this object.
  explicit ComparedDevice(Device& tested) : tested_(tested) {}

  std::string_view name() const override { return tested_.name(); }
  std::optional<int64_t> free_bytes() const override { return tested_.free_bytes(); }
  DeviceAddress allocate(int64_t bytes) override;
  void release(DeviceAddress memory) override;
  void upload(std::span<const std::byte> bytes, DeviceAddress to) override;
  void download(DeviceAddress from, std::span<std::byte> bytes) override;
  void copy(DeviceAddress from, DeviceAddress to, int64_t bytes) override;
  void fill(DeviceAddress to, std::byte value, int64_t bytes) override;
  void launch(const DeviceKernel& kernel, const void* args, const LaunchShape& shape) override;
  // Its launches are compared one by one.
  Result<std::unique_ptr<LoadedList>> load(DeviceList list) override;
  MappedMemory allocate_mapped(int64_t bytes) override;
  void release_mapped(const MappedMemory& memory) override;
  void wait() override { tested_.wait(); }
  int64_t record_event() override { return tested_.record_event(); }
  double ms_between(int64_t first, int64_t second) override { return tested_.ms_between(first, second); }

  // By the names of kernels.
  const std::map<std::string_view, Comparison>& comparisons() const { return comparisons_; }

 private:
  class CalledList;

  struct Twin {
    DeviceAddress emulated = 0;
    int64_t bytes = 0;
    const std::byte* host = nullptr;  // of mapped memory
  };
  using Allocation = std::map<DeviceAddress, Twin>::const_iterator;

  // The allocation that the address lies in, or the end.
  Allocation allocation_of(DeviceAddress address) const;
  DeviceAddress emulated(DeviceAddress address) const;
  void forget(DeviceAddress memory);
  void compare_launch(const DeviceKernel& kernel, const void* args, const LaunchShape& shape);
  void compare(const Twin& twin, DeviceAddress address, Comparison& comparison);

  Device& tested_;
  EmulatedDevice oracle_{{}};
  std::map<DeviceAddress, Twin> allocations_;  // by the addresses of the device
  std::map<std::string_view, Comparison> comparisons_;
};

}  // namespace outrider
