// SPDX-License-Identifier: Apache-2.0
// The interface of everything that drafts. A drafter never changes the output: the target verifies its
// proposals, and an error inside it costs speed only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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
  kBlock,      // block verification (2403.10444) of every run of single proposals, else kRejection
  kTypical,    // lossy: any token that the target finds likely enough, given its uncertainty (Medusa,
               // 2401.10774)
  kRelaxed,    // lossy: while the model thinks, any token near the target's likeliest one (TensorRT-LLM);
               // coupled before and after
};

// The names of the rules in options, requests and reports, by AcceptanceRule.
inline constexpr std::string_view kAcceptanceRuleNames[] = {"coupled", "rejection", "block", "typical",
                                                            "relaxed"};
constexpr std::string_view acceptance_rule_name(AcceptanceRule rule) {
  return kAcceptanceRuleNames[static_cast<size_t>(rule)];
}

// Whether the rule compares the target's distribution with the one that drafts were drawn from. Drafters then
// draw with randomness of their own.
constexpr bool compares_distributions(AcceptanceRule rule) {
  return rule == AcceptanceRule::kRejection || rule == AcceptanceRule::kBlock;
}

// Whether the output has the target's own distribution for all drafts.
constexpr bool is_lossless(AcceptanceRule rule) {
  return rule == AcceptanceRule::kCoupled || compares_distributions(rule);
}

// The parts of the target's inner state that a drafter learns from. The features of a token are these parts
// side by side, in this order.
struct FeatureTaps {
  // The residual stream, not normalised, that enters each of these layers (0-based, ascending). The number of
  // layers stands for the stream that leaves the last one.
  std::vector<int64_t> layers = {};
  bool final_norm = false;  // the output of the final norm

  int64_t count() const { return static_cast<int64_t>(layers.size()) + (final_norm ? 1 : 0); }
};

// The features of tokens of one sequence that were computed and committed in this step.
struct CommittedFeatures {
  uint64_t sequence = 0;
  std::span<const TokenId> tokens;  // all tokens of the sequence, the pending one last
  int first = 0;                    // index of the first token with features here
  std::span<const int> rows;        // row of `features` of each token from `first` on
  const float* features = nullptr;  // [rows of the pass, size]
  int64_t size = 0;  // FeatureTaps::count() * hidden size of the target; StateTraits::size where it is remote

  // [size]: features of token `first` + i.
  std::span<const float> at(size_t i) const { return {features + rows[i] * size, static_cast<size_t>(size)}; }
};

// The target's states: the numbers that a drafter reads of each computed token. A drafter made of the same
// files drafts with them on another machine, too (RequestSpeculation::states_from).
struct StateTraits {
  int64_t size = 0;       // numbers per token; 0: none, or several drafters that share a tree read something
  std::string head = {};  // fingerprint of the files
};

// Bytes that a drafter holds for itself, without bytes that it shares with the target.
struct DrafterMemory {
  int64_t weight_bytes = 0;
  int64_t cache_bytes = 0;  // keys and values
};

struct DrafterTraits {
  std::string name;                  // shown in statistics: "NGram"
  bool emits_probabilities = false;  // sets the distribution of the nodes it expands
  bool wants_choices = false;        // learns from the target's likeliest token after every drafted node
  bool uses_target = false;          // drafts with a part of the target, see DraftRequest::target
  bool drafts_ahead = false;         // may be asked after tokens that are taken back later
  bool takes_orders = false;         // drafts elsewhere while the caller does other things, see order()
  FeatureTaps features = {};         // given to absorb(), which is not called without any
  StateTraits states = {};           // given by collect_states()
  // Names of the drafters that share its trees, by bit of TokenTree::sources(); empty for a drafter on its
  // own.
  std::vector<std::string> sources = {};
};

class AcceptanceEstimates;
class DeviceDraft;
struct TargetAccess;

// The request of one sequence to its drafter in one step.
struct DraftRequest {
  uint64_t sequence = 0;            // as given to begin()
  uint64_t scope = 0;               // as given to begin()
  std::span<const TokenId> tokens;  // prompt and output; the last one is pending and the root of the tree
  int prompt_length = 0;
  int max_draft_len = 0;            // levels below the root, >= 1
  int max_nodes = 0;                // nodes below the root, >= 1
  int max_children = 0;             // of a node; 0: any number
  uint32_t members = ~uint32_t{0};  // the drafters of a shared tree that draft, by bit
  const SamplingParams* sampling = nullptr;
  uint64_t sample_index = 0;  // see Request::sample_index; part of the key of all its randomness
  int source = 0;  // number of the drafter among the drafters of a shared tree; part of the key of its draws
  AcceptanceRule acceptance = AcceptanceRule::kCoupled;
  TokenConstraint* constraint = nullptr;  // forbidden nodes are cut before verification; null allows all
  TokenConstraint::State constraint_state = TokenConstraint::kDead;  // after the pending token
  bool wants_probabilities = false;  // the probabilities of nodes are used; otherwise they may be left out
  bool may_guess = false;  // one that takes orders may draft after likely verdicts on this draft before they
                           // are known
  // Tokens that the batch gains elsewhere in one millisecond: another level should be drafted only if it
  // promises more. 0: draft as far as the limits allow.
  double rate = 0;
  double row_ms = 0;  // time of one more node in the target's pass, which a level must be worth as well
  const AcceptanceEstimates* estimates = nullptr;  // internal: learned acceptance by probability; may be null
  const TargetAccess* target = nullptr;            // internal: set if the traits ask for it
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  virtual const DrafterTraits& traits() const = 0;

  // A sequence starts; after a preemption it starts again with more tokens. Entries that a drafter caches in
  // one scope (Request::cache_scope) must not serve another scope, which could tell from the time that they
  // exist.
  virtual void begin(uint64_t sequence, std::span<const TokenId> prompt, uint64_t scope = 0);

  // Begins to draft for these requests; a later draft() collects their trees. It is asked for the same
  // sequences, with the same or wider limits, unless they have ended or their texts have changed.
  virtual void order(std::span<const DraftRequest> requests);

  // Grows one tree per request; trees[i] holds the pending token of requests[i] and may stay that way if
  // there is nothing to propose. Nodes beyond the request's limits are cut. A drafter that draws children
  // must itself stay within the limits, because a cut would depend on the draws. After an error no tree of
  // this call is used.
  virtual Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) = 0;

  // Tells the outcome of the tree drafted for `sequence`.
  virtual void observe(uint64_t sequence, const TokenTree& tree, const Verdict& verdict);

  // Hands over the features of the tokens that a step committed, for all its sequences, including sequences
  // that this step finished. Each computed token of a sequence comes once and in order, except tokens that
  // known_tokens() left out. The features are valid during the call.
  virtual void absorb(std::span<const CommittedFeatures> committed);

  // Writes the states of the committed tokens, [rows, StateTraits::size], which a drafter of the same files
  // on another machine takes by absorb(). The target's cache has their entries. By default states are the
  // features.
  virtual void collect_states(const CommittedFeatures& committed, const TargetAccess& target, float* out);

  // A sequence with these tokens is about to begin. Returns how many of its first tokens the drafter needs no
  // features of. The target computes all others again even if its cache has them.
  virtual int64_t known_tokens(std::span<const TokenId> tokens, uint64_t scope = 0);

  virtual void end(uint64_t sequence);

  // Where the engine keeps its cache on disk (EngineOptions::prompt_cache), a drafter may keep its own there.
  // The first brings back what there is of a text that is about to begin, for about that long, and holds it
  // until begin() or the next call for another sequence. True: more is left, and the call is to be repeated.
  virtual bool restore(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope, double limit_ms);
  // Saves a part of what is not saved yet: what is complete, or anything. False: nothing is left.
  virtual bool save(bool everything);

  virtual DrafterMemory memory() const { return {}; }

  // Internal: drafts the same within steps that a device makes by itself; null: it cannot.
  virtual DeviceDraft* device_draft() { return nullptr; }
};

}  // namespace outrider
