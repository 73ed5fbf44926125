// SPDX-License-Identifier: Apache-2.0
// The kinds of blocks, and which of them a layer has.
#pragma once

#include <memory>

#include "models/blocks/block.h"

namespace outrider {

// The block that reads earlier entries in this layer.
std::unique_ptr<Block> make_mixer(const BlockSite& site);
std::unique_ptr<Block> make_mlp(const BlockSite& site);

}  // namespace outrider
