// SPDX-License-Identifier: Apache-2.0
#include "device/compared_device.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "base/check.h"

namespace outrider {
// Runs a list as calls of a device.
class ComparedDevice::CalledList final : public LoadedList {
 public:
  CalledList(ComparedDevice& device, DeviceList list) : device_(device), list_(std::move(list)) {}
  void run() override {
    device_.count_list();
    run_entries(list_, *this);
  }
  bool update(DeviceList list) override {
    list_ = std::move(list);
    return true;
  }

  void launch(const DeviceKernel& kernel, const void* args, const LaunchShape& shape) {
    device_.compare_launch(kernel, args, shape);
  }
  void copy(DeviceAddress from, DeviceAddress to, int64_t bytes) { device_.copy(from, to, bytes); }
  void fill(DeviceAddress to, std::byte value, int64_t bytes) { device_.fill(to, value, bytes); }
  int32_t word_at(DeviceAddress address) {
    int32_t word = 0;
    device_.download(address, std::as_writable_bytes(std::span(&word, 1)));
    return word;
  }

 private:
  ComparedDevice& device_;
  DeviceList list_;
};

DeviceAddress ComparedDevice::allocate(int64_t bytes) {
  count_allocation();
  const DeviceAddress address = tested_.allocate(bytes);
  allocations_[address] = {.emulated = oracle_.allocate(bytes), .bytes = bytes};
  tested_.fill(address, std::byte{0xFF}, bytes);  // as the emulation's
  return address;
}

void ComparedDevice::release(DeviceAddress memory) {
  if (memory == 0) return;
  forget(memory);
  tested_.release(memory);
}

void ComparedDevice::forget(DeviceAddress memory) {
  oracle_.release(emulated(memory));
  allocations_.erase(memory);
}

MappedMemory ComparedDevice::allocate_mapped(int64_t bytes) {
  const MappedMemory memory = tested_.allocate_mapped(bytes);
  allocations_[memory.device] = {.emulated = oracle_.allocate(bytes), .bytes = bytes, .host = memory.host};
  return memory;
}

void ComparedDevice::release_mapped(const MappedMemory& memory) {
  forget(memory.device);
  tested_.release_mapped(memory);
}

Result<std::unique_ptr<LoadedList>> ComparedDevice::load(DeviceList list) {
  return std::unique_ptr<LoadedList>(std::make_unique<CalledList>(*this, std::move(list)));
}

ComparedDevice::Allocation ComparedDevice::allocation_of(DeviceAddress address) const {
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return allocations_.end();
  const auto found = std::prev(after);
  return address - found->first < static_cast<DeviceAddress>(found->second.bytes) ? found
                                                                                  : allocations_.end();
}

DeviceAddress ComparedDevice::emulated(DeviceAddress address) const {
  const Allocation found = allocation_of(address);
  OUTRIDER_CHECK(found != allocations_.end());
  return found->second.emulated + (address - found->first);
}

void ComparedDevice::upload(std::span<const std::byte> bytes, DeviceAddress to) {
  if (bytes.empty()) return;
  count_upload(bytes);
  tested_.upload(bytes, to);
  oracle_.upload(bytes, emulated(to));
}

void ComparedDevice::download(DeviceAddress from, std::span<std::byte> bytes) {
  count_download(bytes);
  tested_.download(from, bytes);
}

void ComparedDevice::copy(DeviceAddress from, DeviceAddress to, int64_t bytes) {
  if (bytes <= 0) return;
  count_write();
  tested_.copy(from, to, bytes);
  oracle_.copy(emulated(from), emulated(to), bytes);
}

void ComparedDevice::fill(DeviceAddress to, std::byte value, int64_t bytes) {
  if (bytes <= 0) return;
  count_write();
  tested_.fill(to, value, bytes);
  oracle_.fill(emulated(to), value, bytes);
}

void ComparedDevice::launch(const DeviceKernel& kernel, const void* args, const LaunchShape& shape) {
  count_launch();
  compare_launch(kernel, args, shape);
}

void ComparedDevice::compare_launch(const DeviceKernel& kernel, const void* args, const LaunchShape& shape) {
  // Words of the arguments that name memory of the device are addresses; other numbers are far below.
  std::vector<std::byte> translated(kernel.args_bytes);
  std::memcpy(translated.data(), args, kernel.args_bytes);
  std::set<DeviceAddress> named;
  for (size_t i = 0; i + sizeof(DeviceAddress) <= translated.size(); i += sizeof(DeviceAddress)) {
    DeviceAddress address;
    std::memcpy(&address, translated.data() + i, sizeof(address));
    const Allocation found = allocation_of(address);
    if (found == allocations_.end()) continue;
    named.insert(found->first);
    const Twin& twin = found->second;
    if (twin.host != nullptr)  // the host may have written there
      oracle_.upload({twin.host, static_cast<size_t>(twin.bytes)}, twin.emulated);
    address = emulated(address);
    std::memcpy(translated.data() + i, &address, sizeof(address));
  }
  tested_.launch(kernel, args, shape);
  oracle_.launch(kernel, translated.data(), shape);
  Comparison& comparison = comparisons_[kernel.name];
  ++comparison.launches;
  for (const DeviceAddress address : named) compare(allocations_.at(address), address, comparison);
}

void ComparedDevice::compare(const Twin& twin, DeviceAddress address, Comparison& comparison) {
  std::vector<std::byte> found(static_cast<size_t>(twin.bytes)), expected(found.size());
  tested_.download(address, found);
  oracle_.download(twin.emulated, expected);
  comparison.words += twin.bytes / 4;
  if (found == expected) return;
  for (size_t i = 0; i + 4 <= found.size(); i += 4) {
    float a, b;
    std::memcpy(&a, &found[i], sizeof(a));
    std::memcpy(&b, &expected[i], sizeof(b));
    const bool same = std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
    if (same || (std::isnan(a) && std::isnan(b))) continue;
    if (comparison.differing++ == 0) {
      comparison.first = "word " + std::to_string(i / 4) + " of " + std::to_string(twin.bytes / 4) + " is " +
                         std::to_string(a) + ", expected " + std::to_string(b);
    }
  }
  tested_.upload(expected, address);
}

}  // namespace outrider
