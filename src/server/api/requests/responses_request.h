// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/api/requests/chat_request.h"
#include "server/api/requests/responses_tools.h"

namespace outrider {

struct ResponsesSpec : ChatSpec {
  std::vector<ChatMessage> messages;  // the conversation up to the answer, without instructions
  std::string input;                  // the items of this request, a JSON array
  std::string echo;                   // members of the response object that repeat the request
  bool is_stored = true;
  std::map<std::string, ResponseToolKind> tool_kinds;  // of tools that are no functions, by name
};

// Reads the body of /v1/responses except for the constraints on its output.
ApiResult<ResponsesSpec> read_responses_request(const RequestField& root, const CallContext& context);

}  // namespace outrider
