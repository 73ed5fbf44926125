// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
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

// A rendered chat of which an end is private.
struct DividedChat {
  std::string text;
  size_t safe = 0;  // bytes before the private end: they are the same for every private text
};

// Renders the messages with `hidden` as the end of the last one, for an answer. Everything from there on is
// private, except what is not there if `hidden` is empty. Precondition: there is a message.
Result<DividedChat> render_private_chat(const ChatFormat& format,
                                        std::span<const std::pair<std::string, std::string>> messages,
                                        std::string_view hidden);

}  // namespace outrider
