// SPDX-License-Identifier: Apache-2.0
// Checks that a request passes before the engine queues it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/engine_parts.h"
#include "engine/scheduler.h"
#include "outrider/engine.h"

namespace outrider {

// Errors: no tokens, or ids outside the vocabulary.
Status check_tokens(std::span<const TokenId> tokens, int64_t vocab_size);

// Errors: a prompt that is empty, outside the vocabulary or not shorter than the context; parameters out of
// range; policy auto without measured costs.
Status check_request(const Request& request, const EngineParts& parts);

// The relaxed rule needs tokens that begin and end the thinking. Error: the options' are no tokens of the
// model, so that they would never come.
Status check_thinking_tokens(const EngineParts& parts);

// Whether one of the names, in which case, '-' and '_' do not matter, is this drafter's.
bool names_method(std::span<const std::string> methods, std::string_view source);

// Errors: the sequence could outgrow the KV cache; kResource: max_waiting requests wait already.
Status check_room(const Sequence& sequence, const EngineParts& parts, const Scheduler& scheduler);

}  // namespace outrider
