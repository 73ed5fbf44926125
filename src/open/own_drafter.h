// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include "draft_heads/head_file.h"
#include "drafters/draft_files.h"
#include "formats/model_file.h"
#include "outrider/speculative_options.h"

namespace outrider {

// The folder that a model lies in, where its drafters are looked for.
std::filesystem::path folder_of(const std::filesystem::path& model);

// The files that Auto drafts with where none are named; no files: nothing was found. In this order:
// 1. the learned drafter whose configuration names this target by its fingerprint, which all quantisations of
//    a model share; of several, the one that agreed with it most often when it was trained. It may lie beside
//    the target, in the cache of `pull`, or come with the program;
// 2. a learned drafter beside the target that names none and fits it by its shapes;
// 3. the smallest draft model beside the target or in the cache of `pull` that has the target's vocabulary
//    and at most a fifth of its size.
DraftFiles find_own_drafter(const ModelFile& target);

// The learned drafter for that method: the module in the target's own files, else the first one beside the
// target that fits it. Else it is the one in the cache of `pull` or with the program that names the target;
// of several, the one that agreed with it most often.
std::optional<HeadFile> find_trained_head(const ModelFile& target, Method method);

}  // namespace outrider
