// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "chat_template/chat_template.h"
#include "server/api/request_field.h"

namespace outrider {

struct ReadMessages {
  std::vector<ChatMessage> messages;
  std::vector<std::string> ignored;  // paths of fields
};

// Reads at most `max` messages of a request. The parts of a content are joined by line breaks. The role
// "developer" is read as "system". Arguments of calls that are not a JSON object become a JSON string.
ApiResult<ReadMessages> read_messages(const RequestField& field, int max);

}  // namespace outrider
