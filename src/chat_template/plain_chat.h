// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <utility>

#include "chat_template/chat_template.h"
#include "outrider/result.h"

namespace outrider {

// A model's part in the rendering of a chat.
struct ChatFormat {
  const ChatTemplate* chat_template = nullptr;  // null: it has none
  std::string bos_token, eos_token;
};

// Renders {role, content} pairs. Error: no template, or it refused the messages.
Result<std::string> render_plain_chat(const ChatFormat& format,
                                      std::span<const std::pair<std::string, std::string>> messages,
                                      bool add_generation_prompt);

}  // namespace outrider
