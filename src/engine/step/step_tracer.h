// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/scheduler.h"
#include "engine/step/step_report.h"
#include "models/model.h"
#include "outrider/trace.h"
#include "sampling/logits_processor.h"

namespace outrider {

// Follows steps for a trace sink. Without a sink there is no tracer, and nothing that it needs is computed.
// `sequence` is an index into the plans of the step.
class StepTracer {
 public:
  // The target must outlive it.
  StepTracer(TraceSink sink, int64_t vocab_size, const Model& target);

  // start_ms: when the step began. The plans must live until finish_step().
  void start_step(double start_ms, std::span<const SequencePlan> plans);
  // Notes a tree as it was drafted; nodes that the verified tree lacks were cut.
  void add_nodes(size_t sequence, const TokenTree& drafted);
  // Verification reached `node`. logits: the target's after it; the sequence's history ends with it.
  void reach(size_t sequence, const TokenTree& tree, int node, std::span<const float> logits);
  // The sequences of the step still exist.
  void observe(const StepReport& report);
  // Hands the traces to the sink.
  void finish_step();

  // Milliseconds of this step spent in reach() and observe().
  double own_ms() const { return own_ms_; }

 private:
  // One sequence in the step.
  struct Followed {
    StepTrace trace;
    TokenConstraint::State state = TokenConstraint::kDead;  // of the constraint, after the pending token
    std::vector<int> places;                  // by node of the trace: its node of the verified tree; -1: cut
    std::vector<int> reached;                 // nodes of the verified tree that were reached, by depth
    std::vector<Distribution> distributions;  // of the target after these nodes
    std::vector<NodeCause> refusals;          // by node of the verified tree: the cause if it is rejected
  };

  void record(size_t sequence, const TokenTree& tree, const Verdict& verdict);
  void place_nodes(Followed& followed, const TokenTree& tree) const;
  std::vector<uint8_t> forbidden_nodes(size_t sequence) const;
  void explain_nodes(Followed& followed, const TokenTree& tree, const Verdict& verdict) const;
  NodeCause filter_that_cut(TokenId token, const Sequence& sequence, std::span<const float> logits);

  TraceSink sink_;
  int64_t vocab_size_;
  const Model& target_;
  double first_start_ms_;  // when the sink was set
  int64_t next_step_ = 0;
  double start_ms_ = 0;  // of this step
  double own_ms_ = 0;
  std::optional<DeviceOrders> orders_before_;  // when this step began
  std::span<const SequencePlan> plans_;
  std::vector<Followed> followed_;
  LogitsProcessor processor_;
};

}  // namespace outrider
