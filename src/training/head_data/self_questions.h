// SPDX-License-Identifier: Apache-2.0
// Questions that a chat model asks itself (Magpie, arXiv 2406.08464): asked to continue an empty message of
// a user, a model that was tuned on conversations writes messages like the ones it was tuned on.
#pragma once

#include "outrider/result.h"
#include "training/head_data/documents.h"
#include "training/head_data/frozen_target.h"
#include "training/head_data/head_options.h"

namespace outrider::training {

// Documents without responses, one for each of options.self_questions questions, in the target's chat
// template. A target without one writes beginnings of texts instead. The file questions.jsonl in the folder
// of responses keeps them; a later run writes only questions that are missing. The file
// options.question_kinds has lines with "system", a message of the system before the user's, "question", a
// text in which {} stands for what the target wrote, "max_tokens" and "temperature". Each kind makes as many
// questions. Errors: malformed kinds, a folder with questions of other kinds.
Result<DocumentSource> self_questions(const HeadOptions& options, const FrozenTarget& target);

}  // namespace outrider::training
