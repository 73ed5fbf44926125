// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <vector>

#include "device/device.h"
#include "device/device_list.h"

namespace outrider {

// A device on this machine: kernels are emulated, and every fault of one ends the program. Fresh memory is
// NaN. Each launch has other orders of blocks and warps. A list runs on another thread, or, where it has
// exchanges with other ranks, before the call returns.
class EmulatedDevice final : public Device {
 public:
  explicit EmulatedDevice(const EmulationOptions& options) : options_(options) {}
  ~EmulatedDevice() override;

  std::string_view name() const override { return "emulated"; }
  DeviceAddress allocate(int64_t bytes) override;
  void release(DeviceAddress memory) override;
  void upload(std::span<const std::byte> bytes, DeviceAddress to) override;
  void download(DeviceAddress from, std::span<std::byte> bytes) override;
  void copy(DeviceAddress from, DeviceAddress to, int64_t bytes) override;
  void fill(DeviceAddress to, std::byte value, int64_t bytes) override;
  void launch(const DeviceKernel& kernel, const void* args, const LaunchShape& shape) override;
  Result<std::unique_ptr<LoadedList>> load(DeviceList list) override;
  MappedMemory allocate_mapped(int64_t bytes) override;
  void release_mapped(const MappedMemory& memory) override { release(memory.device); }
  void wait() override { settle(); }
  int64_t record_event() override;
  double ms_between(int64_t first, int64_t second) override;

  int64_t launches() const { return launches_; }
  int64_t allocated_bytes() const;

 private:
  class List;
  class Runner;

  // Ends the program unless the bytes lie in one allocation.
  std::byte* place_of(DeviceAddress address, int64_t bytes) const;
  void run_list(const DeviceList& list);
  // Returns when no list runs.
  void settle();
  void copy_now(DeviceAddress from, DeviceAddress to, int64_t bytes);
  void fill_now(DeviceAddress to, std::byte value, int64_t bytes);
  void launch_now(const DeviceKernel& kernel, const void* args, const LaunchShape& shape);

  EmulationOptions options_;
  mutable std::mutex mutex_;                      // of the next three
  std::map<DeviceAddress, int64_t> allocations_;  // bytes
  std::array<double, kKeptEvents> events_ = {};   // milliseconds, a ring
  int64_t moments_ = 0;                           // that were recorded
  std::atomic<int64_t> launches_ = 0;
  std::mutex list_mutex_;
  std::future<void> list_;  // that runs, or ran last
};

}  // namespace outrider
