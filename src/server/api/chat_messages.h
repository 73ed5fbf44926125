// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "chat_template/chat_template.h"
#include "server/api/request_field.h"

namespace outrider {

struct ReadMessages {
  std::vector<ChatMessage> messages;
  std::vector<std::string> ignored;  // fields
};

// `messages` of a request. Parts of a content are joined by line breaks; the role "developer" is read as
// "system"; arguments of calls that are no JSON object are passed on as a string.
ApiResult<ReadMessages> read_messages(const RequestField& field, int max);

}  // namespace outrider
