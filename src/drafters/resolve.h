// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "draft_heads/head_file.h"
#include "formats/json_file.h"
#include "outrider/result.h"
#include "outrider/speculative_options.h"

namespace outrider {

struct ResolvedSpeculation {
  SpeculativeOptions options;
  std::optional<HeadFile> head;  // the opened files of speculative_model, where they are a head's
};

// Opens the files that the options name, if they may be a head's, and fills in everything that files decide:
// the method, where it was left to them; the methods that Auto stands for, which are Suffix, NGram and the
// one of speculative_model in one tree; the method's usual tree, where no key asked for one; the nodes of a
// tree of choices, where none were listed. Each of several methods that share a tree is resolved for itself.
// Errors: a head that cannot be read, or is named as DraftTarget; choices that make no tree.
Result<ResolvedSpeculation> resolve(SpeculativeOptions options);

// Sets ranking_temperature to the one that a drafter's config.json names, unless one was given.
Status take_ranking_temperature(const JsonObject& config, SpeculativeOptions& options);

}  // namespace outrider
