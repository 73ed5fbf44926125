// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device_list.h"
#include "device_kernels/kernel_names.h"
#include "models/backend/device/device_views.h"

namespace outrider {

// Launches kernels and copies, at once or into a list.
class Launcher {
 public:
  explicit Launcher(Device& device) : device_(device) {}

  Device& device() const { return device_; }
  // From now on everything goes to the end of the list; null: it runs at once.
  void record_into(DeviceList* list) { list_ = list; }
  bool records() const { return list_ != nullptr; }
  // Changes with everything that may write to the device's memory, whoever orders it. While a list is
  // recorded only its entries count, as it will run without what happens meanwhile.
  int64_t writes() const {
    return list_ == nullptr ? device_.writes() : static_cast<int64_t>(list_->entries().size());
  }

  template <typename Args>
  void launch(KernelName kernel, const Args& args, const LaunchShape& shape) {
    const DeviceKernel& named = device_kernel(kernel);
    OUTRIDER_CHECK(named.args_bytes == sizeof(args));
    Args cleared = args;
    clear_padding(cleared);
    list_ == nullptr ? device_.launch(named, &cleared, shape) : list_->launch(named, &cleared, shape);
  }
  // A warp for each item.
  template <typename Args>
  void launch_items(KernelName kernel, const Args& args, int64_t items) {
    constexpr int kWarps = 4;
    if (items > 0)
      launch(kernel, args, {.blocks = static_cast<int>((items + kWarps - 1) / kWarps), .warps = kWarps});
  }
  void copy(DeviceAddress from, DeviceAddress to, int64_t bytes) {
    list_ == nullptr ? device_.copy(from, to, bytes) : list_->copy(from, to, bytes);
  }
  void exchange(DeviceLinks& links, std::vector<DeviceTransfer> transfers) {
    if (transfers.empty()) return;
    list_ == nullptr ? links.exchange(transfers) : list_->exchange(links, std::move(transfers));
  }
  void fill(DeviceAddress to, std::byte value, int64_t bytes) {
    list_ == nullptr ? device_.fill(to, value, bytes) : list_->fill(to, value, bytes);
  }

 private:
  // ComparedDevice reads arguments as words, among which it looks for addresses. An old address in the
  // padding beside a number would change the number. Compilers without this function build nothing that
  // compares GPUs.
  template <typename Args>
  static void clear_padding([[maybe_unused]] Args& args) {
#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&args);
#endif
  }

  Device& device_;
  DeviceList* list_ = nullptr;
};

// Numbers in the memory of a device that the host writes and kernels read, or the other way round.
template <typename T>
class DeviceNumbers {
 public:
  DeviceNumbers(Device& device, int64_t count)
      : device_(device), count_(count), memory_(device, std::max<int64_t>(count, 1) * kBytes) {}

  int64_t count() const { return count_; }
  DeviceAddress address() const { return memory_.address(); }
  simt::Rows<T> rows() const { return rows_at<T>(memory_.address(), count_); }
  simt::List<T> list() const { return {reinterpret_cast<const T*>(memory_.address()), count_}; }
  void write(std::span<const T> numbers, int64_t first = 0) {
    OUTRIDER_CHECK(first >= 0 && first + std::ssize(numbers) <= count_);
    device_.upload(std::as_bytes(numbers), memory_.address() + static_cast<DeviceAddress>(first * kBytes));
  }
  std::vector<T> read() const {
    std::vector<T> numbers(static_cast<size_t>(count_));
    device_.download(memory_.address(), std::as_writable_bytes(std::span(numbers)));
    return numbers;
  }

 private:
  static constexpr int64_t kBytes = sizeof(T);

  Device& device_;
  int64_t count_;
  DeviceBuffer memory_;
};

}  // namespace outrider
