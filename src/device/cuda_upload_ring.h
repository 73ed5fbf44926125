// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <span>

#include "device/cuda_driver.h"
#include "device/device.h"

namespace outrider {

// Bytes on their way to a GPU. They are copied into pinned memory, from where the GPU takes them while the
// host goes on: packing of weights and their copies overlap, and no step waits for its lists.
class CudaUploadRing {
 public:
  static constexpr size_t kSlots = 8;
  static constexpr size_t kSlotBytes = size_t{4} << 20;

  // The device counts the waits. It outlives this object.
  CudaUploadRing(const CudaDriver& driver, Device& device) : driver_(driver), device_(device) {}
  ~CudaUploadRing();
  CudaUploadRing(const CudaUploadRing&) = delete;
  CudaUploadRing& operator=(const CudaUploadRing&) = delete;

  // Orders the copy after all calls before; the bytes may change when this returns. Returns the driver's
  // code. Precondition: the context is this thread's.
  int upload(std::span<const std::byte> bytes, CudaDriver::Address to);

 private:
  // Goes on at the beginning of the next slot, when the GPU has taken its last bytes.
  int leave_slot();

  const CudaDriver& driver_;
  Device& device_;
  std::mutex mutex_;  // of the members below
  std::byte* memory_ = nullptr;
  bool has_none_ = false;                              // the machine refuses pinned memory
  std::array<CudaDriver::Handle, kSlots> taken_ = {};  // moments; null: the slot was never left
  size_t slot_ = 0;
  size_t used_ = 0;  // bytes of the slot
};

}  // namespace outrider
