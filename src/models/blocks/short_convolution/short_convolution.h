// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/blocks/block.h"

namespace outrider {

// The short convolution of LFM2 (convolution_ops.h).
std::unique_ptr<Block> make_short_convolution(const BlockSite& site);

}  // namespace outrider
