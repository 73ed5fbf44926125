// SPDX-License-Identifier: Apache-2.0
#include "chat_template/chat_template.h"

#include <algorithm>
#include <ctime>
#include <exception>

#include "chat_template/jinja/interpreter.h"
#include "chat_template/jinja/json.h"
#include "chat_template/jinja/parser.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

namespace {

// The form of a call's arguments. Most templates print an object, some (DeepSeek's) join its text with other
// text.
enum class Arguments : uint8_t { kObject, kText };

// Turns the inputs of a template into its values, with the spellings of control tokens broken by marks.
class InputReader {
 public:
  InputReader(const ChatContext& context, Arguments arguments)
      : marker_(context.input_marker), thinks_in_parts_(context.thinking_in_parts), arguments_(arguments) {}

  jinja::Value text(const std::string& text) const {
    return jinja::Value(marker_ == nullptr ? text : marker_->mark_input(text));
  }
  Result<jinja::Value> json(const std::string& json) const {
    OUTRIDER_TRY(jinja::Value value, jinja::parse_json(json));
    return marker_ == nullptr ? Result<jinja::Value>(std::move(value)) : mark(value);
  }
  Result<jinja::Value> message(const ChatMessage& message) const;

 private:
  Result<jinja::Value> mark(const jinja::Value& value) const;
  Result<jinja::Value> tool_call(const ChatToolCall& call) const;
  Result<jinja::Value> content(const ChatMessage& message) const;
  Result<jinja::Value> part(const char* type, const std::string& value) const;

  const Tokenizer* marker_;
  bool thinks_in_parts_;
  Arguments arguments_;
};

Result<jinja::Value> InputReader::mark(const jinja::Value& value) const {
  if (value.is(jinja::Kind::kString)) return text(value.string());
  if (value.is(jinja::Kind::kList)) {
    std::vector<jinja::Value> items;
    for (const jinja::Value& item : value.list().items) {
      OUTRIDER_TRY(jinja::Value marked, mark(item));
      items.push_back(std::move(marked));
    }
    return jinja::make_list(std::move(items));
  }
  if (!value.is(jinja::Kind::kDict)) return value;
  jinja::Dict dict;
  for (const auto& [key, item] : value.dict().entries()) {
    OUTRIDER_TRY(jinja::Value marked, mark(item));
    OUTRIDER_RETURN_IF_ERROR(dict.set(text(key.string()), std::move(marked)));
  }
  return jinja::make_dict(std::move(dict));
}

Result<jinja::Value> InputReader::tool_call(const ChatToolCall& call) const {
  jinja::Value arguments = text(call.arguments);
  if (arguments_ == Arguments::kObject) {
    OUTRIDER_TRY(arguments, json(call.arguments));
  }
  jinja::Dict function, dict;
  OUTRIDER_RETURN_IF_ERROR(function.set("name", text(call.name)));
  OUTRIDER_RETURN_IF_ERROR(function.set("arguments", std::move(arguments)));
  OUTRIDER_TRY(jinja::Value function_value, jinja::make_dict(std::move(function)));
  OUTRIDER_RETURN_IF_ERROR(dict.set("id", text(call.id)));
  OUTRIDER_RETURN_IF_ERROR(dict.set("type", "function"));
  OUTRIDER_RETURN_IF_ERROR(dict.set("function", std::move(function_value)));
  return jinja::make_dict(std::move(dict));
}

// {"type": TYPE, TYPE: value}
Result<jinja::Value> InputReader::part(const char* type, const std::string& value) const {
  jinja::Dict dict;
  OUTRIDER_RETURN_IF_ERROR(dict.set("type", type));
  OUTRIDER_RETURN_IF_ERROR(dict.set(type, text(value)));
  return jinja::make_dict(std::move(dict));
}

Result<jinja::Value> InputReader::content(const ChatMessage& message) const {
  if (!thinks_in_parts_ || message.reasoning_content.empty())
    return message.content ? text(*message.content) : jinja::Value(jinja::None{});
  std::vector<jinja::Value> parts;
  OUTRIDER_TRY(jinja::Value thinking, part("thinking", message.reasoning_content));
  parts.push_back(std::move(thinking));
  OUTRIDER_TRY(jinja::Value said, part("text", message.content.value_or("")));
  parts.push_back(std::move(said));
  return jinja::make_list(std::move(parts));
}

// Templates know earlier thinking by two names: gpt-oss's read "thinking".
Result<jinja::Value> InputReader::message(const ChatMessage& message) const {
  jinja::Dict dict;
  OUTRIDER_RETURN_IF_ERROR(dict.set("role", message.role));
  OUTRIDER_TRY(jinja::Value said, content(message));
  OUTRIDER_RETURN_IF_ERROR(dict.set("content", std::move(said)));
  const std::string none;
  const std::string& thinking = thinks_in_parts_ ? none : message.reasoning_content;
  const std::pair<const char*, const std::string*> optional[] = {{"reasoning_content", &thinking},
                                                                 {"thinking", &thinking},
                                                                 {"name", &message.name},
                                                                 {"tool_call_id", &message.tool_call_id}};
  for (const auto& [key, value] : optional) {
    if (!value->empty()) OUTRIDER_RETURN_IF_ERROR(dict.set(key, text(*value)));
  }
  if (!message.tool_calls.empty()) {
    std::vector<jinja::Value> calls;
    for (const ChatToolCall& call : message.tool_calls) {
      OUTRIDER_TRY(jinja::Value value, tool_call(call));
      calls.push_back(std::move(value));
    }
    OUTRIDER_TRY(jinja::Value list, jinja::make_list(std::move(calls)));
    OUTRIDER_RETURN_IF_ERROR(dict.set("tool_calls", std::move(list)));
  }
  return jinja::make_dict(std::move(dict));
}

Result<jinja::Value> tools_value(const InputReader& reader, const std::string& json) {
  if (json.empty()) return jinja::Value(jinja::None{});
  OUTRIDER_TRY(jinja::Value tools, reader.json(json));
  if (!tools.is(jinja::Kind::kList)) return usage_error("tools: expected a JSON array, found another value");
  return tools;
}

// Defines the variables that transformers defines for a template.
Result<jinja::Dict> make_variables(const ChatContext& context, Arguments arguments) {
  const InputReader reader(context, arguments);
  std::vector<jinja::Value> messages;
  for (const ChatMessage& message : context.messages) {
    OUTRIDER_TRY(jinja::Value value, reader.message(message));
    messages.push_back(std::move(value));
  }
  OUTRIDER_TRY(jinja::Value message_list, jinja::make_list(std::move(messages)));
  OUTRIDER_TRY(jinja::Value tools, tools_value(reader, context.tools_json));
  jinja::Dict variables;
  OUTRIDER_RETURN_IF_ERROR(variables.set("messages", std::move(message_list)));
  OUTRIDER_RETURN_IF_ERROR(variables.set("tools", std::move(tools)));
  OUTRIDER_RETURN_IF_ERROR(variables.set("documents", jinja::None{}));
  OUTRIDER_RETURN_IF_ERROR(variables.set("add_generation_prompt", context.add_generation_prompt));
  if (!context.bos_token.empty()) OUTRIDER_RETURN_IF_ERROR(variables.set("bos_token", context.bos_token));
  if (!context.eos_token.empty()) OUTRIDER_RETURN_IF_ERROR(variables.set("eos_token", context.eos_token));
  for (const auto& [name, spelling] : context.other_tokens)
    OUTRIDER_RETURN_IF_ERROR(variables.set(name, spelling));
  for (const auto& [name, json] : context.values) {
    OUTRIDER_TRY(jinja::Value value, reader.json(json));
    OUTRIDER_RETURN_IF_ERROR(variables.set(name, std::move(value)));
  }
  return variables;
}

}  // namespace

struct ChatTemplate::Impl {
  std::string source;
  jinja::Body body;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) try {
  OUTRIDER_TRY(jinja::Body body, jinja::parse_template(source));
  return ChatTemplate(std::make_unique<Impl>(Impl{std::string(source), std::move(body)}));
} catch (const std::exception& error) {
  return resource_error(std::string("chat template: ") + error.what());
}

const std::string& ChatTemplate::source() const { return impl_->source; }

Result<std::string> ChatTemplate::render(const ChatContext& context) const try {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  const auto render_with = [&](Arguments arguments) -> Result<std::string> {
    OUTRIDER_TRY(const jinja::Dict variables, make_variables(context, arguments));
    return jinja::render(impl_->body, variables, jinja::Limits{}, local);
  };
  Result<std::string> rendered = render_with(Arguments::kObject);
  const bool has_calls = std::any_of(context.messages.begin(), context.messages.end(),
                                     [](const ChatMessage& message) { return !message.tool_calls.empty(); });
  if (rendered.ok() || !has_calls) return rendered;
  Result<std::string> second = render_with(Arguments::kText);
  return second.ok() ? std::move(second) : std::move(rendered);
} catch (const std::exception& error) {
  return resource_error(std::string("chat template: ") + error.what());
}

}  // namespace outrider
