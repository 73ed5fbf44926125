// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "models/blocks/block.h"

namespace outrider {

// The gated delta net of Qwen3-Next and Qwen3.5 (delta_ops.h).
std::unique_ptr<Block> make_delta_net(const BlockSite& site);

}  // namespace outrider
