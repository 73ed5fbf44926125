// SPDX-License-Identifier: Apache-2.0
// What requests ask of the form of the output, as constraints on its tokens.
#pragma once

#include <memory>
#include <vector>

#include "outrider/token_constraint.h"
#include "server/api/chat_request.h"

namespace outrider {

using Constraints = std::vector<std::shared_ptr<TokenConstraint>>;  // by choice, or empty

ApiResult<Constraints> form_constraints(const GenerationSpec& spec, size_t choices);

// Of the form, of a call that must come, or of strict tools, whose calls must fit when they come.
ApiResult<Constraints> chat_constraints(const ChatSpec& spec);

// Has control tokens printed where calls begin with one, and takes reasoning for content where a form leaves
// no room for it.
void prepare_output(ChatSpec& spec);

}  // namespace outrider
