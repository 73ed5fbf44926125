// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/api/requests/generation_spec.h"

namespace outrider {

// Whether this token ends the text of a request.
bool is_stop_token(const GenerationSpec& spec, TokenId token);
// The stop string that ended the text; empty if something else ended it.
std::string matched_stop(const GenerationSpec& spec, const Completion& completion);

}  // namespace outrider
