// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "outrider/result.h"

namespace outrider {

struct LaunchShape {
  int blocks = 1;
  int warps = 1;  // of a block
  int shared_bytes = 0;
};

// How an emulated launch runs.
struct EmulationOptions {
  uint64_t seed = 0;  // of the orders of blocks and warps
  // Whether accesses to shared memory are compared, which takes several times as long.
  bool checks_races = false;
  // Mistakes for tests, made in every warp: this barrier of the block is none (counted from 0), or waits for
  // copies or for previous launches do nothing.
  int skipped_barrier = -1;
  bool skips_copy_waits = false;
  bool skips_wait_for_previous = false;
};

// A kernel as devices know it.
struct DeviceKernel {
  std::string_view name;
  size_t args_bytes;
  // Emulates a launch on this machine. Returns the first fault of the kernel, or an empty text.
  std::string (*emulate)(const DeviceKernel& kernel, const void* args, const LaunchShape& shape,
                         const EmulationOptions& options);
};

// A place in the memory of a device. Only its kernels and copies follow it.
using DeviceAddress = uintptr_t;

class DeviceList;

// A list as a device has it ready. The device, and the memory that the list names, outlive it.
class LoadedList {
 public:
  virtual ~LoadedList() = default;
  // Runs the list once, after all calls before this one. It may return while the list runs; later calls of
  // the device wait until it has run.
  virtual void run() = 0;
  // Takes the places and numbers of a list of the same entries. False: the list cannot be changed to it, and
  // stays as it was.
  virtual bool update(DeviceList list) = 0;
};

// Orders of the host to a device so far.
struct DeviceCounts {
  int64_t launches = 0;  // one by one, not within lists
  int64_t lists = 0;     // that ran
  int64_t uploaded_bytes = 0;
  int64_t downloaded_bytes = 0;
  int64_t allocations = 0;
  double waited_ms = 0;  // of the host, for calls to have run; an emulated device runs them in this time

  DeviceCounts operator-(const DeviceCounts& before) const {
    return {launches - before.launches,
            lists - before.lists,
            uploaded_bytes - before.uploaded_bytes,
            downloaded_bytes - before.downloaded_bytes,
            allocations - before.allocations,
            waited_ms - before.waited_ms};
  }
};

// Memory that host and device both see, also while a list runs.
struct MappedMemory {
  std::byte* host = nullptr;
  DeviceAddress device = 0;
};

// A machine with its own memory that runs kernels. Copies and launches run in the order of the calls;
// downloads return when all before them has run. Errors of the machine end the program, as there is nothing
// to go on with.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string_view name() const = 0;

  // Bytes of its memory that are free; nullopt: it shares this machine's.
  virtual std::optional<int64_t> free_bytes() const { return std::nullopt; }
  // Memory of undefined contents, at a multiple of 256. Throws std::bad_alloc.
  virtual DeviceAddress allocate(int64_t bytes) = 0;
  virtual void release(DeviceAddress memory) = 0;  // 0: nothing happens

  virtual void upload(std::span<const std::byte> bytes, DeviceAddress to) = 0;
  virtual void download(DeviceAddress from, std::span<std::byte> bytes) = 0;
  // The two places do not overlap, or they are the same.
  virtual void copy(DeviceAddress from, DeviceAddress to, int64_t bytes) = 0;
  virtual void fill(DeviceAddress to, std::byte value, int64_t bytes) = 0;

  virtual void launch(const DeviceKernel& kernel, const void* args, const LaunchShape& shape) = 0;

  // Error: the machine has no loops of launches, and the list has one.
  virtual Result<std::unique_ptr<LoadedList>> load(DeviceList list) = 0;
  // Zeros. Throws std::bad_alloc.
  virtual MappedMemory allocate_mapped(int64_t bytes) = 0;
  virtual void release_mapped(const MappedMemory& memory) = 0;

  // Returns when all calls before have run.
  virtual void wait() = 0;
  // A moment in the order of calls. So many moments are kept: a later one takes the place of the oldest.
  static constexpr int64_t kKeptEvents = 256;
  virtual int64_t record_event() = 0;
  // The time between two moments that are kept, which have both passed when this returns.
  virtual double ms_between(int64_t first, int64_t second) = 0;

  DeviceCounts counts() const {
    return {.launches = launches_,
            .lists = lists_,
            .uploaded_bytes = uploaded_bytes_,
            .downloaded_bytes = downloaded_bytes_,
            .allocations = allocations_,
            .waited_ms = waited_ms_};
  }
  void count_wait(double ms) { waited_ms_ += ms; }
  // Calls so far after which an address may have other numbers: launches, lists, uploads, copies, fills and
  // allocations.
  int64_t writes() const { return writes_; }

 protected:
  void count_write() { ++writes_; }  // of a copy or a fill
  void count_launch() {
    ++launches_;
    count_write();
  }
  void count_list() {
    ++lists_;
    count_write();
  }
  void count_upload(std::span<const std::byte> bytes) {
    uploaded_bytes_ += std::ssize(bytes);
    count_write();
  }
  void count_download(std::span<const std::byte> bytes) { downloaded_bytes_ += std::ssize(bytes); }
  void count_allocation() {
    ++allocations_;
    count_write();
  }

 private:
  std::atomic<int64_t> writes_ = 0, launches_ = 0, lists_ = 0, uploaded_bytes_ = 0, downloaded_bytes_ = 0,
                       allocations_ = 0;
  std::atomic<double> waited_ms_ = 0;
};

// Counts the time until its destruction as time in which the host waits for the device.
class DeviceWait {
 public:
  explicit DeviceWait(Device& device) : device_(device), start_(now_ms()) {}
  ~DeviceWait() { device_.count_wait(now_ms() - start_); }
  DeviceWait(const DeviceWait&) = delete;
  DeviceWait& operator=(const DeviceWait&) = delete;

 private:
  Device& device_;
  double start_;
};

// Memory of a device that grows, and is given back in the end. Growing loses the contents.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(Device& device) : device_(&device) {}
  DeviceBuffer(Device& device, int64_t bytes) : device_(&device) { reserve(bytes); }
  ~DeviceBuffer() { device_->release(address_); }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : device_(other.device_),
        address_(std::exchange(other.address_, 0)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  void reserve(int64_t bytes) {
    if (bytes <= bytes_) return;
    device_->release(address_);
    address_ = 0;
    bytes_ = 0;
    address_ = device_->allocate(bytes);
    bytes_ = bytes;
  }
  DeviceAddress address() const { return address_; }
  int64_t bytes() const { return bytes_; }

 private:
  Device* device_;
  DeviceAddress address_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace outrider
