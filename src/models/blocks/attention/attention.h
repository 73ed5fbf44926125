// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/blocks/block.h"

namespace outrider {

// Attention over the keys and values of earlier entries, its own or an earlier layer's.
std::unique_ptr<Block> make_attention(const BlockSite& site);

}  // namespace outrider
