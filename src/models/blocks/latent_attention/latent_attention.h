// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/blocks/block.h"

namespace outrider {

// Attention with keys and values that are projections of one cached vector of an entry (LatentTraits).
std::unique_ptr<Block> make_latent_attention(const BlockSite& site);

}  // namespace outrider
