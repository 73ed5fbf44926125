// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "training/heads/draft_head.h"

namespace outrider::training {

// EAGLE-1 (2401.15077), whose heads EAGLE-2 uses unchanged: regression of the target's hidden states.
HeadKind eagle_kind();

}  // namespace outrider::training
