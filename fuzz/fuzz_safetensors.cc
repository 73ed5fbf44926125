// SPDX-License-Identifier: Apache-2.0
// Safetensors bytes -> container; accepted tensors must cover the data exactly.
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/hf/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;  // NOLINT: one function
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto file = parse_safetensors(bytes, "input");
  if (!file.ok()) return 0;
  size_t covered = 0;
  for (const auto& [name, entry] : file->tensors) {
    covered += entry.data.size();
    const bool inside = entry.data.data() >= bytes.data() + 8 &&
                        entry.data.data() + entry.data.size() <= bytes.data() + bytes.size();
    if (!inside) __builtin_trap();
  }
  if (covered > size - 8) __builtin_trap();
  return 0;
}
