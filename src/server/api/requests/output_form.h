// SPDX-License-Identifier: Apache-2.0
// The fields that demand a form of the output: OpenAI's response_format, vLLM's structured_outputs and the
// older guided_*. All set GenerationSpec::form. Error: another form was set before.
#pragma once

#include "server/api/request_field.h"
#include "server/api/requests/generation_spec.h"

namespace outrider {

ApiStatus read_response_format(const RequestField& field, GenerationSpec& spec);
ApiStatus read_structured_outputs(const RequestField& field, GenerationSpec& spec);
ApiStatus read_guided_json(const RequestField& field, GenerationSpec& spec);
ApiStatus read_guided_regex(const RequestField& field, GenerationSpec& spec);
ApiStatus read_guided_choice(const RequestField& field, GenerationSpec& spec);
ApiStatus read_guided_grammar(const RequestField& field, GenerationSpec& spec);

}  // namespace outrider
