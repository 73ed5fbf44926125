// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "chat_template/chat_template.h"
#include "outrider/result.h"

namespace outrider {

// A model's part in the rendering of a chat.
struct ChatFormat {
  std::optional<ChatTemplate> chat_template;  // nullopt: it has none, or none that can be read
  std::string template_problem;  // why the model's own cannot be read, and what to do; else empty
  std::string bos_token, eos_token;
  TemplateTokens other_tokens;
};

// Parses `source`, which may be empty, and keeps an error as the problem. `file` is for messages.
void read_model_template(const std::string& source, const std::string& file, ChatFormat& format);
// Keeps the reason why the source itself could not be read.
void set_template_problem(const std::string& problem, ChatFormat& format);

// Renders {role, content} pairs. Error: no template that can be read, or it refused the messages.
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
