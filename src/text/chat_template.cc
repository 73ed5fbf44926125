// SPDX-License-Identifier: Apache-2.0
#include "text/chat_template.h"

#include <ctime>
#include <exception>

#include "text/jinja_interpreter.h"
#include "text/jinja_json.h"
#include "text/jinja_parser.h"

namespace outrider {

namespace {

Result<jinja::Value> message_value(const ChatMessage& message) {
  jinja::Dict dict;
  OUTRIDER_RETURN_IF_ERROR(dict.set("role", message.role));
  OUTRIDER_RETURN_IF_ERROR(dict.set("content", message.content));
  return jinja::make_dict(std::move(dict));
}

Result<jinja::Value> tools_value(const std::string& json) {
  if (json.empty()) return jinja::Value(jinja::None{});
  OUTRIDER_TRY(jinja::Value tools, jinja::parse_json(json));
  if (!tools.is(jinja::Kind::kList)) return usage_error("tools: expected a JSON array, found another value");
  return tools;
}

// The names transformers defines for a template.
Result<jinja::Dict> make_variables(const ChatContext& context) {
  std::vector<jinja::Value> messages;
  for (const ChatMessage& message : context.messages) {
    OUTRIDER_TRY(jinja::Value value, message_value(message));
    messages.push_back(std::move(value));
  }
  OUTRIDER_TRY(jinja::Value message_list, jinja::make_list(std::move(messages)));
  OUTRIDER_TRY(jinja::Value tools, tools_value(context.tools_json));
  jinja::Dict variables;
  OUTRIDER_RETURN_IF_ERROR(variables.set("messages", std::move(message_list)));
  OUTRIDER_RETURN_IF_ERROR(variables.set("tools", std::move(tools)));
  OUTRIDER_RETURN_IF_ERROR(variables.set("documents", jinja::None{}));
  OUTRIDER_RETURN_IF_ERROR(variables.set("add_generation_prompt", context.add_generation_prompt));
  if (!context.bos_token.empty()) OUTRIDER_RETURN_IF_ERROR(variables.set("bos_token", context.bos_token));
  if (!context.eos_token.empty()) OUTRIDER_RETURN_IF_ERROR(variables.set("eos_token", context.eos_token));
  for (const auto& [name, value] : context.flags) OUTRIDER_RETURN_IF_ERROR(variables.set(name, value));
  return variables;
}

}  // namespace

struct ChatTemplate::Impl {
  jinja::Body body;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) try {
  OUTRIDER_TRY(jinja::Body body, jinja::parse_template(source));
  return ChatTemplate(std::make_unique<Impl>(Impl{std::move(body)}));
} catch (const std::exception& error) {
  return resource_error(std::string("chat template: ") + error.what());
}

Result<std::string> ChatTemplate::render(const ChatContext& context) const try {
  OUTRIDER_TRY(const jinja::Dict variables, make_variables(context));
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return jinja::render(impl_->body, variables, jinja::Limits{}, local);
} catch (const std::exception& error) {
  return resource_error(std::string("chat template: ") + error.what());
}

}  // namespace outrider
