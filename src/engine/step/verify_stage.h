// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/step/logit_rows.h"
#include "engine/step/step_parts.h"
#include "engine/step/step_report.h"
#include "engine/step/step_tracer.h"
#include "engine/step/target_walk.h"
#include "models/backend/device/pass_choices.h"
#include "sampling/logits_processor.h"

namespace outrider {

// Whether the device of the target knows all that the choice of the sequence's tokens depends on.
bool is_chosen_there(const SequenceStep& step);

// Decides for every tree which of its nodes the target accepts, and which token the target adds.
class VerifyStage {
 public:
  explicit VerifyStage(const StepParts& parts) : parts_(parts) {}

  // logits: of the step's pass. The tracer may be null.
  void run(const LogitRows& logits, StepReport& report, StepTracer* tracer);

 private:
  // Lets the target's device choose tokens, where no one reads the logits.
  void choose_on_device(const StepReport& report);
  void verify_tree(SequenceStep& step, const LogitRows& logits);
  // The device's tokens after all nodes of a tree; empty: this machine chooses them.
  std::span<const TokenId> tokens_there(const SequenceStep& step) const;
  std::span<const float> logits_after(int node);
  int64_t position_after(int node) const;  // of the token after it
  const Distribution& distribution_after(int node);
  const Distribution& untruncated_distribution_after(int node);
  TokenId token_after(int node);

  const StepParts& parts_;
  LogitsProcessor processor_, untruncated_processor_;
  CoupledChooser chooser_;
  TargetWalk walk_;
  std::vector<ChoiceRow> choice_rows_;  // of the pass's logits
  std::vector<int> places_;             // of the tokens after them
  std::span<const TokenId> chosen_;     // after the first of these rows; empty: none
  // The tree that is verified now:
  SequenceStep* step_ = nullptr;
  size_t index_ = 0;  // of step_ in the report
  StepTracer* tracer_ = nullptr;
  SamplingParams untruncated_;           // only for the relaxed rule
  std::span<const TokenId> own_tokens_;  // of the target after the nodes, where its device has chosen them
  int empty_node_ = -1;                  // the node after which no token has a probability; -1: none was seen
};

}  // namespace outrider
