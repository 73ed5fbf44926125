// SPDX-License-Identifier: Apache-2.0
// Bytes of a file of torch.save() -> a list of numbers, tensors; accepted tensors must lie within the bytes.
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/torch/torch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;  // NOLINT: one function
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  static_cast<void>(parse_torch_list(bytes, "input"));
  const auto tensors = parse_torch_file(bytes, "input");
  if (!tensors.ok()) return 0;
  for (const auto& [name, tensor] : *tensors) {
    const bool inside = tensor.data.data() >= bytes.data() &&
                        tensor.data.data() + tensor.data.size() <= bytes.data() + bytes.size();
    if (!inside) __builtin_trap();
    const auto stored = stored_bytes(tensor.shape, find_stored_type(tensor.dtype_name)->bits);
    if (stored != tensor.data.size()) __builtin_trap();
  }
  return 0;
}
