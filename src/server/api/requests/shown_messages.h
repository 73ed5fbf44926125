// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "chat_template/abilities.h"
#include "server/api/tool_calls/tool_use.h"

namespace outrider {

// Rewrites what the template cannot show as text of other messages. Tools become a part of the system
// message, and calls a part of the assistant's text. Results become messages of the user, and the system
// message the beginning of the user's. `tools.choice` kNone: no tools are described.
void rewrite_hidden_parts(std::vector<ChatMessage>& messages, const ToolUse& tools,
                          const TemplateAbilities& abilities);

}  // namespace outrider
