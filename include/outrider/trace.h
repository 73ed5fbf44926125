// SPDX-License-Identifier: Apache-2.0
// A record of what each step did with each sequence, see Engine::set_trace_sink().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "outrider/device_orders.h"
#include "outrider/token.h"
#include "outrider/token_tree.h"

namespace outrider {

// Why a drafted node was not committed.
enum class NodeCause : uint8_t {
  kNone,               // it was committed
  kLostArgMax,         // greedy decoding: another token was likelier
  kSampledOut,         // the target could have chosen it and chose another token
  kCutByTopK,          // top-k removed it from the target's distribution
  kCutByTopP,          // top-p removed it
  kCutByMinP,          // min-p removed it
  kCutByTopNSigma,     // top-n-sigma removed it
  kCutByTypicalP,      // typical-p removed it
  kExcluded,           // XTC left it out as a top choice
  kForbidden,          // a logit of -infinity or a constraint gave it probability 0
  kNotReached,         // its parent was not accepted, or an earlier sibling was
  kPastStop,           // the sequence ended before it
  kOverBudget,         // cut before the pass because the tree was larger or deeper than allowed
  kOutsideVocabulary,  // cut before the pass because the target has no such token
};
std::string_view cause_name(NodeCause cause);      // "lost arg-max"
std::string_view fate_name(NodeFate fate);         // "accepted"
std::string_view origin_name(TokenOrigin origin);  // "recovered"

struct TraceNode {
  static constexpr double kUnknown = -1.0;

  TokenId token = 0;
  int parent = -1;                       // index in StepTrace::nodes
  double draft_probability = 1.0;        // the drafter's guess, TokenTree::probability()
  double target_probability = kUnknown;  // see StepTrace; unknown if the parent was not reached
  uint32_t sources = 1;                  // bit i: EngineInfo::sources[i]; 0: the request's prediction
  NodeFate fate = NodeFate::kAccepted;
  NodeCause cause = NodeCause::kNone;
};

// One sequence in one step. Probabilities of the target come from the distribution that it chose from, or, in
// greedy decoding, from temperature 1. Times belong to the whole step, which its sequences share, without the
// time that tracing took.
struct StepTrace {
  int64_t step = 0;      // number of the step since the sink was set, from 0
  uint64_t request = 0;  // the id that submit() gave
  double start_ms = 0;   // since the sink was set
  double draft_ms = 0;
  double verify_ms = 0;  // the target pass
  double other_ms = 0;   // scheduling, acceptance, commit and the requests' sinks
  int sequences = 0;
  int rows = 0;                             // rows of the pass, all sequences
  int prompt_rows = 0;                      // rows of the pass that compute this sequence's prompt
  int64_t context = 0;                      // tokens of the sequence before the step
  std::optional<DeviceOrders> device = {};  // orders of the whole step; nullopt: this machine computes
  bool draft_failed = false;
  bool is_predicted = false;  // the tree comes from Request::prediction, and no drafter was asked
  // The drafted tree with its cut nodes, the root first; empty if only a part of the prompt was computed.
  std::vector<TraceNode> nodes;
  // By committed token:
  std::vector<TokenId> tokens;
  std::vector<TokenOrigin> origins;
  std::vector<double> probabilities;  // the target's
  std::vector<double> likelier;       // the target's probability of the tokens that are likelier; ties by id
  std::vector<int> ranks;  // rank among the tokens drafted for its place, 0 for the first; -1: not drafted
};

using TraceSink = std::function<void(const StepTrace&)>;

}  // namespace outrider
