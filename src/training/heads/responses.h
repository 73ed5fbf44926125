// SPDX-License-Identifier: Apache-2.0
// The target's own responses: what its drafter has to foresee.
#pragma once

#include <string>
#include <vector>

#include "outrider/result.h"
#include "training/heads/documents.h"
#include "training/heads/head_options.h"

namespace outrider::training {

// Answers options.regenerate of the documents' prompts (all sources alike) with the serving engine and
// returns prompt and response as documents of which the response counts. A text without prompt gives its
// beginning. Kept in options.responses (or below options.out), part by part, where other runs of the same
// target, prompts and options find them. Error: the folder holds other responses.
Result<std::vector<DocumentSource>> regenerate_responses(const std::vector<DocumentSource>& sources,
                                                         const HeadOptions& options,
                                                         const std::string& target_fingerprint);

}  // namespace outrider::training
