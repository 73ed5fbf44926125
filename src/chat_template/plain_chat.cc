// SPDX-License-Identifier: Apache-2.0
#include "chat_template/plain_chat.h"

namespace outrider {

Result<std::string> render_plain_chat(const ChatFormat& format,
                                      std::span<const std::pair<std::string, std::string>> messages,
                                      bool add_generation_prompt) {
  if (format.chat_template == nullptr)
    return input_error("the model has no chat template; use generate with a plain prompt");
  ChatContext context;
  for (const auto& [role, content] : messages) {
    ChatMessage message;
    message.role = role;
    message.content = content;
    context.messages.push_back(std::move(message));
  }
  context.add_generation_prompt = add_generation_prompt;
  context.bos_token = format.bos_token;
  context.eos_token = format.eos_token;
  return format.chat_template->render(context);
}

}  // namespace outrider
