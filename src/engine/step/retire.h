// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/sequence.h"
#include "engine/step/step_parts.h"

namespace outrider {

// Tells the drafter and the policy that a sequence is over or has lost its pages.
void forget(const StepParts& parts, Sequence& sequence);

// Takes a finished sequence out of the scheduler and sends its completion. Unknown ids are ignored.
void retire(const StepParts& parts, RequestId id);

}  // namespace outrider
