// SPDX-License-Identifier: Apache-2.0
// The grids of GGUF's IQ types. An entry of the IQ1 and IQ2 grids is eight numbers of two bits, the first in
// the lowest bits; an entry of the IQ3 grids is four numbers in nibbles. NibbleValues says what they stand
// for.
#pragma once

#include <cstdint>

namespace outrider {

extern const uint16_t kIq1Grid[2048];
extern const uint16_t kIq2XxsGrid[256];
extern const uint16_t kIq2XsGrid[512];
extern const uint16_t kIq2SGrid[1024];
extern const uint16_t kIq3XxsGrid[256];
extern const uint16_t kIq3SGrid[512];

}  // namespace outrider
