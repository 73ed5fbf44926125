// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "chat_template/chat_template.h"
#include "server/api/api_limits.h"
#include "server/api/request_field.h"

namespace outrider {

// Reads the system prompt and the messages of /v1/messages. Results of tools, which are blocks of the user's
// messages there, become messages of their own before the rest. Adds the paths of blocks that are left out
// to `ignored`.
ApiResult<std::vector<ChatMessage>> read_block_messages(const RequestField& root, const ApiLimits& limits,
                                                        std::vector<std::string>& ignored);

}  // namespace outrider
