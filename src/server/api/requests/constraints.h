// SPDX-License-Identifier: Apache-2.0
// The form that a request demands of its output, as constraints on the output's tokens.
#pragma once

#include <memory>
#include <vector>

#include "outrider/token_constraint.h"
#include "server/api/requests/chat_request.h"

namespace outrider {

using Constraints =
    std::vector<std::shared_ptr<TokenConstraint>>;  // one for each choice; or empty: no constraint

// Constraints for the output form, one for each of `choices`.
ApiResult<Constraints> form_constraints(const GenerationSpec& spec, size_t choices);

// Constraints for the output form, for a required call, or for strict tools: a call of these must match their
// schema. Tools whose schema cannot be held are noted in `spec.ignored`.
ApiResult<Constraints> chat_constraints(ChatSpec& spec);

// Adapts `spec` to tools and form: control tokens are printed if calls or reasoning are marked by one, and
// there is no reasoning if a constraint leaves no place for it.
void prepare_output(ChatSpec& spec);

}  // namespace outrider
