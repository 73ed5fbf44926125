// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/scheduler.h"
#include "outrider/trace.h"
#include "sampling/logits_processor.h"

namespace outrider {

// Follows steps for a trace sink. Nothing of it runs, and nothing it needs is computed, without a sink.
// Sequences are named by their place among the plans of the step.
class StepTracer {
 public:
  StepTracer(TraceSink sink, int64_t vocab_size);

  void start_step();
  void plan(std::span<const SequencePlan> plans);
  // The tree as it was drafted; what record() then lacks was cut.
  void list_nodes(size_t sequence, const TokenTree& drafted);
  // Verification reached `node`. logits: the target's after it; the sequence's history ends with it.
  void reach(size_t sequence, const TokenTree& tree, int node, std::span<const float> logits);
  // The sequence committed what `verdict` says.
  void record(size_t sequence, const TokenTree& tree, const Verdict& verdict);
  void time(double draft_ms, double verify_ms, int rows, bool draft_failed);
  // Hands out the traces.
  void finish_step();

  // Spent in this step by reach() and record().
  double own_ms() const { return own_ms_; }

 private:
  struct Followed {
    StepTrace trace;
    TokenConstraint::State state = TokenConstraint::kDead;  // of the constraint, behind the pending token
    std::vector<int> places;                                // of trace.nodes in the verified tree; -1: cut
    std::vector<int> reached;                               // nodes of the tree, by depth
    std::vector<Distribution> distributions;                // of the target after these
    std::vector<NodeCause> refusals;  // by node of the tree: its cause if it is rejected
  };

  void place_nodes(Followed& followed, const TokenTree& tree) const;
  std::vector<uint8_t> forbidden_nodes(size_t sequence) const;
  void explain_nodes(Followed& followed, const TokenTree& tree, const Verdict& verdict) const;
  NodeCause filter_that_cut(TokenId token, const Sequence& sequence, std::span<const float> logits);

  TraceSink sink_;
  int64_t vocab_size_;
  double first_start_ms_;
  int64_t next_step_ = 0;
  double start_ms_ = 0;
  double own_ms_ = 0;
  std::span<const SequencePlan> plans_;
  std::vector<Followed> followed_;
  LogitsProcessor distributions_;
};

}  // namespace outrider
