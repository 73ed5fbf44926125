// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include "outrider/speculative_options.h"

namespace outrider {

// The files that Auto drafts with where none are named. In this order:
// 1. the learned drafter whose configuration names this target by its fingerprint, which all quantisations of
//    a model share; of several, the one that agreed with it most often when it was trained. It may lie beside
//    the target, in the cache of `pull`, or come with the program;
// 2. a learned drafter beside the target that names none and fits it by its shapes;
// 3. the smallest draft model beside the target or in the cache of `pull` that has the target's vocabulary
//    and at most a fifth of its size.
std::optional<std::filesystem::path> find_own_drafter(const std::filesystem::path& target);

// The learned drafter for that method, in the cache of `pull` or with the program, whose configuration names
// this target; of several, the one that agreed with it most often.
std::optional<std::filesystem::path> find_named_head(const std::filesystem::path& target, Method method);

}  // namespace outrider
