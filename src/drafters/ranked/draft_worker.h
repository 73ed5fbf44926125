// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ranks/communicator.h"

namespace outrider {

// Drafts what rank 0 orders until the job is over. Throws RankFailure and std::bad_alloc; either ends this
// rank.
void serve_drafts(Communicator& ranks);

}  // namespace outrider
