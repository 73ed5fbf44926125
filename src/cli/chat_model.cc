// SPDX-License-Identifier: Apache-2.0
#include "cli/chat_model.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "base/quote.h"
#include "chat_template/plain_messages.h"
#include "cli/prompt_text.h"
#include "engine/engine_parts.h"
#include "open/default_sampling.h"
#include "server/api/api_limits.h"
#include "server/api/requests/constraints.h"
#include "server/api/requests/template_values.h"

namespace outrider {
namespace {

Result<TemplateValues> template_values(const std::string& json) {
  if (json.empty()) return TemplateValues();
  const auto fail = [](const ApiError& error) {
    return usage_error("--chat-template-kwargs: " + error.message);
  };
  const auto body = RequestBody::parse(json, ApiLimits().json_depth);
  if (!body.ok()) return fail(body.error());
  auto values = read_template_values(body->root());
  return values.ok() ? Result<TemplateValues>(std::move(values).value()) : fail(values.error());
}

// Sets the variables by which templates switch thinking on or off.
void switch_thinking(TemplateValues& values, bool thinks) {
  // Qwen, GLM, SmolLM; DeepSeek, Granite.
  for (const char* name : {"enable_thinking", "thinking"})
    values.emplace_back(name, thinks ? "true" : "false");
}

// A text, or the contents of the file after @.
Result<std::string> text_or_file(const std::string& given) {
  return given.starts_with('@') ? read_text_file(given.substr(1)) : Result<std::string>(given);
}

}  // namespace

Result<ChatInputs> read_chat_options(const ChatOptions& options) {
  ChatInputs inputs;
  if (!options.chat_template.empty()) {
    OUTRIDER_TRY(const std::string source, read_text_file(options.chat_template));
    OUTRIDER_TRY(inputs.chat_template, ChatTemplate::parse(source));
  }
  OUTRIDER_TRY(inputs.values, template_values(options.chat_template_kwargs));
  if (!options.think.empty()) {
    OUTRIDER_TRY(const ThinkingChoice choice, parse_thinking("--think", options.think));
    switch_thinking(inputs.values, choice.thinks);
    inputs.thinking_budget = choice.budget;
  }
  return inputs;
}

Result<ThinkingChoice> parse_thinking(std::string_view where, std::string_view how) {
  if (how == "on" || how == "-1") return ThinkingChoice{};
  if (how == "off" || how == "0") return ThinkingChoice{.thinks = false};
  int32_t tokens = 0;
  const auto [end, error] = std::from_chars(how.data(), how.data() + how.size(), tokens);
  if (error == std::errc() && end == how.data() + how.size() && tokens > 0)
    return ThinkingChoice{.budget = tokens};
  return usage_error(fmt::format("{}: expected on, off or a number of tokens, found {}", where, quote(how)));
}

Result<std::unique_ptr<ChatModel>> ChatModel::create(const Settings& settings, const Engine& engine) {
  std::unique_ptr<ChatModel> model(new ChatModel);
  model->served_ = served_model(engine.parts());
  OUTRIDER_TRY(ChatInputs inputs, read_chat_options(settings.chat));
  model->served_.template_values = std::move(inputs.values);
  model->served_.thinking_budget = inputs.thinking_budget;
  model->served_.thinking_message = settings.chat.thinking_message;
  model->served_.sampling = default_sampling(settings.request.sampling, given_choices(settings),
                                             engine.parts().target->config().sampling);
  if (inputs.chat_template) {
    model->chat_template_ = std::move(inputs.chat_template);
    model->served_.set_template(&*model->chat_template_);
  }
  return model;
}

void ChatModel::set_thinking(const ThinkingChoice& choice) {
  switch_thinking(served_.template_values, choice.thinks);
  served_.thinking_budget = choice.budget;
}

Result<ChatSpec> ChatModel::spec_of(Messages messages, Request request) const {
  if (served_.chat_template == nullptr) return missing_template(served_.template_problem);
  ChatInput input;
  input.messages = plain_messages(messages);
  ChatSpec spec;
  spec.model = &served_;
  spec.thinking_budget = served_.thinking_budget;
  spec.request = std::move(request);
  spec.request.sampling = served_.sampling;
  auto prompt = render_chat(std::move(input), served_);
  if (!prompt.ok()) return input_error(prompt.error().message);
  spec.prompt = std::move(prompt).value();
  spec.prompt.tools.choice = ToolChoice::kNone;
  spec.prompt.output.calls.clear();  // no tools were offered
  spec.request.prompt = spec.prompt.tokens;
  prepare_output(spec);
  auto constraints = chat_constraints(spec);
  if (!constraints.ok()) return input_error(constraints.error().message);
  if (!constraints->empty()) spec.request.constraint = constraints->front();
  return spec;
}

Status set_form(const GenerateOptions& options, ChatSpec& spec) {
  using Kind = OutputForm::Kind;
  struct Given {
    Kind kind;
    const std::string& text;
    const char* option;
  };
  for (const Given& given :
       {Given{Kind::kJsonSchema, options.json_schema, "--json-schema"},
        Given{Kind::kRegex, options.regex, "--regex"}, Given{Kind::kGrammar, options.grammar, "--grammar"}}) {
    if (given.text.empty()) continue;
    if (spec.form.kind != Kind::kFree)
      return usage_error(fmt::format("expected one form, found {} and {}", spec.form.path, given.option));
    spec.form.kind = given.kind;
    spec.form.path = given.option;
    OUTRIDER_TRY(spec.form.text, text_or_file(given.text));
  }
  if (spec.form.kind == Kind::kFree) return {};
  auto constraints = spec.prompt.text.empty() ? form_constraints(spec, 1) : chat_constraints(spec);
  if (!constraints.ok()) return input_error(spec.form.path + ": " + constraints.error().message);
  if (!constraints->empty()) spec.request.constraint = constraints->front();
  return {};
}

}  // namespace outrider
