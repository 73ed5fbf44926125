// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/infill_request.h"

#include <algorithm>
#include <utility>

#include "server/api/requests/common_fields.h"
#include "server/api/requests/fill_in_middle.h"

namespace outrider {
namespace {

constexpr size_t kMaxExtra = 256;  // texts

ApiStatus skip_infill_field(const RequestField&, CompletionSpec&) { return api_ok(); }

// Editors send limits on times and an order of samplers with every request; here they have no effect.
ApiStatus log_infill_field(const RequestField& field, CompletionSpec& spec) {
  spec.ignored.push_back(field.path());
  return api_ok();
}

constexpr FieldRule<CompletionSpec> kInfillRules[] = {
    {"input_prefix", skip_infill_field},    {"input_suffix", skip_infill_field},
    {"input_extra", skip_infill_field},     {"prompt", skip_infill_field},
    {"samplers", log_infill_field},         {"t_max_prompt_ms", log_infill_field},
    {"t_max_predict_ms", log_infill_field}, {"n_indent", log_infill_field}};

constexpr FieldRule<CompletionSpec> kLlamaRules[] = {{"prompt", skip_infill_field},
                                                     {"samplers", log_infill_field},
                                                     {"t_max_prompt_ms", log_infill_field},
                                                     {"t_max_predict_ms", log_infill_field},
                                                     {"n_indent", log_infill_field}};

// A text, token ids, or both in one list.
ApiResult<std::vector<TokenId>> read_mixed_prompt(const RequestField& field, const ServedModel& model) {
  const Tokenizer& tokenizer = *model.tokenizer;
  if (field.is_string()) {
    OUTRIDER_TRY(const std::string text, field.string());
    return tokenizer.encode(text);
  }
  if (!field.is_array()) return field.expected("a string, or a list of token ids and strings");
  std::vector<TokenId> tokens;
  OUTRIDER_RETURN_IF_ERROR(field.each([&](const RequestField& item) -> ApiStatus {
    if (item.is_string()) {
      OUTRIDER_TRY(const std::string text, item.string());
      const std::vector<TokenId> more = tokenizer.encode(text, {.add_special = tokens.empty()});
      tokens.insert(tokens.end(), more.begin(), more.end());
    } else {
      OUTRIDER_TRY(const int64_t token, item.integer(0, model.vocab_size - 1));
      tokens.push_back(static_cast<TokenId>(token));
    }
    return api_ok();
  }));
  return tokens;
}

// The other texts, as llama-server joins them for models without tokens for repositories.
ApiResult<std::string> extra_text(const RequestField& root) {
  std::string text;
  const auto field = root.find("input_extra");
  if (!field) return text;
  OUTRIDER_TRY(const auto items, field->items(kMaxExtra));
  for (const RequestField& item : items) {
    OUTRIDER_TRY(const RequestField part, item.at("text"));
    OUTRIDER_TRY(const std::string one, part.string());
    text.append("--- snippet ---\n\n").append(one);
  }
  return text;
}

}  // namespace

ApiResult<CompletionSpec> read_llama_completion(const RequestField& root, const CallContext& context) {
  CompletionSpec spec;
  spec.model = context.model;
  spec.limits = &context.limits;
  spec.request.sampling = context.model->sampling;
  OUTRIDER_RETURN_IF_ERROR(read_fields<CompletionSpec>(root, kLlamaRules, spec));
  if (spec.n != 1) return field_error("n", "expected 1, found " + std::to_string(spec.n));
  OUTRIDER_TRY(const RequestField prompt, root.at("prompt"));
  OUTRIDER_TRY(std::vector<TokenId> tokens, read_mixed_prompt(prompt, *context.model));
  if (tokens.empty()) return prompt.error("expected at least one token, found none");
  spec.prompts.push_back({.text = {}, .tokens = std::move(tokens)});
  return spec;
}

ApiResult<CompletionSpec> read_infill_request(const RequestField& root, const CallContext& context) {
  CompletionSpec spec;
  spec.model = context.model;
  spec.limits = &context.limits;
  spec.request.sampling = context.model->sampling;
  OUTRIDER_RETURN_IF_ERROR(read_fields<CompletionSpec>(root, kInfillRules, spec));
  if (spec.n != 1) return field_error("n", "expected 1, found " + std::to_string(spec.n));
  const Tokenizer& tokenizer = *spec.model->tokenizer;
  const auto marks = find_middle_marks(tokenizer);
  if (!marks) {
    return field_error("input_prefix",
                       "the model has no tokens for filling in the middle; use /v1/completions",
                       "unsupported_parameter");
  }
  OUTRIDER_TRY(std::string before, text_at(root, "input_prefix"));
  OUTRIDER_TRY(const std::string prompt, text_at(root, "prompt"));
  OUTRIDER_TRY(const std::string after, text_at(root, "input_suffix"));
  OUTRIDER_TRY(const std::string extra, extra_text(root));
  before += prompt;
  const std::vector<TokenId> middle = middle_prompt(tokenizer, *marks, before, after);
  std::vector<TokenId> tokens = tokenizer.encode(extra, {.add_special = false, .parse_special = false});
  // Only the last tokens of the other texts are used if not all fit.
  const int64_t room =
      spec.model->context - static_cast<int64_t>(middle.size()) - spec.max_tokens.value_or(1);
  const auto kept = static_cast<size_t>(std::clamp<int64_t>(room, 0, static_cast<int64_t>(tokens.size())));
  tokens.erase(tokens.begin(), tokens.end() - static_cast<ptrdiff_t>(kept));
  tokens.insert(tokens.end(), middle.begin(), middle.end());
  spec.prompts.push_back({.text = {}, .tokens = std::move(tokens)});
  return spec;
}

}  // namespace outrider
