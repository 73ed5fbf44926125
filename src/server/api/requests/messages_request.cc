// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/messages_request.h"

#include <algorithm>
#include <utility>

#include "server/api/field_rules.h"
#include "server/api/requests/common_fields.h"
#include "server/api/requests/messages_input.h"
#include "server/api/requests/output_form.h"
#include "server/api/requests/template_values.h"

namespace outrider {
namespace {

ApiStatus skip_block_field(const RequestField&, ChatSpec&) { return api_ok(); }

// {"type": ..., "budget_tokens": ...}; make_messages_prompt() reads the type.
ApiStatus read_thinking_tokens(const RequestField& field, ChatSpec& spec) {
  const auto budget = field.find("budget_tokens");
  return budget ? read_thinking_budget(*budget, spec) : api_ok();
}

ApiStatus read_max_message_tokens(const RequestField& field, ChatSpec& spec) {
  OUTRIDER_TRY(const int64_t max, field.integer(-1, INT32_MAX));
  if (max == 0) return field.error("expected -1, which is no limit, or 1 and more, found 0");
  spec.max_tokens = max < 0 ? INT32_MAX : max;
  return api_ok();
}

ApiStatus read_stop_sequences(const RequestField& field, ChatSpec& spec) {
  return read_stop_strings(field, spec);
}

// {"format": {"type": "json_schema", "schema": ...}, "effort": ...}. The effort is a variable of the
// template, and a task's budget is not counted.
ApiStatus read_output_config(const RequestField& field, ChatSpec& spec) {
  OUTRIDER_TRY(const auto members, field.members());
  for (const RequestField& member : members) {
    if (member.is_null() || member.key() == "effort") continue;
    if (member.key() == "format") {
      OUTRIDER_RETURN_IF_ERROR(read_response_format(member, spec));
    } else if (member.key() == "task_budget") {
      spec.ignored.push_back(member.path());
    } else {
      return unknown_field(member);
    }
  }
  return api_ok();
}

ApiStatus read_output_format(const RequestField& field, ChatSpec& spec) {
  return read_response_format(field, spec);
}

ApiStatus log_field(const RequestField& field, ChatSpec& spec) {
  spec.ignored.push_back(field.path());
  return api_ok();
}

ApiStatus check_block_field(const RequestField& field, ChatSpec&) {
  constexpr UnsupportedField kNeutral[] = {{"container", ""},       {"mcp_servers", "[]"},  {"n", "1"},
                                           {"prompt_logprobs", ""}, {"stream_options", ""}, {"thread", ""}};
  for (const UnsupportedField& rule : kNeutral) {
    if (rule.name == field.key()) return check_unsupported(field, rule);
  }
  return api_ok();
}

constexpr FieldRule<ChatSpec> kMessagesRules[] = {{"messages", skip_block_field},
                                                  {"system", skip_block_field},
                                                  {"tools", skip_block_field},
                                                  {"tool_choice", skip_block_field},
                                                  {"thinking", read_thinking_tokens},
                                                  {"thinking_token_budget", read_thinking_budget},
                                                  {"thinking_budget", read_thinking_budget},
                                                  {"chat_template_kwargs", skip_block_field},
                                                  {"enable_thinking", skip_block_field},
                                                  {"max_tokens", read_max_message_tokens},
                                                  {"stop_sequences", read_stop_sequences},
                                                  {"output_config", read_output_config},
                                                  {"output_format", read_output_format},
                                                  {"context_management", log_field},
                                                  {"compaction", log_field},
                                                  {"cache_control", log_field},
                                                  {"betas", log_field},
                                                  {"billing_policy", log_field},
                                                  {"diagnostics", log_field},
                                                  {"fallback_credit_token", log_field},
                                                  {"fallbacks", log_field},
                                                  {"inference_geo", log_field},
                                                  {"speed", log_field},
                                                  {"user_profile_id", log_field},
                                                  {"workspace_id", log_field},
                                                  {"thread", check_block_field},
                                                  {"container", check_block_field},
                                                  {"mcp_servers", check_block_field},
                                                  {"n", check_block_field},
                                                  {"prompt_logprobs", check_block_field},
                                                  {"stream_options", check_block_field}};

ApiStatus read_block_choice(const RequestField& field, ToolUse& use) {
  constexpr std::string_view kTypes[] = {"none", "auto", "any", "tool"};
  OUTRIDER_TRY(const RequestField type, field.at("type"));
  OUTRIDER_TRY(const int kind, type.one_of(kTypes));
  if (const auto single = field.find("disable_parallel_tool_use")) {
    OUTRIDER_TRY(const bool is_single, single->boolean());
    use.parallel = !is_single;
  }
  if (kTypes[kind] == "tool") return choose_named_tool(field, use);
  return choose_tools(static_cast<ToolChoice>(kind), field, use);
}

// Tools that Anthropic's servers run, and tools of a form that its models know, have no schema. They are left
// out.
ApiResult<bool> has_schema(const RequestField& item) {
  const auto type = item.find("type");
  if (!type) return true;
  OUTRIDER_TRY(const std::string name, type->string());
  return name == "custom";
}

ApiResult<ToolUse> read_block_tools(const RequestField& root, const ApiLimits& limits,
                                    std::vector<std::string>& ignored) {
  ToolUse use;
  if (const auto field = root.find("tools")) {
    OUTRIDER_TRY(const auto items, field->items(static_cast<size_t>(limits.tools)));
    for (const RequestField& item : items) {
      OUTRIDER_TRY(const bool is_usable, has_schema(item));
      if (!is_usable) {
        ignored.push_back(item.path());
        continue;
      }
      OUTRIDER_TRY(Tool tool, read_tool(item, "input_schema", limits));
      OUTRIDER_RETURN_IF_ERROR(add_tool(std::move(tool), item, use));
    }
  }
  if (const auto choice = root.find("tool_choice")) OUTRIDER_RETURN_IF_ERROR(read_block_choice(*choice, use));
  return use;
}

// {"type": "enabled", "adaptive", "between_tools" or "disabled"}; without it the template decides.
ApiStatus read_thinking(const RequestField& root, TemplateValues& values) {
  constexpr std::string_view kTypes[] = {"disabled", "enabled", "adaptive", "between_tools"};
  constexpr std::string_view kEfforts[] = {"low", "medium", "high", "xhigh", "max"};
  const auto config = root.find("output_config");
  if (const auto effort = config ? config->find("effort") : std::nullopt) {
    OUTRIDER_RETURN_IF_ERROR(effort->one_of(kEfforts));
    values.emplace_back("reasoning_effort", effort->json());
  }
  const auto field = root.find("thinking");
  if (!field) return api_ok();
  OUTRIDER_TRY(const RequestField type, field->at("type"));
  OUTRIDER_TRY(const int kind, type.one_of(kTypes));
  values.emplace_back("enable_thinking", kind == 0 ? "false" : "true");
  return api_ok();
}

}  // namespace

ApiResult<ChatPrompt> make_messages_prompt(const RequestField& root, const ServedModel& model,
                                           const ApiLimits& limits, std::vector<std::string>& ignored) {
  ChatInput input{.messages_path = "messages"};
  OUTRIDER_TRY(input.messages, read_block_messages(root, limits, ignored));
  OUTRIDER_TRY(input.tools, read_block_tools(root, limits, ignored));
  OUTRIDER_RETURN_IF_ERROR(read_thinking(root, input.values));
  OUTRIDER_TRY(const TemplateValues more, read_template_fields(root));
  input.values.insert(input.values.end(), more.begin(), more.end());
  // A last message of the assistant is the beginning of the answer.
  const ChatMessage& last = input.messages.back();
  if (last.role == "assistant" && last.tool_calls.empty() && !last.content.value_or("").empty()) {
    input.continue_final_message = true;
    input.add_generation_prompt = false;
  }
  return render_chat(std::move(input), model);
}

ApiResult<ChatSpec> read_messages_request(const RequestField& root, const CallContext& context) {
  ChatSpec spec;
  spec.model = context.model;
  spec.limits = &context.limits;
  spec.request.sampling = context.model->sampling;
  spec.thinking_budget = context.model->thinking_budget;
  OUTRIDER_TRY(const RequestField max_field, root.at("max_tokens"));
  OUTRIDER_RETURN_IF_ERROR(read_max_message_tokens(max_field, spec));
  OUTRIDER_RETURN_IF_ERROR(read_fields<ChatSpec>(root, kMessagesRules, spec));
  OUTRIDER_TRY(spec.prompt, make_messages_prompt(root, *context.model, context.limits, spec.ignored));
  // Clients must send max_tokens, so they send more than a context has room for.
  const int64_t room = context.model->context - static_cast<int64_t>(spec.prompt.tokens.size());
  spec.max_tokens = std::min(*spec.max_tokens, std::max<int64_t>(room, 1));
  return spec;
}

}  // namespace outrider
