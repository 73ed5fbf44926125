// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"
#include "server/api/call_context.h"
#include "server/api/generation_call.h"
#include "server/api/request_field.h"
#include "server/api/requests/chat_request.h"
#include "server/api/requests/embeddings_request.h"

namespace outrider {

// Reads and checks the fields of a call, and does all of its work that may take long: template, tokens and
// grammar. Errors name the field. `context.model` must outlive the call.
using ParsedCall = ApiResult<std::unique_ptr<GenerationCall>>;
using ParseFunction = ParsedCall (*)(const RequestField& root, const CallContext& context);

ParsedCall parse_chat(const RequestField& root, const CallContext& context);
ParsedCall parse_completion(const RequestField& root, const CallContext& context);
ParsedCall parse_responses(const RequestField& root, const CallContext& context);
ParsedCall parse_messages(const RequestField& root, const CallContext& context);
ParsedCall parse_infill(const RequestField& root, const CallContext& context);
ParsedCall parse_llama_completion(const RequestField& root,
                                  const CallContext& context);  // llama-server's own
ParsedCall parse_embeddings(const RequestField& root, const CallContext& context);
// The call for the vectors of inputs that have been read from the field.
ParsedCall embeddings_call(EmbeddingsSpec spec, const CallContext& context, std::string_view field);
ParsedCall parse_rerank(const RequestField& root, const CallContext& context);

// The requests of a chat with fields that have been read, for APIs with another form; `field` holds its
// messages.
ApiResult<std::vector<Request>> chat_requests(ChatSpec& spec, const CallContext& context,
                                              std::string_view field);

// Parses the bytes of a body first.
ParsedCall parse_call(ParseFunction parse, std::string_view body, const CallContext& context);

}  // namespace outrider
