// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/chat_prompt.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "base/white_space.h"
#include "server/api/requests/shown_messages.h"
#include "tokenizer/input_marks.h"

namespace outrider {
namespace {

// Stands behind the text that the answer continues. White space behind the mark shows whether the template
// keeps white space at the end of a content. It is the mark of transformers, since some templates know it.
constexpr std::string_view kContinueMark = "CONTINUE_FINAL_MESSAGE_TAG";

// `text` without the white space of Unicode at its end.
std::string_view without_space_after(std::string_view text) {
  const bool is_valid = utf8::valid_prefix(text) == text.size();
  while (is_valid && !text.empty()) {
    const utf8::CodePoint last = utf8::decode_last(text);
    if (!utf8::is_space(last.value)) break;
    text.remove_suffix(static_cast<size_t>(last.length));
  }
  return text;
}

std::string_view without_space_before(std::string_view text) {
  while (!text.empty()) {
    const utf8::CodePoint first = utf8::decode(text);
    if (first.length == 0 || !utf8::is_space(first.value)) break;
    text.remove_prefix(static_cast<size_t>(first.length));
  }
  return text;
}

// Cuts the prompt after the text of the last message, whose content ends with the mark and a space. White
// space stays if the template keeps it, as in transformers.
ApiStatus cut_at_mark(const ChatMessage& last, const Tokenizer& tokenizer, std::string& rendered) {
  const std::string_view text =
      std::string_view(*last.content).substr(0, last.content->size() - kContinueMark.size() - 1);
  const std::string shown = tokenizer.mark_input(without_space_before(without_space_after(text)));
  size_t place = rendered.rfind(kContinueMark);
  if (place == std::string::npos || rendered.find(shown) == std::string::npos) {
    return field_error("continue_final_message",
                       "the chat template does not print the last message as it is");
  }
  const bool keeps_space = rendered.substr(place + kContinueMark.size()).starts_with(' ');
  rendered.erase(place);
  if (!keeps_space) rendered.resize(without_space_after(rendered).size());
  // The template may print the content more than once.
  while (text.find(kContinueMark) == std::string_view::npos &&
         (place = rendered.find(kContinueMark)) != std::string::npos)
    rendered.erase(place, kContinueMark.size() + (keeps_space ? 1 : 0));
  return api_ok();
}

// Whether the last variable of the names that templates use for it says that the model shall not think.
bool is_thinking_off(const TemplateValues& values) {
  for (auto value = values.rbegin(); value != values.rend(); ++value) {
    if (value->first == "enable_thinking" || value->first == "thinking") return value->second == "false";
  }
  return false;
}

// Whether the end of the prompt is within thinking. `begun`: the message that the answer continues.
ThinkingState thinking_after(const ThinkingForm& form, std::string_view prompt, const ChatMessage* begun) {
  if (form.is_channel) return begun == nullptr ? ThinkingState::kMayBegin : ThinkingState::kClosed;
  if (trimmed(prompt).ends_with(form.open)) return ThinkingState::kOpen;
  if (trimmed(prompt).ends_with(form.close)) return ThinkingState::kClosed;
  if (begun == nullptr) return ThinkingState::kMayBegin;
  const ThinkingState state = thinking_at_end(form, *begun->content);
  return state == ThinkingState::kOpen ? state : ThinkingState::kClosed;
}

// The forms in which the model may call: the one that its template asks for, and the one that the server asks
// for or demands by a grammar.
std::vector<const CallForm*> call_forms(const ToolUse& tools, const ServedModel& model) {
  std::vector<const CallForm*> forms;
  if (tools.choice == ToolChoice::kNone) return forms;
  const CallForm* own = find_call_form(model.chat_template->source(), model.tokenizer.get());
  if (own != nullptr) forms.push_back(own);
  if (own == nullptr || !model.template_abilities.shows_tools || tools.must_call())
    forms.push_back(&plain_call_form());
  return forms;
}

OutputParts output_parts(const ToolUse& tools, const ServedModel& model, const std::string& prompt,
                         const ChatMessage* begun) {
  OutputParts parts;
  parts.calls = call_forms(tools, model);
  parts.parallel = tools.parallel;
  parts.thinking = find_thinking_form(model.chat_template->source(), prompt);
  if (parts.thinking != nullptr) parts.begins = thinking_after(*parts.thinking, prompt, begun);
  constexpr size_t kTail = 4096;
  parts.prompt_tail = prompt.substr(prompt.size() - std::min(prompt.size(), kTail));
  return parts;
}

ChatContext template_context(const ChatInput& input, const ServedModel& model) {
  ChatContext context;
  context.add_generation_prompt = input.add_generation_prompt;
  context.bos_token = model.bos_token;
  context.eos_token = model.eos_token;
  context.other_tokens = model.other_tokens;
  context.values = model.template_values;
  context.values.insert(context.values.end(), input.values.begin(), input.values.end());
  context.input_marker = model.tokenizer.get();
  context.thinking_in_parts = model.template_abilities.reads_thinking_parts;
  if (model.template_abilities.shows_tools) context.tools_json = input.tools.json;
  if (context.tools_json.empty() && model.template_abilities.needs_tools) context.tools_json = "[]";
  return context;
}

// Renders the messages as a template of these abilities needs them, and leaves them in `context`.
Result<std::string> render_messages(const ChatInput& input, const ServedModel& model,
                                    const TemplateAbilities& abilities, ChatContext& context) {
  context.messages = input.messages;
  rewrite_hidden_parts(context.messages, input.tools, abilities);
  if (input.continue_final_message) {
    std::optional<std::string>& content = context.messages.back().content;
    content = content.value_or("").append(kContinueMark).append(" ");
  }
  return model.chat_template->render(context);
}

}  // namespace

ApiResult<ChatPrompt> render_chat(ChatInput input, const ServedModel& model) {
  if (model.chat_template == nullptr) {
    return field_error(input.messages_path,
                       model.template_problem.empty() ? "the model has no chat template; use /v1/completions"
                                                      : model.template_problem,
                       "unsupported_parameter");
  }
  ChatContext context = template_context(input, model);
  Result<std::string> rendered = render_messages(input, model, model.template_abilities, context);
  for (const TemplateAbilities& abilities : lesser_abilities(model.template_abilities)) {
    if (rendered.ok()) break;
    Result<std::string> other = render_messages(input, model, abilities, context);
    if (other.ok()) rendered = std::move(other);
  }
  if (!rendered.ok()) return field_error(input.messages_path, rendered.error().message);
  if (input.continue_final_message) {
    OUTRIDER_RETURN_IF_ERROR(cut_at_mark(context.messages.back(), *model.tokenizer, *rendered));
  }
  ChatPrompt prompt;
  prompt.tools = std::move(input.tools);
  const ChatMessage* begun = input.continue_final_message ? &context.messages.back() : nullptr;
  prompt.output = output_parts(prompt.tools, model, drop_input_marks(*rendered), begun);
  OutputParts& output = prompt.output;
  if (output.begins == ThinkingState::kOpen && is_thinking_off(context.values)) {
    *rendered += output.thinking->closing;
    output.begins = ThinkingState::kClosed;
  }
  prompt.text = drop_input_marks(*rendered);
  prompt.tokens = model.tokenizer->encode(*rendered, {.add_special = false, .drop_marks = true});
  return prompt;
}

}  // namespace outrider
