// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drafters/drafter_context.h"

namespace outrider {

// The target drafts for itself, with its own KV cache. It drafts with its first layers, its final norm and
// output head (LayerSkip, arXiv 2404.16710); the target's pass resumes the drafted rows at the next layer
// after them. Or it drafts with all layers but some of their attentions and MLPs (Draft & Verify, arXiv
// 2309.08168). Errors: layers that the target does not have, nothing left to run, both ways at once, a tree
// that needs more entries than its nodes.
Result<std::shared_ptr<Drafter>> make_early_exit_drafter(const SpeculativeOptions& options,
                                                         const DrafterContext& context);

// Draft & Verify's threshold: a chain ends after a token of lower probability, which stays in it, and the
// threshold moves so that about nine in ten drafted tokens are accepted. Each sequence has its own, which
// starts at 0.8 greedily and at 0.5 at other temperatures. It limits the chains of both ways of drafting,
// unless assistant_confidence_threshold fixes one or policy: auto decides; trees have their number of nodes
// instead.
class AdaptiveThreshold {
 public:
  explicit AdaptiveThreshold(double start) : value_(start) {}
  double value() const { return value_; }
  // Learns from a round that drafted `drafted` >= 1 tokens, of at most `max`, of which `accepted` were
  // accepted.
  void update(int accepted, int drafted, int max);

 private:
  double value_;
  double acceptance_rate_ = -1.0;  // running mean; negative before the first round
};

}  // namespace outrider
