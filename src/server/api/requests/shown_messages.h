// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "chat_template/abilities.h"
#include "server/api/tools/tool_use.h"

namespace outrider {

// Rewrites what the template cannot show (docs/reference/api.md). Tools become a part of the system message.
// `tools.choice` kNone: no tools are described.
void rewrite_hidden_parts(std::vector<ChatMessage>& messages, const ToolUse& tools,
                          const TemplateAbilities& abilities);

// The abilities to try one after the other with a conversation that the template refused.
std::vector<TemplateAbilities> lesser_abilities(TemplateAbilities abilities);

}  // namespace outrider
