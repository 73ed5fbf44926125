// SPDX-License-Identifier: Apache-2.0
#include "device/emulated_device.h"

#include <cstring>
#include <iterator>
#include <new>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

namespace outrider {
namespace {

constexpr std::align_val_t kAlignment{256};

}  // namespace

// Runs the entries of a list, on the thread of the list.
class EmulatedDevice::Runner {
 public:
  explicit Runner(EmulatedDevice& device) : device_(device) {}
  void launch(const DeviceKernel& kernel, const void* args, const LaunchShape& shape) {
    device_.launch_now(kernel, args, shape);
  }
  void copy(DeviceAddress from, DeviceAddress to, int64_t bytes) { device_.copy_now(from, to, bytes); }
  void fill(DeviceAddress to, std::byte value, int64_t bytes) { device_.fill_now(to, value, bytes); }
  int32_t word_at(DeviceAddress address) const {
    int32_t word;
    std::memcpy(&word, device_.place_of(address, sizeof(word)), sizeof(word));
    return word;
  }

 private:
  EmulatedDevice& device_;
};

class EmulatedDevice::List final : public LoadedList {
 public:
  List(EmulatedDevice& device, DeviceList list) : device_(device), list_(std::move(list)) {}
  ~List() override { device_.settle(); }
  void run() override { device_.run_list(list_); }
  bool update(DeviceList list) override {
    device_.settle();
    list_ = std::move(list);
    return true;
  }

 private:
  EmulatedDevice& device_;
  DeviceList list_;
};

EmulatedDevice::~EmulatedDevice() {
  settle();
  for (const auto& [address, bytes] : allocations_)
    operator delete(reinterpret_cast<void*>(address), kAlignment);
}

DeviceAddress EmulatedDevice::allocate(int64_t bytes) {
  count_allocation();
  void* memory = operator new(static_cast<size_t>(bytes), kAlignment);
  std::memset(memory, 0xFF, static_cast<size_t>(bytes));
  const auto address = reinterpret_cast<DeviceAddress>(memory);
  const std::lock_guard lock(mutex_);
  allocations_[address] = bytes;
  return address;
}

void EmulatedDevice::release(DeviceAddress memory) {
  if (memory == 0) return;
  settle();
  const std::lock_guard lock(mutex_);
  OUTRIDER_CHECK(allocations_.erase(memory) == 1);
  operator delete(reinterpret_cast<void*>(memory), kAlignment);
}

int64_t EmulatedDevice::allocated_bytes() const {
  const std::lock_guard lock(mutex_);
  return std::accumulate(allocations_.begin(), allocations_.end(), int64_t{0},
                         [](int64_t sum, const auto& one) { return sum + one.second; });
}

std::byte* EmulatedDevice::place_of(DeviceAddress address, int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto after = allocations_.upper_bound(address);
  OUTRIDER_CHECK(after != allocations_.begin());
  const auto& [begin, size] = *std::prev(after);
  OUTRIDER_CHECK(bytes >= 0 && static_cast<int64_t>(address - begin) + bytes <= size);
  return reinterpret_cast<std::byte*>(address);
}

void EmulatedDevice::upload(std::span<const std::byte> bytes, DeviceAddress to) {
  settle();
  count_upload(bytes);
  if (!bytes.empty()) std::memcpy(place_of(to, std::ssize(bytes)), bytes.data(), bytes.size());
}

void EmulatedDevice::download(DeviceAddress from, std::span<std::byte> bytes) {
  settle();
  count_download(bytes);
  if (!bytes.empty()) std::memcpy(bytes.data(), place_of(from, std::ssize(bytes)), bytes.size());
}

void EmulatedDevice::copy(DeviceAddress from, DeviceAddress to, int64_t bytes) {
  settle();
  count_write();
  const DeviceWait wait(*this);
  copy_now(from, to, bytes);
}

void EmulatedDevice::fill(DeviceAddress to, std::byte value, int64_t bytes) {
  settle();
  count_write();
  const DeviceWait wait(*this);
  fill_now(to, value, bytes);
}

void EmulatedDevice::launch(const DeviceKernel& kernel, const void* args, const LaunchShape& shape) {
  settle();
  count_launch();
  const DeviceWait wait(*this);
  launch_now(kernel, args, shape);
}

void EmulatedDevice::copy_now(DeviceAddress from, DeviceAddress to, int64_t bytes) {
  if (bytes > 0 && from != to)
    std::memcpy(place_of(to, bytes), place_of(from, bytes), static_cast<size_t>(bytes));
}

void EmulatedDevice::fill_now(DeviceAddress to, std::byte value, int64_t bytes) {
  if (bytes > 0) std::memset(place_of(to, bytes), std::to_integer<int>(value), static_cast<size_t>(bytes));
}

void EmulatedDevice::launch_now(const DeviceKernel& kernel, const void* args, const LaunchShape& shape) {
  EmulationOptions options = options_;
  options.seed += static_cast<uint64_t>(launches_++);
  const std::string fault = kernel.emulate(kernel, args, shape, options);
  if (fault.empty()) return;
  log_warning("device kernel " + std::string(kernel.name) + ": " + fault);
  OUTRIDER_CHECK(false);
}

Result<std::unique_ptr<LoadedList>> EmulatedDevice::load(DeviceList list) {
  return std::unique_ptr<LoadedList>(std::make_unique<List>(*this, std::move(list)));
}

MappedMemory EmulatedDevice::allocate_mapped(int64_t bytes) {
  const DeviceAddress address = allocate(bytes);
  std::memset(reinterpret_cast<void*>(address), 0, static_cast<size_t>(bytes));
  return {reinterpret_cast<std::byte*>(address), address};
}

void EmulatedDevice::run_list(const DeviceList& list) {
  settle();
  count_list();
  if (list.has_exchanges()) {
    const DeviceWait wait(*this);
    Runner runner(*this);
    return run_entries(list, runner);
  }
  const std::lock_guard lock(list_mutex_);
  list_ = std::async(std::launch::async, [this, &list] {
    Runner runner(*this);
    run_entries(list, runner);
  });
}

void EmulatedDevice::settle() {
  const std::lock_guard lock(list_mutex_);
  if (!list_.valid()) return;
  const DeviceWait wait(*this);
  list_.wait();
}

int64_t EmulatedDevice::record_event() {
  settle();
  const std::lock_guard lock(mutex_);
  events_[static_cast<size_t>(moments_ % kKeptEvents)] = now_ms();
  return moments_++;
}

double EmulatedDevice::ms_between(int64_t first, int64_t second) {
  const std::lock_guard lock(mutex_);
  const auto ms_of = [&](int64_t moment) {
    OUTRIDER_CHECK(moment < moments_ && moment >= moments_ - kKeptEvents);
    return events_[static_cast<size_t>(moment % kKeptEvents)];
  };
  return ms_of(second) - ms_of(first);
}

}  // namespace outrider
