// SPDX-License-Identifier: Apache-2.0
// Questions that a chat model asks itself (Magpie, arXiv 2406.08464): asked to continue an empty message of
// a user, a model that was tuned on conversations writes messages like those it was tuned on.
#pragma once

#include "outrider/result.h"
#include "training/head_data/documents.h"
#include "training/head_data/frozen_target.h"
#include "training/head_data/head_options.h"

namespace outrider::training {

// Documents without responses, one for each of options.self_questions questions, in the target's chat
// template. The file questions.jsonl in the folder of responses keeps them; a later run writes only those
// that are missing. Error: a target without chat template.
Result<DocumentSource> self_questions(const HeadOptions& options, const FrozenTarget& target);

}  // namespace outrider::training
