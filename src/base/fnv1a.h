// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace outrider {

inline constexpr uint64_t kFnv1aStart = 0xcbf29ce484222325;

// The hash FNV-1a; `hash` is the hash of the bytes before.
inline uint64_t fnv1a(std::span<const std::byte> bytes, uint64_t hash = kFnv1aStart) {
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  return hash;
}
inline uint64_t fnv1a(std::string_view text, uint64_t hash = kFnv1aStart) {
  return fnv1a(std::as_bytes(std::span(text)), hash);
}

}  // namespace outrider
