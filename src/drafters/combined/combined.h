// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "drafters/drafter_context.h"

namespace outrider {

// Several drafters share one tree, in which every path stands once and remembers which drafters proposed it:
// any methods (`combine`), or several draft models that draft side by side (SpecInfer, merge-based, arXiv
// 2305.09781, section 3). Where nodes may be dropped, all draft in full and the likeliest nodes stay, by what
// each drafter's confidence proved to be worth. Where draws must all be tested, the nodes are dealt out
// beforehand, most of them to the drafters that made most of theirs. A drafter that fails is left out.
struct CombinedParts {
  std::vector<std::shared_ptr<Drafter>> drafters;           // 1 to kMaxMembers
  std::vector<std::unique_ptr<ThreadPool>> own_pools = {};  // threads of drafters that run side by side
  ThreadPool* team = nullptr;  // runs them side by side; null: one after the other
};
std::shared_ptr<Drafter> combine_drafters(std::string name, CombinedParts parts);

// Error: the option `key` names no drafter, or more than kMaxMembers.
Status check_member_count(std::string_view key, size_t count);

// Errors: errors of a member; no draft model, or more than kMaxMembers.
Result<std::shared_ptr<Drafter>> make_spec_infer_drafter(const SpeculativeOptions& options,
                                                         const DrafterContext& context);

}  // namespace outrider
