// SPDX-License-Identifier: Apache-2.0
// A pickle -> the tensors of its dictionary; accepted ones must have the sizes that the reader promises.
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/torch/state_dict.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;  // NOLINT: one function
  const auto tensors = read_state_dict({reinterpret_cast<const std::byte*>(data), size}, "input");
  if (!tensors.ok()) return 0;
  for (const PickledTensor& tensor : *tensors) {
    if (tensor.shape.size() != tensor.strides.size()) __builtin_trap();
    for (const int64_t dimension : tensor.shape) {
      if (dimension < 0) __builtin_trap();
    }
  }
  return 0;
}
