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
// keeps white space at the end of a content.
constexpr std::string_view kContinueMark = "OutriderContinuesHere";

// Cuts the prompt after the text of the last message, whose content ends with the mark and a space. White
// space stays if the template keeps it, as in transformers.
ApiStatus cut_at_mark(const ChatMessage& last, const Tokenizer& tokenizer, std::string& rendered) {
  const std::string_view text = trimmed(*last.content);
  const std::string shown = tokenizer.mark_input(trimmed(text.substr(0, text.size() - kContinueMark.size())));
  const size_t place = rendered.rfind(kContinueMark);
  if (place == std::string::npos || rendered.find(shown) == std::string::npos) {
    return field_error("continue_final_message",
                       "the chat template does not print the last message as it is");
  }
  const bool keeps_space = rendered.substr(place + kContinueMark.size()).starts_with(' ');
  rendered.erase(place);
  while (!keeps_space && !rendered.empty()) {
    const utf8::CodePoint last_one = utf8::decode_last(rendered);
    if (!utf8::is_space(last_one.value)) break;
    rendered.resize(rendered.size() - static_cast<size_t>(last_one.length));
  }
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

}  // namespace

ApiResult<ChatPrompt> render_chat(ChatInput input, const ServedModel& model) {
  if (model.chat_template == nullptr) {
    return field_error(input.messages_path,
                       model.template_problem.empty() ? "the model has no chat template; use /v1/completions"
                                                      : model.template_problem,
                       "unsupported_parameter");
  }
  rewrite_hidden_parts(input.messages, input.tools, model.template_abilities);
  if (input.continue_final_message) input.messages.back().content->append(kContinueMark).append(" ");
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
