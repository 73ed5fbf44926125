// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/scheduler.h"
#include "kv/kv_cache.h"
#include "models/model.h"
#include "outrider/drafter.h"
#include "sampling/target_law.h"

namespace outrider {

// One step of the engine: draft, one target pass over everything, verify, commit. Plain decoding, chains,
// trees and prompt chunks all go through here.
class Step {
 public:
  struct Parts {
    Model* target = nullptr;
    KvCache* cache = nullptr;
    Drafter* drafter = nullptr;
    int64_t vocab_size = 0;  // ids that may be chosen: [0, vocab_size)
    AcceptanceRule acceptance = AcceptanceRule::kCoupled;
  };

  explicit Step(const Parts& parts) : parts_(parts) {}

  void run(std::span<const SequencePlan> plans);

  // The sequence is over, or lost its pages: its drafter may forget it.
  void forget(Sequence& sequence);

 private:
  struct Work {
    explicit Work(const SequencePlan& planned) : plan(planned), tree(planned.sequence->tokens().back()) {}

    SequencePlan plan;
    TokenTree tree;
    std::optional<KvTransaction> transaction;
    int logits_index = 0;  // of the root's row among the rows with logits
    Verdict verdict;
  };

  void draft();
  void reserve_and_flatten();
  void verify_one(Work& work, std::span<const float> logits);
  void commit_one(Work& work);
  void observe_one(Work& work);
  void account(double draft_ms, double verify_ms);

  Parts parts_;
  std::vector<Work> work_;
  ForwardBatch batch_;
  LawBuilder laws_;
  bool draft_failed_ = false;
  bool draft_failure_logged_ = false;
  // Scratch of draft() and commit_one().
  std::vector<DraftRequest> requests_;
  std::vector<TokenTree> trees_;
  std::vector<size_t> drafting_;  // index into work_ of each request
  std::vector<int> path_;
};

// `tree` without the nodes that break the request's limits or the vocabulary, and without their descendants.
// A tree with another root becomes the lone pending token.
TokenTree within_limits(const TokenTree& tree, const DraftRequest& request, int64_t vocab_size);

}  // namespace outrider
