// SPDX-License-Identifier: Apache-2.0
// The target's own responses: what its drafter has to foresee.
#pragma once

#include <vector>

#include "outrider/result.h"
#include "training/heads/documents.h"
#include "training/heads/head_options.h"

namespace outrider::training {

// Answers options.regenerate of the documents' prompts (all sources alike) with the serving engine and
// returns prompt and response as documents of which the response counts. A text without prompt gives its
// beginning. Kept in options.out/responses, part by part, where a resumed run, or a second one of the same
// options, finds them.
Result<std::vector<DocumentSource>> regenerate_responses(std::vector<DocumentSource> sources,
                                                         const HeadOptions& options);

}  // namespace outrider::training
