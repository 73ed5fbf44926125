// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "draft_heads/head_file.h"
#include "outrider/token.h"

namespace outrider {

// The target's id of every id of a head's vocabulary, from the offsets in "d2t" (id = row + d2t[row]); empty:
// they are the same. Errors: no map where one is needed; ids that are out of range or do not rise; a "t2d"
// that names others.
Result<std::vector<TokenId>> read_vocabulary_map(const HeadFile& head, int64_t draft_vocab,
                                                 int64_t target_vocab);

}  // namespace outrider
