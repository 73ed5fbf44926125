// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/chat_request.h"

#include <algorithm>

#include "server/api/requests/chat_messages.h"
#include "server/api/requests/common_fields.h"
#include "server/api/trim_spaces.h"
#include "tokenizer/input_marks.h"

namespace outrider {
namespace {

constexpr std::string_view kPromptFields[] = {"messages",
                                              "tools",
                                              "tool_choice",
                                              "parallel_tool_calls",
                                              "add_generation_prompt",
                                              "continue_final_message",
                                              "chat_template_kwargs"};

// Reads flags of the template, such as enable_thinking.
ApiStatus read_template_flags(const RequestField& root, const ApiLimits& limits, ChatContext& context) {
  const auto field = root.find("chat_template_kwargs");
  if (!field) return api_ok();
  OUTRIDER_TRY(const auto members, field->members());
  if (!members.empty() && !limits.template_flags) {
    return field->error("is not allowed by this server; expected no such field", "unsupported_parameter");
  }
  for (const RequestField& member : members) {
    OUTRIDER_TRY(const bool value, member.boolean());
    if (member.path() == "chat_template_kwargs.messages" || member.path() == "chat_template_kwargs.tools") {
      return member.error("expected another name, which is no input of every template");
    }
    context.flags.emplace_back(std::string(member.key()), value);
  }
  return api_ok();
}

struct Ending {
  bool add_generation_prompt = true;
  bool continue_final_message = false;
};

ApiResult<Ending> read_ending(const RequestField& root, const std::vector<ChatMessage>& messages) {
  Ending ending;
  if (const auto field = root.find("continue_final_message")) {
    OUTRIDER_TRY(ending.continue_final_message, field->boolean());
  }
  ending.add_generation_prompt = !ending.continue_final_message;
  if (const auto field = root.find("add_generation_prompt")) {
    OUTRIDER_TRY(ending.add_generation_prompt, field->boolean());
  }
  if (!ending.continue_final_message) return ending;
  if (ending.add_generation_prompt) {
    return field_error("add_generation_prompt", "expected false together with continue_final_message");
  }
  if (messages.back().role != "assistant" || !messages.back().content) {
    return field_error("continue_final_message", "expected a last message of the assistant, with a content");
  }
  return ending;
}

// Adds the instructions for models whose template does not show tools.
void add_instructions(std::vector<ChatMessage>& messages, const ToolUse& tools) {
  const std::string text = tool_instructions(tools);
  if (messages.front().role == "system") {
    messages.front().content = messages.front().content.value_or("") + "\n\n" + text;
  } else {
    messages.insert(messages.begin(), ChatMessage{.role = "system", .content = text});
  }
}

// Removes the text that the template printed after the last message.
ApiStatus cut_after_last(const ChatMessage& last, const Tokenizer& tokenizer, std::string& rendered) {
  const std::string content = tokenizer.mark_input(trim_spaces(*last.content));
  const size_t place = rendered.rfind(content);
  if (place == std::string::npos) {
    return field_error("continue_final_message",
                       "the chat template does not print the last message as it is");
  }
  rendered.erase(place + content.size());
  return api_ok();
}

ApiStatus read_logprobs(const RequestField& field, ChatSpec& spec) {
  OUTRIDER_TRY(spec.logprobs, field.boolean());
  return api_ok();
}

ApiStatus read_top_logprobs(const RequestField& field, ChatSpec& spec) {
  OUTRIDER_TRY(const int64_t count, field.integer(0, spec.limits->top_logprobs));
  spec.top_logprobs = static_cast<int>(count);
  return api_ok();
}

ApiStatus read_max_tokens(const RequestField& field, ChatSpec& spec) {
  OUTRIDER_TRY(const int64_t max, field.integer(1, INT32_MAX));
  // max_completion_tokens takes precedence over max_tokens.
  if (field.key() == "max_completion_tokens" || !spec.max_tokens) spec.max_tokens = max;
  return api_ok();
}

constexpr FieldRule<ChatSpec> kChatRules[] = {{"logprobs", read_logprobs},
                                              {"top_logprobs", read_top_logprobs},
                                              {"max_tokens", read_max_tokens},
                                              {"max_completion_tokens", read_max_tokens}};

ApiStatus skip_field(const RequestField&, ChatSpec&) { return api_ok(); }

std::vector<FieldRule<ChatSpec>> chat_rules() {
  std::vector<FieldRule<ChatSpec>> rules(std::begin(kChatRules), std::end(kChatRules));
  for (const std::string_view name : kPromptFields) rules.push_back({name, skip_field});
  return rules;
}

}  // namespace

bool is_prompt_field(std::string_view name) {
  return std::find(std::begin(kPromptFields), std::end(kPromptFields), name) != std::end(kPromptFields);
}

ApiResult<ChatPrompt> make_chat_prompt(const RequestField& root, const ServedModel& model,
                                       const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestField messages_field, root.at("messages"));
  OUTRIDER_TRY(ReadMessages read, read_messages(messages_field, limits.messages));
  ChatPrompt prompt;
  OUTRIDER_TRY(prompt.tools, read_tools(root, limits));
  if (model.chat_template == nullptr) {
    return field_error("messages", "the model has no chat template; use /v1/completions",
                       "unsupported_parameter");
  }
  const std::string& source = model.chat_template->source();
  OUTRIDER_TRY(const Ending ending, read_ending(root, read.messages));
  ChatContext context;
  OUTRIDER_RETURN_IF_ERROR(read_template_flags(root, limits, context));
  const ChatMessage last = read.messages.back();
  context.messages = std::move(read.messages);
  context.add_generation_prompt = ending.add_generation_prompt;
  context.bos_token = model.bos_token;
  context.eos_token = model.eos_token;
  context.input_marker = model.tokenizer.get();
  if (prompt.tools.choice != ToolChoice::kNone && !shows_tools(source)) {
    add_instructions(context.messages, prompt.tools);
  } else {
    context.tools_json = prompt.tools.json;
  }
  Result<std::string> rendered = model.chat_template->render(context);
  if (!rendered.ok()) return field_error("messages", rendered.error().message);
  if (ending.continue_final_message) {
    OUTRIDER_RETURN_IF_ERROR(cut_after_last(last, *model.tokenizer, *rendered));
  }
  prompt.text = drop_input_marks(*rendered);
  prompt.tokens = model.tokenizer->encode(*rendered, {.add_special = false, .drop_marks = true});
  prompt.can_think = source.find("</think>") != std::string::npos;
  prompt.begins_thinking = prompt.can_think && trim_spaces(prompt.text).ends_with("<think>");
  prompt.ignored = std::move(read.ignored);
  return prompt;
}

ApiResult<ChatSpec> read_chat_request(const RequestField& root, const CallContext& context) {
  static const std::vector<FieldRule<ChatSpec>> rules = chat_rules();
  ChatSpec spec;
  spec.model = context.model;
  spec.limits = &context.limits;
  spec.request.sampling = context.model->sampling;
  OUTRIDER_RETURN_IF_ERROR(read_fields<ChatSpec>(root, rules, spec));
  if (spec.top_logprobs > 0 && !spec.logprobs) {
    return field_error("top_logprobs", "expected only together with \"logprobs\": true");
  }
  if (spec.logprobs) spec.request.logprobs = spec.top_logprobs;
  OUTRIDER_TRY(spec.prompt, make_chat_prompt(root, *context.model, context.limits));
  truncate_prompt(spec, spec.prompt.tokens);
  spec.ignored.insert(spec.ignored.end(), spec.prompt.ignored.begin(), spec.prompt.ignored.end());
  return spec;
}

}  // namespace outrider
