// SPDX-License-Identifier: Apache-2.0
#include "kv/disk/state_bytes.h"

#include <array>
#include <cstring>
#include <utility>

namespace outrider {

// Entries and updates, then the numbers.
RunParts parts_of(const StateCheckpoints::Copy& copy) {
  const std::array<int32_t, 2> counts = {copy.entries, copy.updates};
  const size_t bytes = copy.numbers.size() * sizeof(float);
  RunParts parts{.bytes = std::vector<std::byte>(sizeof(counts) + bytes), .part_bytes = 0};
  parts.part_bytes = std::ssize(parts.bytes);
  std::memcpy(parts.bytes.data(), counts.data(), sizeof(counts));
  if (bytes > 0) std::memcpy(parts.bytes.data() + sizeof(counts), copy.numbers.data(), bytes);
  return parts;
}

std::optional<StateCheckpoints::Copy> state_of(std::span<const std::byte> bytes, const StateStore& store) {
  std::array<int32_t, 2> counts = {};
  if (bytes.size() < sizeof(counts)) return std::nullopt;
  std::memcpy(counts.data(), bytes.data(), sizeof(counts));
  const size_t rest = bytes.size() - sizeof(counts);
  const size_t numbers = rest / sizeof(float);
  const bool fits = counts[0] >= 0 && counts[1] >= 0 && rest % sizeof(float) == 0 &&
                    std::cmp_equal(numbers, store.numbers(counts[1]));
  if (!fits) return std::nullopt;
  StateCheckpoints::Copy copy{
      .entries = counts[0], .updates = counts[1], .numbers = std::vector<float>(numbers)};
  if (rest > 0) std::memcpy(copy.numbers.data(), bytes.data() + sizeof(counts), rest);
  return copy;
}

}  // namespace outrider
