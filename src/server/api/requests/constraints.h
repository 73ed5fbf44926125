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

// Constraints for the output form, for a required call, or for strict tools: a call of a strict tool must
// match its schema. Form and required call begin after the thinking. Tools whose schema cannot be held are
// noted in `spec.ignored`. A budget of thinking holds beside each of them.
ApiResult<Constraints> chat_constraints(ChatSpec& spec);

// Adapts `spec` to thinking and calls: the control tokens that mark them are printed.
void prepare_output(ChatSpec& spec);

}  // namespace outrider
