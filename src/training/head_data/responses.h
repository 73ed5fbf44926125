// SPDX-License-Identifier: Apache-2.0
// The target's own responses, on which its drafter has to agree with it.
#pragma once

#include <filesystem>
#include <vector>

#include "outrider/result.h"
#include "training/head_data/documents.h"
#include "training/head_data/frozen_target.h"
#include "training/head_data/head_options.h"

namespace outrider::training {

// The folder that keeps answers.
std::filesystem::path response_folder(const HeadOptions& options);

// The target answers all questions and options.regenerate of the documents' prompts, as many of each source.
// Returns prompts and responses as documents; the responses count. The beginning of a text without prompt is
// its prompt. The folder options.responses (or one below options.out) keeps the answers by prompt: later runs
// with this target and these sampling options read them and generate only the missing ones. Error: the folder
// holds answers of another target or with other options.
Result<std::vector<DocumentSource>> regenerate_responses(const std::vector<DocumentSource>& sources,
                                                         const DocumentSource& questions,
                                                         const HeadOptions& options,
                                                         const FrozenTarget& target);

}  // namespace outrider::training
