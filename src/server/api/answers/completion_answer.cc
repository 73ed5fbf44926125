// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/completion_answer.h"

#include <utility>

namespace outrider {
namespace {

constexpr Answer::Names kCompletionNames = {"cmpl-", "text_completion", "text_completion", true};

void write_logprobs(JsonWriter& json, std::optional<CompletionLogprobs>& logprobs) {
  json.key("logprobs");
  logprobs ? logprobs->write_to(json) : void(json.null());
}

}  // namespace

CompletionAnswer::CompletionAnswer(const CompletionSpec& spec, const CallContext& context,
                                   std::vector<Request> requests)
    : Answer(spec, context, kCompletionNames, std::move(requests)), choices_(choices()) {
  for (size_t i = 0; i < choices_.size(); ++i) {
    const CompletionPrompt& prompt = spec.prompts[i / static_cast<size_t>(spec.n)];
    if (spec.echo) choices_[i].echo = prompt.text;
    if (spec.echo && spec.logprobs >= 0) choices_[i].echoed = prompt.tokens;
    if (spec.logprobs >= 0) {
      choices_[i].logprobs.emplace(spec.model->tokenizer, spec.request.skip_special, spec.logprobs);
    }
  }
}

bool CompletionAnswer::begin_choice(int index, JsonWriter& json) {
  const Choice& choice = choices_[static_cast<size_t>(index)];
  if (choice.echo.empty() || !choice.echoed.empty()) return false;
  json.member("text", choice.echo).key("logprobs").null();
  return true;
}

bool CompletionAnswer::add_choice(int index, std::string_view text, const ChoiceDelta& delta,
                                  JsonWriter& json) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  const bool is_first = !choice.echoed.empty() && !delta.is_trace_alone();
  if (is_first) choice.logprobs->add_prompt(std::exchange(choice.echoed, {}), delta.prompt_logprobs);
  if (choice.logprobs && !delta.logprobs.empty()) {
    choice.logprobs->add(delta.tokens, std::span(delta.logprobs).first(text_tokens(delta)));
  }
  if (!spec().streams) {
    choice.text += text;
    return false;
  }
  json.member("text", is_first ? choice.echo + std::string(text) : std::string(text));
  write_logprobs(json, choice.logprobs);
  return is_first || !text.empty() || (choice.logprobs && text_tokens(delta) > 0);
}

void CompletionAnswer::end_choice(int, JsonWriter& json) { json.member("text", "").key("logprobs").null(); }

void CompletionAnswer::whole_choice(int index, JsonWriter& json) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  json.member("text", choice.echo + choice.text);
  write_logprobs(json, choice.logprobs);
}

}  // namespace outrider
