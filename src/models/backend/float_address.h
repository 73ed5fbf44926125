// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace outrider {

// The address of f32 in the memory of a LayerBackend. Others may count from it, but only the operations of
// the backend read and write there.
class FloatAddress {
 public:
  FloatAddress() = default;
  explicit FloatAddress(uintptr_t address) : address_(address) {}

  uintptr_t address() const { return address_; }
  explicit operator bool() const { return address_ != 0; }
  FloatAddress operator+(int64_t count) const {
    return FloatAddress(address_ + static_cast<uintptr_t>(count) * sizeof(float));
  }

 private:
  uintptr_t address_ = 0;
};

}  // namespace outrider
