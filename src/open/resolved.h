// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drafters/draft_files.h"
#include "open/files.h"
#include "outrider/engine.h"
#include "outrider/result.h"
#include "outrider/speculative_options.h"

namespace outrider {

// Fills in everything that opened files decide: the method, and its usual tree where no key asked for
// another. In the place of Auto come Suffix, NGram and the method of speculative_model in one tree. A tree of
// choices gets nodes where none were listed. Errors: a head that is named as DraftTarget; choices that make
// no tree.
Result<SpeculativeOptions> resolve_speculation(SpeculativeOptions options, const DraftFiles& files);

// Options that leave no question open: the third value of the road (names.h).
struct ResolvedOptions {
  EngineOptions engine;  // its speculation is resolved, and its threads and its context are set
  int rank_threads = 0;  // threads of every other rank; 0: its share of its machine
};

// Errors: options out of range, or that do not go together or with the target.
Result<ResolvedOptions> resolve_options(const OpenedFiles& files);

// Ranks that have the target, and all ranks.
int target_rank_count(const EngineOptions& options);
int all_rank_count(const EngineOptions& options);

}  // namespace outrider
