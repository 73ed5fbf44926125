// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/api/answers/parse_call.h"

namespace outrider {

ParsedCall parse_ollama_chat(const RequestField& root, const CallContext& context);
ParsedCall parse_ollama_generate(const RequestField& root, const CallContext& context);
ParsedCall parse_ollama_embed(const RequestField& root, const CallContext& context);
// The older route: one vector of one prompt.
ParsedCall parse_ollama_embeddings(const RequestField& root, const CallContext& context);

}  // namespace outrider
