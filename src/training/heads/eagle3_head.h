// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "training/heads/draft_head.h"

namespace outrider::training {

// EAGLE-3 (2503.01840): fused taps, training-time test, a head over the most frequent tokens.
HeadKind eagle3_kind();

}  // namespace outrider::training
