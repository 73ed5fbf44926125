// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat_template/chat_template.h"
#include "outrider/result.h"

namespace outrider {

// {role, content} pairs as messages.
std::vector<ChatMessage> plain_messages(std::span<const std::pair<std::string, std::string>> messages);

// There is no template to render a chat with. `problem`: why the model's own cannot be read; empty: it has
// none.
Error missing_template(std::string_view problem);

}  // namespace outrider
