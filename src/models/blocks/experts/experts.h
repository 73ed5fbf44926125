// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/blocks/block.h"

namespace outrider {

// Experts that rows choose from; `beside`: the dense MLP whose output is added, or null.
std::unique_ptr<Block> make_experts(const BlockSite& site, std::unique_ptr<Block> beside);

}  // namespace outrider
