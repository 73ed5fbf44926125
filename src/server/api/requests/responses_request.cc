// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/responses_request.h"

#include <utility>

#include "base/quote.h"
#include "server/api/field_rules.h"
#include "server/api/json_writer.h"
#include "server/api/requests/common_fields.h"
#include "server/api/requests/output_form.h"
#include "server/api/requests/responses_input.h"
#include "server/api/requests/responses_tools.h"
#include "server/api/requests/template_values.h"
#include "server/api/response_store.h"

namespace outrider {
namespace {

ApiStatus skip_input_field(const RequestField&, ResponsesSpec&) { return api_ok(); }

ApiStatus read_max_output_tokens(const RequestField& field, ResponsesSpec& spec) {
  OUTRIDER_TRY(const int64_t max, field.integer(-1, INT32_MAX));
  if (max == 0) return field.error("expected -1, which is no limit, or 1 and more, found 0");
  if (max > 0) spec.max_tokens = max;
  return api_ok();
}

ApiStatus read_store(const RequestField& field, ResponsesSpec& spec) {
  OUTRIDER_TRY(spec.is_stored, field.boolean());
  return api_ok();
}

ApiStatus read_text_form(const RequestField& field, ResponsesSpec& spec) {
  OUTRIDER_TRY(const auto members, field.members());
  for (const RequestField& member : members) {
    if (member.is_null()) continue;
    if (member.key() == "format") {
      OUTRIDER_RETURN_IF_ERROR(read_response_format(member, spec));
    } else if (member.key() == "verbosity") {
      continue;  // a variable of the template
    } else {
      return unknown_field(member);
    }
  }
  return api_ok();
}

// Encrypted reasoning is asked for by clients that keep no conversation here. Reasoning items carry their
// text instead. All else that may be included is a part of items that are never made here.
ApiStatus read_include(const RequestField& field, ResponsesSpec& spec) {
  constexpr std::string_view kKnown[] = {
      "reasoning.encrypted_content",   "file_search_call.results",
      "web_search_call.results",       "web_search_call.action.sources",
      "message.input_image.image_url", "computer_call_output.output.image_url",
      "code_interpreter_call.outputs"};
  OUTRIDER_TRY(const auto items, field.items(16));
  for (const RequestField& item : items) OUTRIDER_RETURN_IF_ERROR(item.one_of(kKnown));
  spec.ignored.push_back(field.path());
  return api_ok();
}

ApiStatus read_stream_options(const RequestField& field, ResponsesSpec& spec) {
  spec.ignored.push_back(field.path());
  return field.is_object() ? api_ok() : ApiStatus(field.expected("an object"));
}

ApiStatus check_neutral(const RequestField& field, ResponsesSpec&) {
  constexpr UnsupportedField kNeutral[] = {
      {"background", "false"}, {"conversation", ""},    {"n", "1"},
      {"prompt", ""},          {"prompt_logprobs", ""}, {"top_logprobs", "0"}};
  for (const UnsupportedField& rule : kNeutral) {
    if (rule.name == field.key()) return check_unsupported(field, rule);
  }
  return api_ok();
}

// Limits of OpenAI's own tools, and what its servers do with conversations that are too long: here they are
// refused.
ApiStatus log_field(const RequestField& field, ResponsesSpec& spec) {
  spec.ignored.push_back(field.path());
  return api_ok();
}

ApiStatus read_truncation(const RequestField& field, ResponsesSpec& spec) {
  constexpr std::string_view kWays[] = {"disabled", "auto"};
  OUTRIDER_TRY(const int way, field.one_of(kWays));
  return way == 0 ? api_ok() : log_field(field, spec);
}

ApiStatus read_budget(const RequestField& field, ResponsesSpec& spec) {
  return read_thinking_budget(field, spec);
}

constexpr FieldRule<ResponsesSpec> kResponsesRules[] = {{"input", skip_input_field},
                                                        {"instructions", skip_input_field},
                                                        {"previous_response_id", skip_input_field},
                                                        {"tools", skip_input_field},
                                                        {"tool_choice", skip_input_field},
                                                        {"parallel_tool_calls", skip_input_field},
                                                        {"reasoning", skip_input_field},
                                                        {"chat_template_kwargs", skip_input_field},
                                                        {"enable_thinking", skip_input_field},
                                                        {"max_output_tokens", read_max_output_tokens},
                                                        {"store", read_store},
                                                        {"text", read_text_form},
                                                        {"include", read_include},
                                                        {"stream_options", read_stream_options},
                                                        {"background", check_neutral},
                                                        {"context_management", log_field},
                                                        {"conversation", check_neutral},
                                                        {"image", log_field},
                                                        {"max_tool_calls", log_field},
                                                        {"n", check_neutral},
                                                        {"prompt", check_neutral},
                                                        {"prompt_logprobs", check_neutral},
                                                        {"top_logprobs", check_neutral},
                                                        {"thinking_token_budget", read_budget},
                                                        {"thinking_budget", read_budget},
                                                        {"truncation", read_truncation}};

// The tools of the request, and the tools that items of its input bring.
ApiResult<ToolUse> read_response_tools(const RequestField& root, const std::vector<RequestField>& more,
                                       ResponsesSpec& spec) {
  ResponseTools tools;
  if (const auto field = root.find("tools"))
    OUTRIDER_RETURN_IF_ERROR(add_response_tools(*field, *spec.limits, false, tools));
  for (const RequestField& list : more)
    OUTRIDER_RETURN_IF_ERROR(add_response_tools(list, *spec.limits, true, tools));
  OUTRIDER_RETURN_IF_ERROR(read_response_choice(root, tools.use));
  spec.ignored.insert(spec.ignored.end(), tools.ignored.begin(), tools.ignored.end());
  spec.tool_kinds = std::move(tools.kinds);
  return std::move(tools.use);
}

// Begins the conversation with an earlier response's.
ApiStatus read_previous(const RequestField& root, const CallContext& context,
                        std::vector<ChatMessage>& messages) {
  const auto field = root.find("previous_response_id");
  if (!field) return api_ok();
  OUTRIDER_TRY(const std::string id, field->string());
  const auto previous =
      context.responses == nullptr ? nullptr : context.responses->find(context.cache_scope, id);
  if (previous == nullptr) {
    ApiError error =
        field->error("no response " + quote(id) + " is kept here; send its conversation as input",
                     "previous_response_not_found");
    error.status = 404;
    return error;
  }
  messages = previous->messages;
  return api_ok();
}

// Bounds the memory that a call holds until its answer: texts that the template hides cost no tokens.
ApiStatus check_conversation(const ResponsesSpec& spec) {
  constexpr size_t kBytesPerToken = 32, kLeast = 64 << 10;
  const size_t max = kLeast + kBytesPerToken * static_cast<size_t>(spec.model->context);
  const size_t bytes = conversation_bytes(spec.messages) + spec.input.size() + spec.echo.size();
  if (bytes <= max) return api_ok();
  return field_error("input", "expected a conversation of at most " + std::to_string(max) +
                                  " bytes for the context of this model, found " + std::to_string(bytes));
}

ApiResult<ChatInput> read_chat_input(const RequestField& root, const CallContext& context,
                                     ResponsesSpec& spec) {
  OUTRIDER_RETURN_IF_ERROR(read_previous(root, context, spec.messages));
  OUTRIDER_TRY(const RequestField input_field, root.at("input"));
  ResponseInput read{.messages = std::move(spec.messages), .tools = {}, .ignored = {}};
  OUTRIDER_RETURN_IF_ERROR(read_response_input(input_field, context.limits, read));
  spec.messages = std::move(read.messages);
  spec.ignored.insert(spec.ignored.end(), read.ignored.begin(), read.ignored.end());
  if (spec.messages.empty()) return input_field.error("expected at least one message, found none");
  if (spec.messages.size() > static_cast<size_t>(context.limits.messages)) {
    return input_field.error("expected a conversation of at most " + std::to_string(context.limits.messages) +
                             " messages, found " + std::to_string(spec.messages.size()));
  }
  spec.input = input_items_json(input_field);
  ChatInput input{.messages = spec.messages, .messages_path = "input"};
  if (const auto instructions = root.find("instructions")) {
    OUTRIDER_TRY(std::string text, instructions->string());
    if (input.messages.front().role == "system") {
      input.messages.front().content = text + "\n\n" + *input.messages.front().content;
    } else {
      input.messages.insert(input.messages.begin(), {.role = "system", .content = std::move(text)});
    }
  }
  OUTRIDER_TRY(input.tools, read_response_tools(root, read.tools, spec));
  OUTRIDER_TRY(input.values, read_template_fields(root));
  return input;
}

// Members of the response object, with the values they have where the request says nothing.
constexpr std::pair<std::string_view, std::string_view> kEchoed[] = {
    {"instructions", "null"},
    {"max_output_tokens", "null"},
    {"metadata", "{}"},
    {"parallel_tool_calls", "true"},
    {"previous_response_id", "null"},
    {"reasoning", R"({"effort":null,"summary":null})"},
    {"store", "true"},
    {"text", R"({"format":{"type":"text"}})"},
    {"tool_choice", "\"auto\""},
    {"tools", "[]"},
    {"truncation", "\"disabled\""},
    {"user", "null"}};

std::string echo_of(const RequestField& root, const GenerationSpec& spec) {
  std::string echo;
  JsonWriter json(echo);
  for (const auto& [name, fallback] : kEchoed) {
    const auto field = root.find(name);
    json.key(name).json(field ? field->json() : std::string(fallback));
  }
  json.member("temperature", spec.request.sampling.temperature).member("top_p", spec.request.sampling.top_p);
  return echo;
}

}  // namespace

ApiResult<ResponsesSpec> read_responses_request(const RequestField& root, const CallContext& context) {
  ResponsesSpec spec;
  spec.model = context.model;
  spec.limits = &context.limits;
  spec.request.sampling = context.model->sampling;
  spec.thinking_budget = context.model->thinking_budget;
  OUTRIDER_RETURN_IF_ERROR(read_fields<ResponsesSpec>(root, kResponsesRules, spec));
  OUTRIDER_TRY(ChatInput input, read_chat_input(root, context, spec));
  OUTRIDER_TRY(spec.prompt, render_chat(std::move(input), *context.model));
  spec.echo = echo_of(root, spec);
  OUTRIDER_RETURN_IF_ERROR(check_conversation(spec));
  return spec;
}

}  // namespace outrider
