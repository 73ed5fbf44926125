// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "outrider/engine.h"
#include "outrider/result.h"

namespace outrider::training {

// Text with a drafter, beside plain text.
struct Proof {
  int64_t tokens = 0;                        // that were compared
  double length = 1.0;                       // tokens per pass where every step drafts
  double plain_rate = 0.0, auto_rate = 0.0;  // tokens per second of greedy text, one prompt at a time
};

// Continues every prompt plainly and with drafts in every step, greedily and sampled, and greedily as it
// pays. `head`: the drafter; empty: the one that `auto` finds. Error: a text differs from the plain one.
Result<Proof> prove_drafter(const EngineOptions& options, const std::filesystem::path& head,
                            const std::vector<std::vector<TokenId>>& prompts, int64_t max_tokens);

}  // namespace outrider::training
