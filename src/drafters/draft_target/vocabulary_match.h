// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "outrider/result.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// A draft may serve a target when every id both know stands for the same bytes (or the same special token);
// one of the two may have more ids at its end. The error names the first id that differs and what it means on
// each side.
Status check_same_vocabulary(const Tokenizer& target, const Tokenizer& draft);

}  // namespace outrider
