// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/blocks/block.h"

namespace outrider {

// The block of this kind in a layer.
std::unique_ptr<Block> make_block(const LayerKind& kind, const BlockSite& site);

}  // namespace outrider
