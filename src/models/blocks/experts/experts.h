// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/blocks/block.h"

namespace outrider {

// Experts that rows choose from.
std::unique_ptr<Block> make_experts(const BlockSite& site);
// Experts and a dense MLP, added.
std::unique_ptr<Block> make_experts_and_dense(const BlockSite& site);

}  // namespace outrider
