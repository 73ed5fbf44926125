// SPDX-License-Identifier: Apache-2.0
#include "device/cuda_upload_ring.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"

namespace outrider {

// Codes are of no use here: the driver may have ended before.
CudaUploadRing::~CudaUploadRing() {
  if (memory_ == nullptr) return;
  driver_.synchronize();
  driver_.release_host(memory_);
}

int CudaUploadRing::leave_slot() {
  CudaDriver::Handle& left = taken_[slot_];
  if (left == nullptr) {
    if (const int code = driver_.create_event(&left, 0); code != 0) return code;
  }
  if (const int code = driver_.record_event(left, nullptr); code != 0) return code;
  slot_ = (slot_ + 1) % kSlots;
  used_ = 0;
  if (taken_[slot_] == nullptr) return 0;
  const DeviceWait wait(device_);
  return driver_.wait_for_event(taken_[slot_]);
}

int CudaUploadRing::upload(std::span<const std::byte> bytes, CudaDriver::Address to) {
  const std::lock_guard lock(mutex_);
  if (memory_ == nullptr && !has_none_) {
    void* memory = nullptr;
    const int code = driver_.allocate_host(&memory, kSlots * kSlotBytes, kCudaMappedMemory);
    has_none_ = code == kCudaOutOfMemory;
    if (code != 0 && !has_none_) return code;
    if (has_none_) log_info("this machine has no pinned memory left, so copies to the GPU are slower");
    memory_ = static_cast<std::byte*>(memory);
  }
  if (memory_ == nullptr) return driver_.upload(to, bytes.data(), bytes.size());
  while (!bytes.empty()) {
    if (used_ == kSlotBytes) {
      if (const int code = leave_slot(); code != 0) return code;
    }
    const size_t count = std::min(bytes.size(), kSlotBytes - used_);
    std::byte* const place = memory_ + slot_ * kSlotBytes + used_;
    std::memcpy(place, bytes.data(), count);
    if (const int code = driver_.start_upload(to, place, count, nullptr); code != 0) return code;
    constexpr size_t kAlignment = 64;
    used_ = std::min((used_ + count + kAlignment - 1) / kAlignment * kAlignment, kSlotBytes);
    bytes = bytes.subspan(count);
    to += count;
  }
  return 0;
}

}  // namespace outrider
