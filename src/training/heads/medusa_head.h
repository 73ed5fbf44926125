// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "training/heads/draft_head.h"

namespace outrider::training {

// Medusa-1 (2401.10774): heads on the last hidden state, each for a later token; the target stays frozen.
HeadKind medusa_kind();

}  // namespace outrider::training
