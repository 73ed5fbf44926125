// SPDX-License-Identifier: Apache-2.0
// Places in the memory of a device as kernels see them.
#pragma once

#include <cstdint>

#include "device/device.h"
#include "device_kernels/simt/simt.h"
#include "models/backend/float_address.h"

namespace outrider {

template <typename T>
simt::Rows<T> rows_at(DeviceAddress address, int64_t count) {
  return {reinterpret_cast<T*>(address), count};
}
template <typename T>
simt::Rows<T> rows_at(FloatAddress address, int64_t count) {
  return rows_at<T>(address.address(), count);
}

template <typename T>
simt::Rows<T> rows_of(const DeviceBuffer& buffer) {
  return {reinterpret_cast<T*>(buffer.address()), buffer.bytes() / static_cast<int64_t>(sizeof(T))};
}

inline FloatAddress address_of(simt::Weights<float> numbers) {
  return FloatAddress(reinterpret_cast<uintptr_t>(numbers.data));
}

// A list of the host for kernels that can also read a list of another kernel.
inline simt::Rows<const int> rows_of_list(simt::List<int> list) { return {list.data, list.count}; }

}  // namespace outrider
