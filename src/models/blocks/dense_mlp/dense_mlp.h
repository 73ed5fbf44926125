// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/blocks/block.h"

namespace outrider {

// The MLP that all rows pass. It uses the first two buffers of scratch.
std::unique_ptr<Block> make_dense_mlp(const BlockSite& site);

}  // namespace outrider
