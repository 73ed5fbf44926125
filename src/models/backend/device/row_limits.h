// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace outrider {

// Rows of a pass that a device repeats from a list, also within a DeviceLoop. The arithmetic of more rows
// takes long beside the orders and the host's part, and rows that nobody uses would cost more.
inline constexpr int64_t kMostListedRows = 64;
// Rows of a host step with tokens that a device chooses. Each has room for all tokens of the vocabulary.
inline constexpr int64_t kMostChosenRows = 32;

// The words that a recorded pass reads, over a cache of that many pages, about. A row has some numbers and
// rotations, the pages of its text, unless a window has left more behind, and a tail of rows of its tree.
constexpr int64_t listed_words(int64_t page_count) {
  constexpr int64_t kOfRow = 1024;
  return kMostListedRows * (kOfRow + page_count + kMostListedRows);
}

// Numbers of the scratch of attention, 256 MiB. Rows of long texts take turns in it.
inline constexpr int64_t kMostChunkNumbers = int64_t{1} << 26;

// Attention has scratch for rows of this length, so that it seldom moves while texts grow.
inline int64_t length_bucket(int64_t longest) {
  constexpr int64_t kLeast = 1024;
  return std::max(kLeast, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(longest))));
}

}  // namespace outrider
