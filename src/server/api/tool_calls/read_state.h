// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace outrider {

// The answer of a reader to a character. kBroken: the character does not fit and was not taken.
enum class ReadState : uint8_t { kReading, kDone, kBroken };

}  // namespace outrider
