// SPDX-License-Identifier: Apache-2.0
// What each step did, for those who want to see it: Engine::set_trace_sink().
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "outrider/token.h"
#include "outrider/token_tree.h"

namespace outrider {

// Why a drafted node was not committed.
enum class NodeCause : uint8_t {
  kNone,               // it was committed
  kLostArgMax,         // greedy: another token was likelier
  kSampledOut,         // the target could have chosen it, and chose another
  kCutByTopK,          // the target could not have chosen it: top-k left it out
  kCutByTopP,          // nor this: top-p
  kCutByMinP,          // nor this: min-p
  kForbidden,          // its probability was 0 before any of these: a logit of -infinity, or a constraint
  kNotReached,         // its parent was not accepted, or an earlier sibling was
  kPastStop,           // the sequence ended before it
  kOverBudget,         // cut before the pass: the tree was larger or deeper than allowed
  kOutsideVocabulary,  // cut before the pass: no token of the target
};
std::string_view cause_name(NodeCause cause);      // "lost arg-max"
std::string_view fate_name(NodeFate fate);         // "accepted"
std::string_view origin_name(TokenOrigin origin);  // "recovered"

struct TraceNode {
  static constexpr double kUnknown = -1.0;

  TokenId token = 0;
  int parent = -1;                       // index in StepTrace::nodes
  double draft_probability = 1.0;        // the drafter's guess: TokenTree::probability()
  double target_probability = kUnknown;  // see StepTrace; unknown where the parent was not reached
  uint32_t sources = 1;                  // bit i: EngineInfo::sources[i]
  NodeFate fate = NodeFate::kAccepted;
  NodeCause cause = NodeCause::kNone;
};

// One sequence in one step. Probabilities of the target are those of the distribution it chose from;
// greedily, those of temperature 1. Times are the step's, shared by the `sequences` in it; tracing itself is
// not in them.
struct StepTrace {
  int64_t step = 0;      // since the sink was set
  uint64_t request = 0;  // as submit() gave it
  double start_ms = 0;   // since the sink was set
  double draft_ms = 0;
  double verify_ms = 0;  // the target pass
  double other_ms = 0;   // scheduling, acceptance, commit and the requests' sinks
  int sequences = 0;
  int rows = 0;         // of the pass, all sequences
  int prompt_rows = 0;  // of these: committed tokens of this sequence computed first
  int64_t context = 0;  // tokens of the sequence before the step
  bool draft_failed = false;
  std::vector<TraceNode> nodes;  // drafted tree, the root first, cut nodes included; empty: prompt rows alone
  // By committed token:
  std::vector<TokenId> tokens;
  std::vector<TokenOrigin> origins;
  std::vector<double> probabilities;  // the target's
  std::vector<int> ranks;  // among what was drafted for its place, 0: proposed first; -1: not drafted
};

using TraceSink = std::function<void(const StepTrace&)>;

}  // namespace outrider
