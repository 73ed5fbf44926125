// SPDX-License-Identifier: Apache-2.0
#include "server/calls/drafting_call.h"

#include <utility>

#include "base/clock.h"

namespace outrider {

DraftingCall::DraftingCall(const OpenMessage& opened, OpenedMessage limits, uint64_t cache_scope)
    : GenerationCall({}, true, {}), session_(opened, std::move(limits)) {
  Request request{.prompt = opened.prompt, .output = opened.output, .sampling = opened.sampling};
  request.max_tokens = opened.max_tokens;
  request.stop_tokens = opened.stop_tokens;
  request.ignore_eos = opened.ignore_eos;
  request.speculation = {.is_auto = false, .acceptance = AcceptanceRule::kCoupled, .is_offered = true};
  if (opened.states != StateType::kNone) request.speculation.states_from = opened.state_tokens;
  request.sample_index = opened.sample_index;
  request.cache_scope = cache_scope;
  requests().push_back(std::move(request));
}

void DraftingCall::add(int /*choice*/, ChoiceDelta delta, std::string& /*events*/) {
  session_.on_states(delta.states);
  session_.on_tokens(delta.tokens,
                     delta.completion ? std::optional(delta.completion->finish_reason) : std::nullopt,
                     now_ms());
}

}  // namespace outrider
