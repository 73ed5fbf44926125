// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/chat_request.h"

#include "server/api/requests/chat_messages.h"
#include "server/api/requests/common_fields.h"
#include "server/api/requests/template_values.h"
#include "server/api/tools/chat_tools.h"

namespace outrider {
namespace {

constexpr std::string_view kPromptFields[] = {"messages",
                                              "tools",
                                              "tool_choice",
                                              "parallel_tool_calls",
                                              "add_generation_prompt",
                                              "continue_final_message",
                                              "chat_template_kwargs",
                                              "enable_thinking",
                                              "reasoning_effort",
                                              "verbosity"};

ApiStatus read_ending(const RequestField& root, ChatInput& input) {
  if (const auto field = root.find("continue_final_message")) {
    OUTRIDER_TRY(input.continue_final_message, field->boolean());
  }
  input.add_generation_prompt = !input.continue_final_message;
  if (const auto field = root.find("add_generation_prompt")) {
    OUTRIDER_TRY(input.add_generation_prompt, field->boolean());
  }
  if (!input.continue_final_message) return api_ok();
  if (input.add_generation_prompt) {
    return field_error("add_generation_prompt", "expected false together with continue_final_message");
  }
  const ChatMessage& last = input.messages.back();
  if (last.role != "assistant" || last.content.value_or("").empty()) {
    return field_error("continue_final_message", "expected a last message of the assistant, with a content");
  }
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
  OUTRIDER_TRY(const int64_t max, field.integer(-1, INT32_MAX));
  if (max == 0) return field.error("expected -1, which is no limit, or 1 and more, found 0");
  if (max < 0) return api_ok();
  // max_completion_tokens takes precedence over max_tokens.
  if (field.key() == "max_completion_tokens" || !spec.max_tokens) spec.max_tokens = max;
  return api_ok();
}

// llama-server's; "none" leaves reasoning in the content.
ApiStatus read_reasoning_format(const RequestField& field, ChatSpec& spec) {
  constexpr std::string_view kFormats[] = {"none", "auto", "deepseek"};
  OUTRIDER_TRY(const int format, field.one_of(kFormats));
  spec.splits_reasoning = format != 0;
  return api_ok();
}

constexpr FieldRule<ChatSpec> kChatRules[] = {{"logprobs", read_logprobs},
                                              {"top_logprobs", read_top_logprobs},
                                              {"max_tokens", read_max_tokens},
                                              {"max_completion_tokens", read_max_tokens},
                                              {"n_predict", read_max_tokens},
                                              {"reasoning_format", read_reasoning_format},
                                              {"thinking_token_budget", read_thinking_budget},
                                              {"thinking_budget", read_thinking_budget}};

ApiStatus skip_field(const RequestField&, ChatSpec&) { return api_ok(); }

std::vector<FieldRule<ChatSpec>> chat_rules() {
  std::vector<FieldRule<ChatSpec>> rules(std::begin(kChatRules), std::end(kChatRules));
  for (const std::string_view name : kPromptFields) rules.push_back({name, skip_field});
  return rules;
}

}  // namespace

ApiStatus read_thinking_budget(const RequestField& field, ChatSpec& spec) {
  OUTRIDER_TRY(const int64_t tokens, field.integer(-1, INT32_MAX));
  spec.thinking_budget = tokens < 0 ? std::nullopt : std::optional(tokens);
  return api_ok();
}

ApiResult<ChatPrompt> make_chat_prompt(const RequestField& root, const ServedModel& model,
                                       const ApiLimits& limits, std::vector<std::string>* ignored) {
  OUTRIDER_TRY(const RequestField messages_field, root.at("messages"));
  OUTRIDER_TRY(ReadMessages read, read_messages(messages_field, limits.messages));
  if (ignored != nullptr) ignored->insert(ignored->end(), read.ignored.begin(), read.ignored.end());
  ChatInput input{.messages = std::move(read.messages), .messages_path = "messages"};
  OUTRIDER_TRY(input.tools, read_tools(root, limits));
  OUTRIDER_RETURN_IF_ERROR(read_ending(root, input));
  OUTRIDER_TRY(input.values, read_template_fields(root));
  return render_chat(std::move(input), model);
}

ApiResult<ChatSpec> read_chat_request(const RequestField& root, const CallContext& context) {
  static const std::vector<FieldRule<ChatSpec>> rules = chat_rules();
  ChatSpec spec;
  spec.model = context.model;
  spec.limits = &context.limits;
  spec.request.sampling = context.model->sampling;
  spec.thinking_budget = context.model->thinking_budget;
  OUTRIDER_RETURN_IF_ERROR(read_fields<ChatSpec>(root, rules, spec));
  if (spec.top_logprobs > 0 && !spec.logprobs) {
    return field_error("top_logprobs", "expected only together with \"logprobs\": true");
  }
  if (spec.logprobs) spec.request.logprobs = spec.top_logprobs;
  OUTRIDER_TRY(spec.prompt, make_chat_prompt(root, *context.model, context.limits, &spec.ignored));
  truncate_prompt(spec, spec.prompt.tokens);
  return spec;
}

}  // namespace outrider
