// SPDX-License-Identifier: Apache-2.0
#include "chat_template/plain_chat.h"

#include <algorithm>
#include <vector>

#include "base/white_space.h"
#include "chat_template/plain_messages.h"

namespace outrider {

void set_template_problem(const std::string& problem, ChatFormat& format) {
  format.template_problem =
      problem + "; text without a chat works, and serve takes another template with --chat-template FILE";
}

void read_model_template(const std::string& source, const std::string& file, ChatFormat& format) {
  if (source.empty()) return;
  auto parsed = ChatTemplate::parse(source);
  if (parsed.ok()) {
    format.chat_template = std::move(parsed).value();
  } else {
    set_template_problem(file + ": " + parsed.error().message, format);
  }
}

std::vector<ChatMessage> plain_messages(std::span<const std::pair<std::string, std::string>> messages) {
  std::vector<ChatMessage> plain;
  for (const auto& [role, content] : messages) {
    ChatMessage message;
    message.role = role;
    message.content = content;
    plain.push_back(std::move(message));
  }
  return plain;
}

Error missing_template(std::string_view problem) {
  return input_error(problem.empty() ? "the model has no chat template; use generate with a plain prompt"
                                     : std::string(problem));
}

Result<std::string> render_plain_chat(const ChatFormat& format,
                                      std::span<const std::pair<std::string, std::string>> messages,
                                      bool add_generation_prompt) {
  if (!format.chat_template) return missing_template(format.template_problem);
  ChatContext context;
  context.messages = plain_messages(messages);
  context.add_generation_prompt = add_generation_prompt;
  context.bos_token = format.bos_token;
  context.eos_token = format.eos_token;
  context.other_tokens = format.other_tokens;
  return format.chat_template->render(context);
}

// The private text could also stand elsewhere in the rendered chat, so it is not searched for: another text
// takes its place, and all that stays the same before it is safe.
Result<DividedChat> render_private_chat(const ChatFormat& format,
                                        std::span<const std::pair<std::string, std::string>> messages,
                                        std::string_view hidden) {
  std::vector<std::pair<std::string, std::string>> chat(messages.begin(), messages.end());
  const std::string open = chat.back().second;
  chat.back().second += hidden;
  DividedChat divided;
  OUTRIDER_TRY(divided.text, render_plain_chat(format, chat, true));
  divided.safe = divided.text.size();
  if (hidden.empty()) return divided;
  // The template may remove white space at both ends.
  chat.back().second = open + (trimmed(hidden).starts_with('a') ? "b" : "a");
  OUTRIDER_TRY(const std::string other, render_plain_chat(format, chat, true));
  divided.safe = static_cast<size_t>(std::ranges::mismatch(divided.text, other).in1 - divided.text.begin());
  return divided;
}

}  // namespace outrider
