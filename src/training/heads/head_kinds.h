// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "training/heads/draft_head.h"

namespace outrider::training {

// Every kind of learned drafter that can be trained.
std::vector<HeadKind> head_kinds();

}  // namespace outrider::training
