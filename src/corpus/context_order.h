// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "corpus/token_text.h"
#include "outrider/result.h"

namespace outrider {

// The places of a text are the positions of tokens that follow a token of the same document. A place's
// context is the tokens before it, the nearest first; places are sorted by kContextDepth tokens of it, equal
// ones by position. So places with the same last tokens lie side by side, whatever their number.

// By token: how many places come before the first one that follows it; one more at the end, of all places.
// Error: more places than 32 bits count.
Result<std::vector<uint32_t>> count_places(const TokenText& text);

// The places that each thread of sort_places() sorts at once, or all after the commonest token where they are
// more. A place takes 20 bytes of memory, and one after that token 52.
constexpr int64_t kPlacesAtOnce = int64_t{16} << 20;

// Hands on all places in their order, in parts. `firsts` is what count_places() says.
Status sort_places(const TokenText& text, std::span<const uint32_t> firsts, int threads,
                   const std::function<Status(std::span<const uint32_t>)>& take);

}  // namespace outrider
