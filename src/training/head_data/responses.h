// SPDX-License-Identifier: Apache-2.0
// The target's own responses: what its drafter has to foresee.
#pragma once

#include <vector>

#include "outrider/result.h"
#include "training/head_data/documents.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/head_options.h"

namespace outrider::training {

// Answers options.regenerate of the documents' prompts (all sources alike) with the serving engine and
// returns prompt and response as documents of which the response counts. A text without prompt gives its
// beginning. Answers are kept in options.responses (or below options.out), part by part, by their prompts:
// runs of the same target and sampling options find them there, however many prompts each asks for, and only
// the missing ones are made. Error: the folder holds others.
Result<std::vector<DocumentSource>> regenerate_responses(const std::vector<DocumentSource>& sources,
                                                         const HeadOptions& options,
                                                         const FrozenTarget& target);

}  // namespace outrider::training
