// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/completion_request.h"

#include <algorithm>

#include "server/api/requests/common_fields.h"
#include "server/api/requests/fill_in_middle.h"

namespace outrider {
namespace {

ApiStatus read_logprobs(const RequestField& field, CompletionSpec& spec) {
  OUTRIDER_TRY(const int64_t count, field.integer(0, spec.limits->top_logprobs));
  spec.logprobs = static_cast<int>(count);
  return api_ok();
}

template <bool CompletionSpec::*kMember>
ApiStatus read_flag(const RequestField& field, CompletionSpec& spec) {
  OUTRIDER_TRY(spec.*kMember, field.boolean());
  return api_ok();
}

ApiStatus read_suffix(const RequestField& field, CompletionSpec& spec) {
  OUTRIDER_TRY(std::string text, field.string());
  if (text.empty()) return api_ok();
  if (!find_middle_marks(*spec.model->tokenizer)) {
    return field.error("the model has no tokens for filling in the middle; expected no such field",
                       "unsupported_parameter");
  }
  spec.suffix = std::move(text);
  return api_ok();
}

ApiStatus skip_field(const RequestField&, CompletionSpec&) { return api_ok(); }

constexpr FieldRule<CompletionSpec> kCompletionRules[] = {
    {"prompt", skip_field},
    {"suffix", read_suffix},
    {"logprobs", read_logprobs},
    {"echo", read_flag<&CompletionSpec::echo>},
    {"add_special_tokens", read_flag<&CompletionSpec::add_special_tokens>}};

ApiResult<CompletionPrompt> text_prompt(const RequestField& field, const CompletionSpec& spec) {
  CompletionPrompt prompt;
  OUTRIDER_TRY(prompt.text, field.string());
  const Tokenizer& tokenizer = *spec.model->tokenizer;
  prompt.tokens = spec.suffix
                      ? middle_prompt(tokenizer, *find_middle_marks(tokenizer), prompt.text, *spec.suffix)
                      : tokenizer.encode(prompt.text, {.add_special = spec.add_special_tokens});
  if (prompt.tokens.empty()) return field.error("expected at least one token, found none");
  return prompt;
}

ApiResult<CompletionPrompt> token_prompt(const RequestField& field, const CompletionSpec& spec) {
  CompletionPrompt prompt;
  if (spec.suffix) return field.error("expected text beside a suffix, found tokens");
  prompt.tokens.reserve(field.size());
  OUTRIDER_RETURN_IF_ERROR(field.each([&](const RequestField& item) -> ApiStatus {
    OUTRIDER_TRY(const int64_t token, item.integer(0, spec.model->vocab_size - 1));
    prompt.tokens.push_back(static_cast<TokenId>(token));
    return api_ok();
  }));
  if (prompt.tokens.empty()) return field.error("expected at least one token, found none");
  prompt.text = spec.model->tokenizer->decode(prompt.tokens);
  return prompt;
}

}  // namespace

ApiStatus read_prompts(const RequestField& field, CompletionSpec& spec) {
  if (field.is_string()) {
    OUTRIDER_TRY(CompletionPrompt prompt, text_prompt(field, spec));
    spec.prompts.push_back(std::move(prompt));
    return api_ok();
  }
  if (!field.is_array()) return field.expected("a string, an array of strings, or an array of token ids");
  if (field.size() == 0) return field.error("expected at least one prompt, found none");
  if (field.begins_with_number()) {
    OUTRIDER_TRY(CompletionPrompt prompt, token_prompt(field, spec));
    spec.prompts.push_back(std::move(prompt));
    return api_ok();
  }
  const auto max = static_cast<size_t>(spec.limits->sequences);
  if (field.size() * static_cast<size_t>(spec.n) > max) {
    return field.error("expected at most " + std::to_string(max) + " choices, found " +
                       std::to_string(field.size()) + " prompts times n = " + std::to_string(spec.n));
  }
  OUTRIDER_TRY(const auto items, field.items(max));
  for (const RequestField& item : items) {
    if (item.is_string()) {
      OUTRIDER_TRY(CompletionPrompt prompt, text_prompt(item, spec));
      spec.prompts.push_back(std::move(prompt));
    } else {
      OUTRIDER_TRY(CompletionPrompt prompt, token_prompt(item, spec));
      spec.prompts.push_back(std::move(prompt));
    }
  }
  return api_ok();
}

ApiResult<CompletionSpec> read_completion_request(const RequestField& root, const CallContext& context) {
  CompletionSpec spec;
  spec.model = context.model;
  spec.limits = &context.limits;
  spec.request.sampling = context.model->sampling;
  OUTRIDER_RETURN_IF_ERROR(read_fields<CompletionSpec>(root, kCompletionRules, spec));
  spec.request.logprobs = spec.logprobs;
  spec.request.prompt_logprobs = std::max(spec.prompt_logprobs, spec.echo ? spec.logprobs : -1);
  OUTRIDER_TRY(const RequestField prompt, root.at("prompt"));
  OUTRIDER_RETURN_IF_ERROR(read_prompts(prompt, spec));
  for (CompletionPrompt& one : spec.prompts) {
    if (truncate_prompt(spec, one.tokens)) one.text = spec.model->tokenizer->decode(one.tokens);
  }
  return spec;
}

}  // namespace outrider
