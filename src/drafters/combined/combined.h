// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "drafters/registry.h"

namespace outrider {

// Several drafters that share one tree, in which every path of theirs stands once and remembers whose it is:
// any methods (`combine`), or several draft models (`decoding_type: SpecInfer`, merge-based, 2305.09781 3),
// which draft side by side. Where nodes may be dropped all draft in full and the likeliest nodes stay, by
// what each drafter's confidence proved to be worth; where draws must all be tested the nodes are dealt out
// beforehand to the drafters that made most of theirs. A drafter that fails is left out.
// Errors: those of the members; no member, or more than 32.
Result<std::shared_ptr<Drafter>> make_combined_drafter(const SpeculativeOptions& options,
                                                       const DrafterContext& context);
Result<std::shared_ptr<Drafter>> make_spec_infer_drafter(const SpeculativeOptions& options,
                                                         const DrafterContext& context);

// The same over drafters made elsewhere.
struct CombinedParts {
  std::vector<std::shared_ptr<Drafter>> drafters;           // 1 to 32
  std::vector<std::unique_ptr<ThreadPool>> own_pools = {};  // what drafters that run side by side run on
  ThreadPool* team = nullptr;  // runs them side by side; null: one after the other
};
std::shared_ptr<Drafter> combine_drafters(std::string name, CombinedParts parts);

}  // namespace outrider
