// SPDX-License-Identifier: Apache-2.0
// The interface of everything that drafts. A drafter never changes the output: what it proposes is verified,
// and whatever goes wrong inside it costs speed only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "outrider/result.h"
#include "outrider/sampling_params.h"
#include "outrider/token_constraint.h"
#include "outrider/token_tree.h"

namespace outrider {

// Rules for accepting drafted tokens.
enum class AcceptanceRule : uint8_t {
  kCoupled,    // the target's own token is fixed by the seed; a draft is accepted iff it is that token
               // (2408.07978)
  kRejection,  // speculative sampling (2211.17192), multi-step over siblings (2305.09781)
  kTypical,    // lossy: whatever the target finds likely enough for its uncertainty (Medusa, 2401.10774)
  kRelaxed,    // lossy: while the model thinks, what is near the target's likeliest (TensorRT-LLM); coupled
               // before and after
};

// Whether the output has the target's own law, whatever is drafted.
constexpr bool is_lossless(AcceptanceRule rule) {
  return rule == AcceptanceRule::kCoupled || rule == AcceptanceRule::kRejection;
}

struct DrafterTraits {
  std::string name;                       // as in statistics: "NGram"
  bool emits_probabilities = false;       // sets the law of the nodes it expands
  bool wants_choices = false;             // learns from the target's likeliest token after every drafted node
  bool uses_target = false;               // drafts with a part of the target, see DraftRequest::target
  std::vector<std::string> sources = {};  // names of drafters that share its trees, by bit of
                                          // TokenTree::sources(); empty: its own name
};

class AcceptanceEstimates;
struct TargetAccess;

// What one sequence asks of its drafter in one step.
struct DraftRequest {
  uint64_t sequence = 0;  // as given to begin()
  std::span<const TokenId>
      tokens;  // prompt and committed tokens; the last one is pending, the root of the tree
  int prompt_length = 0;
  int max_depth = 0;  // levels below the root, >= 1
  int max_nodes = 0;  // nodes below the root, >= 1
  const SamplingParams* sampling = nullptr;
  uint64_t stream = 0;  // index of the sequence within its request; part of the key of all its randomness
  int source = 0;       // number of the drafter among those that share a tree; part of the key of its draws
  AcceptanceRule acceptance = AcceptanceRule::kCoupled;
  TokenConstraint* constraint = nullptr;  // what the output may be; nodes that may not come are wasted
  TokenConstraint::State constraint_state = TokenConstraint::kDead;  // behind the pending token
  bool wants_probabilities = false;  // the probabilities of nodes are used; else they may be left out
  double rate = 0;  // tokens a millisecond of this sequence is worth: drafting further should bring more;
                    // 0: draft as far as the limits allow
  const AcceptanceEstimates* estimates = nullptr;  // internal: what probabilities proved to be worth, or none
  const TargetAccess* target = nullptr;            // internal: set where the traits ask for it
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  virtual const DrafterTraits& traits() const = 0;

  // A sequence starts; it may come back after end() with more tokens (preemption).
  virtual void begin(uint64_t sequence, std::span<const TokenId> prompt);

  // Grows one tree per request; trees[i] holds the pending token of requests[i]. A tree left alone means
  // "nothing to propose". Nodes beyond the request's limits are cut; trees of drawn children must keep them,
  // as what is cut would depend on what was drawn. An error means that no tree of this call is used.
  virtual Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) = 0;

  // What became of the tree drafted for `sequence`.
  virtual void observe(uint64_t sequence, const TokenTree& tree, const Verdict& verdict);

  virtual void end(uint64_t sequence);
};

}  // namespace outrider
