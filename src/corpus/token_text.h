// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "outrider/token.h"

namespace outrider {

// Tokens of context by which the places of a corpus are sorted.
constexpr int kContextDepth = 32;
// Separators before the first document, so that a place has so many tokens before it.
constexpr int64_t kTextPadding = 64;

// Documents of token ids with `separator`, the vocabulary's size, before each of them and at the end. Ids
// have 2 bytes where all fit, else 4.
struct TokenText {
  std::span<const std::byte> bytes;
  int width = 2;  // bytes of an id
  TokenId separator = 0;

  static int width_for(TokenId separator) { return separator <= 0xFFFF ? 2 : 4; }
  int64_t size() const { return static_cast<int64_t>(bytes.size()) / width; }
  TokenId operator[](int64_t position) const {
    if (width == 2) {
      uint16_t id = 0;
      std::memcpy(&id, bytes.data() + 2 * position, sizeof(id));
      return id;
    }
    TokenId id = 0;
    std::memcpy(&id, bytes.data() + 4 * position, sizeof(id));
    return id;
  }
};

}  // namespace outrider
