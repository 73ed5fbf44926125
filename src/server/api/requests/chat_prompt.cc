// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/chat_prompt.h"

#include "base/white_space.h"
#include "server/api/requests/shown_messages.h"
#include "tokenizer/input_marks.h"

namespace outrider {
namespace {

// Removes the text that the template printed after the last message.
ApiStatus cut_after_last(const ChatMessage& last, const Tokenizer& tokenizer, std::string& rendered) {
  const std::string content = tokenizer.mark_input(trimmed(*last.content));
  const size_t place = rendered.rfind(content);
  if (place == std::string::npos) {
    return field_error("continue_final_message",
                       "the chat template does not print the last message as it is");
  }
  rendered.erase(place + content.size());
  return api_ok();
}

}  // namespace

ApiResult<ChatPrompt> render_chat(ChatInput input, const ServedModel& model) {
  if (model.chat_template == nullptr) {
    return field_error(input.messages_path,
                       model.template_problem.empty() ? "the model has no chat template; use /v1/completions"
                                                      : model.template_problem,
                       "unsupported_parameter");
  }
  rewrite_hidden_parts(input.messages, input.tools, model.template_abilities);
  ChatContext context;
  context.messages = std::move(input.messages);
  context.add_generation_prompt = input.add_generation_prompt;
  context.bos_token = model.bos_token;
  context.eos_token = model.eos_token;
  context.other_tokens = model.other_tokens;
  context.values = model.template_values;
  context.values.insert(context.values.end(), input.values.begin(), input.values.end());
  context.input_marker = model.tokenizer.get();
  if (model.template_abilities.shows_tools) context.tools_json = input.tools.json;
  Result<std::string> rendered = model.chat_template->render(context);
  if (!rendered.ok()) return field_error(input.messages_path, rendered.error().message);
  if (input.continue_final_message) {
    OUTRIDER_RETURN_IF_ERROR(cut_after_last(context.messages.back(), *model.tokenizer, *rendered));
  }
  ChatPrompt prompt;
  prompt.tools = std::move(input.tools);
  prompt.text = drop_input_marks(*rendered);
  prompt.tokens = model.tokenizer->encode(*rendered, {.add_special = false, .drop_marks = true});
  prompt.reasoning = reasoning_format(model.chat_template->source());
  prompt.begins_thinking =
      prompt.reasoning != nullptr && trimmed(prompt.text).ends_with(prompt.reasoning->open);
  return prompt;
}

}  // namespace outrider
