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

// Whether the output has the target's own distribution, whatever is drafted.
constexpr bool is_lossless(AcceptanceRule rule) {
  return rule == AcceptanceRule::kCoupled || rule == AcceptanceRule::kRejection;
}

// What of the target's inner state a drafter learns from, token by token: the parts side by side, in this
// order.
struct FeatureTaps {
  std::vector<int64_t> layers = {};  // rising: the residual stream that enters this layer (0-based; the layer
                                     // count: that leaves the last one), not normalised
  bool final_norm = false;           // the output of the final norm

  int64_t count() const { return static_cast<int64_t>(layers.size()) + (final_norm ? 1 : 0); }
};

// The features of tokens of one sequence that were computed and committed in this step.
struct CommittedFeatures {
  uint64_t sequence = 0;
  std::span<const TokenId> tokens;  // all committed ones, the pending one last
  int first = 0;                    // index of the first token with features here
  std::span<const int> rows;        // by token from `first` on: its row in `features`
  const float* features = nullptr;  // [rows of the pass, size]
  int64_t size = 0;                 // FeatureTaps::count() * hidden size of the target

  std::span<const float> at(size_t i) const { return {features + rows[i] * size, static_cast<size_t>(size)}; }
};

// Bytes that a drafter holds for itself, whatever it shares with the target left out.
struct DrafterMemory {
  int64_t weight_bytes = 0;
  int64_t cache_bytes = 0;  // room for keys and values of its own
};

struct DrafterTraits {
  std::string name;                       // as in statistics: "NGram"
  bool emits_probabilities = false;       // sets the distribution of the nodes it expands
  bool wants_choices = false;             // learns from the target's likeliest token after every drafted node
  bool uses_target = false;               // drafts with a part of the target, see DraftRequest::target
  FeatureTaps features = {};              // what absorb() is given; none: it is not called
  std::vector<std::string> sources = {};  // names of drafters that share its trees, by bit of
                                          // TokenTree::sources(); empty: its own name
};

class AcceptanceEstimates;
struct TargetAccess;

// What one sequence asks of its drafter in one step.
struct DraftRequest {
  uint64_t sequence = 0;  // as given to begin()
  uint64_t scope = 0;     // likewise
  std::span<const TokenId>
      tokens;  // prompt and committed tokens; the last one is pending, the root of the tree
  int prompt_length = 0;
  int max_depth = 0;  // levels below the root, >= 1
  int max_nodes = 0;  // nodes below the root, >= 1
  const SamplingParams* sampling = nullptr;
  uint64_t sample_index =
      0;           // index of the sequence within its request; part of the key of all its randomness
  int source = 0;  // number of the drafter among those that share a tree; part of the key of its draws
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

  // A sequence starts; it may come back after end() with more tokens (preemption). What a drafter caches of
  // one scope (Request::cache_scope) must not be used in another: that it is there would show in the time.
  virtual void begin(uint64_t sequence, std::span<const TokenId> prompt, uint64_t scope = 0);

  // Grows one tree per request; trees[i] holds the pending token of requests[i]. A tree left alone means
  // "nothing to propose". Nodes beyond the request's limits are cut; trees of drawn children must keep them,
  // as what is cut would depend on what was drawn. An error means that no tree of this call is used.
  virtual Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) = 0;

  // What became of the tree drafted for `sequence`.
  virtual void observe(uint64_t sequence, const TokenTree& tree, const Verdict& verdict);

  // What a step made known of the target's state, for all its sequences; every token that was computed, once
  // and in order, but for those that known_tokens() left out. Valid during the call. Whatever has begun and
  // not ended takes part, those that this step finished included.
  virtual void absorb(std::span<const CommittedFeatures> committed);

  // Of a sequence that is about to begin (or to come back) with these tokens: how many of the first ones the
  // drafter needs no features of. The target computes all others again, though its cache may have them.
  virtual int64_t known_tokens(std::span<const TokenId> tokens, uint64_t scope = 0);

  virtual void end(uint64_t sequence);

  virtual DrafterMemory memory() const { return {}; }
};

}  // namespace outrider
