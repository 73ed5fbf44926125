// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/common_fields.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/quote.h"
#include "config/option_table.h"
#include "server/api/adapter_fields.h"
#include "server/api/requests/output_form.h"
#include "server/api/requests/speculative_fields.h"

namespace outrider {
namespace {

// A whole number within the range of a field of the option table.
ApiResult<int64_t> integer_of(const RequestField& field, std::string_view name) {
  const NumberRange range = http_range(name);
  return field.integer(whole_bound(range.min), whole_bound(range.max));
}

int64_t most_tokens() { return whole_bound(http_range("max_tokens").max); }

template <bool GenerationSpec::*kMember>
ApiStatus read_flag(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(spec.*kMember, field.boolean());
  return api_ok();
}

ApiStatus read_top_k(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const int64_t top_k, integer_of(field, "top_k"));
  spec.request.sampling.top_k = static_cast<int32_t>(std::max<int64_t>(top_k, 0));
  return api_ok();
}

ApiStatus read_seed(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const int64_t seed, integer_of(field, "seed"));
  if (seed != -1) spec.seed = static_cast<uint64_t>(seed);  // -1: random, as in vLLM and llama-server
  return api_ok();
}

ApiStatus read_n(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const int64_t n, field.integer(1, spec.limits->choices));
  spec.n = static_cast<int>(n);
  return api_ok();
}

ApiStatus read_prompt_logprobs(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const int64_t count, integer_of(field, "prompt_logprobs"));
  spec.prompt_logprobs = static_cast<int>(count);
  return api_ok();
}

// -1 means no limit, also as llama-server's n_predict.
ApiStatus read_max_tokens(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const int64_t max, field.integer(-1, most_tokens()));
  if (max >= 0) spec.max_tokens = max;
  return api_ok();
}

// llama-server's window of the repetition penalty. Here the penalty covers prompt and output, which is its
// -1.
ApiStatus read_penalty_window(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const int64_t window, field.integer(-1, most_tokens()));
  spec.penalty_window = window;
  return api_ok();
}

// llama-server's number of the slot that remembers the text; -1: any.
ApiStatus read_slot(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const int64_t slot, field.integer(-1, most_tokens()));
  spec.request.slot = static_cast<int>(std::min<int64_t>(slot, std::numeric_limits<int>::max()));
  return api_ok();
}

ApiStatus add_stop(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(std::string text, field.string());
  const auto max = static_cast<size_t>(spec.limits->stop_bytes);
  if (text.empty() || text.size() > max) {
    return field.error("expected 1 to " + std::to_string(max) + " bytes, found " +
                       std::to_string(text.size()));
  }
  spec.request.stop.push_back(std::move(text));
  return api_ok();
}

ApiStatus read_breakers(const RequestField& field, GenerationSpec& spec) {
  spec.request.dry_breakers.clear();
  OUTRIDER_TRY(const auto items, field.items(static_cast<size_t>(spec.limits->stop_strings)));
  for (const RequestField& item : items) {
    OUTRIDER_TRY(std::string text, item.string());
    const auto max = static_cast<size_t>(spec.limits->stop_bytes);
    if (text.empty() || text.size() > max) {
      return item.error("expected 1 to " + std::to_string(max) + " bytes, found " +
                        std::to_string(text.size()));
    }
    spec.request.dry_breakers.push_back(std::move(text));
  }
  if (items.empty()) spec.request.dry_breakers = {"none"};
  return api_ok();
}

ApiStatus read_stop_tokens(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const auto items, field.items(static_cast<size_t>(spec.limits->stop_tokens)));
  for (const RequestField& item : items) {
    OUTRIDER_TRY(const int64_t token, item.integer(0, spec.model->vocab_size - 1));
    spec.request.stop_tokens.push_back(static_cast<TokenId>(token));
  }
  return api_ok();
}

ApiStatus read_logit_bias(const RequestField& field, GenerationSpec& spec) {
  const NumberRange range = http_range("logit_bias");
  OUTRIDER_TRY(const auto members, field.members(static_cast<size_t>(spec.limits->logit_bias)));
  spec.request.sampling.logit_bias.clear();
  for (const RequestField& member : members) {
    const std::string_view key = member.key();
    TokenId token = -1;
    const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), token);
    const bool is_token =
        code == std::errc() && end == key.data() + key.size() && token >= 0 && token < spec.model->vocab_size;
    if (!is_token) {
      return member.error("expected a token id below " + std::to_string(spec.model->vocab_size) +
                          " as key, found " + quote(key));
    }
    OUTRIDER_TRY(const double bias, member.number(range.min, range.max));
    spec.request.sampling.logit_bias.emplace_back(token, static_cast<float>(bias));
  }
  return api_ok();
}

ApiStatus read_allowed_tokens(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const auto items, field.items(static_cast<size_t>(spec.model->vocab_size)));
  if (items.empty()) return field.error("expected at least one token id, found none");
  for (const RequestField& item : items) {
    OUTRIDER_TRY(const int64_t token, item.integer(0, spec.model->vocab_size - 1));
    spec.request.rules.allowed.push_back(static_cast<TokenId>(token));
  }
  return api_ok();
}

// Forbids the tokens of a word at the beginning of a text and the tokens of the word after a space. (vLLM
// leaves the latter out if they are fewer.)
void add_bad_word(std::string_view word, GenerationSpec& spec) {
  const auto tokens_of = [&](const std::string& text) {
    return spec.model->tokenizer->encode(text, {.add_special = false, .parse_special = false});
  };
  std::vector<TokenId> plain = tokens_of(std::string(word));
  std::vector<TokenId> spaced = tokens_of(" " + std::string(word));
  if (plain.empty()) return;
  if (spaced != plain) spec.request.rules.forbidden.push_back(std::move(spaced));
  spec.request.rules.forbidden.push_back(std::move(plain));
}

ApiStatus read_bad_words(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const auto items, field.items(static_cast<size_t>(spec.limits->bad_words)));
  for (const RequestField& item : items) {
    OUTRIDER_TRY(const std::string text, item.string());
    const size_t begin = std::min(text.find_first_not_of(' '), text.size());
    const auto max = static_cast<size_t>(spec.limits->stop_bytes);
    if (begin == text.size() || text.size() > max) {
      return item.error("expected a word of 1 to " + std::to_string(max) + " bytes, found " +
                        std::to_string(text.size() - begin));
    }
    add_bad_word(std::string_view(text).substr(begin), spec);
  }
  return api_ok();
}

// A string, or an array of {"type": "text", "text": ...}.
ApiResult<std::string> predicted_text(const RequestField& field) {
  constexpr std::string_view kTypes[] = {"text"};
  if (field.is_string()) return field.string();
  if (!field.is_array()) return field.expected("a string or an array of texts");
  std::string all;
  OUTRIDER_RETURN_IF_ERROR(field.each([&](const RequestField& item) -> ApiStatus {
    OUTRIDER_TRY(const RequestField type, item.at("type"));
    OUTRIDER_RETURN_IF_ERROR(type.one_of(kTypes));
    OUTRIDER_TRY(const RequestField part, item.at("text"));
    OUTRIDER_TRY(const std::string text, part.string());
    all += text;
    return api_ok();
  }));
  return all;
}

// {"type": "content", "content": ...}: the text that the answer is expected to have.
ApiStatus read_prediction(const RequestField& field, GenerationSpec& spec) {
  constexpr std::string_view kTypes[] = {"content"};
  OUTRIDER_TRY(const RequestField type, field.at("type"));
  OUTRIDER_RETURN_IF_ERROR(type.one_of(kTypes));
  OUTRIDER_TRY(const RequestField content, field.at("content"));
  OUTRIDER_TRY(const std::string text, predicted_text(content));
  spec.request.prediction =
      spec.model->tokenizer->encode(text, {.add_special = false, .parse_special = false});
  spec.has_prediction = true;
  return api_ok();
}

ApiStatus read_prompt_limit(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const int64_t limit, field.integer(-1, most_tokens()));
  if (limit == 0) return field.error("expected -1, or 1 and more, found 0");
  spec.prompt_limit = limit;
  return api_ok();
}

// llama-server's longest draft; 0: the request is decoded plainly.
ApiStatus read_longest_draft(const RequestField& field, GenerationSpec& spec) {
  constexpr int64_t kMost = 1024;
  OUTRIDER_TRY(const int64_t tokens, field.integer(0, kMost));
  RequestSpeculation& speculation = spec.request.speculation;
  if (tokens == 0) speculation.enabled = false;
  if (tokens > 0) speculation.max_draft_tokens = static_cast<int>(tokens);
  return api_ok();
}

ApiStatus read_stream_options(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const auto members, field.members());
  for (const RequestField& member : members) {
    if (member.is_null()) continue;
    if (member.key() == "include_usage") {
      OUTRIDER_TRY(spec.include_usage, member.boolean());
    } else if (member.key() == "continuous_usage_stats") {
      OUTRIDER_TRY(spec.continuous_usage, member.boolean());
    } else {
      spec.ignored.push_back(printable(member.path()));
    }
  }
  return api_ok();
}

using Rule = FieldRule<GenerationSpec>;

// Fields that are read otherwise than into the member that the option table names. All others are found
// there.
constexpr Rule kGenerationRules[] = {
    {"model", read_model},
    {"repeat_penalty",
     [](const RequestField& field, GenerationSpec& spec) {
       return read_parameter(field, *find_http_field("repetition_penalty"), spec.request);
     }},
    {"repeat_last_n", read_penalty_window},
    {"n_predict", read_max_tokens},
    {"id_slot", read_slot},
    {"top_k", read_top_k},
    {"seed", read_seed},
    {"n", read_n},
    {"max_tokens", read_max_tokens},
    {"prompt_logprobs", read_prompt_logprobs},
    {"stop", read_stop_strings},
    {"stop_token_ids", read_stop_tokens},
    {"dry_sequence_breakers", read_breakers},
    {"logit_bias", read_logit_bias},
    {"allowed_token_ids", read_allowed_tokens},
    {"bad_words", read_bad_words},
    {"truncate_prompt_tokens", read_prompt_limit},
    {"include_stop_str_in_output", read_flag<&GenerationSpec::include_stop>},
    {"return_token_ids", read_flag<&GenerationSpec::return_token_ids>},
    {"stream", read_flag<&GenerationSpec::streams>},
    {"stream_options", read_stream_options},
    {"prediction", read_prediction},
    {"lora", read_adapters},
    {"speculative", read_speculative},
    {"speculative.n_max", read_longest_draft},
    {"response_format", read_response_format},
    {"structured_outputs", read_structured_outputs},
    {"guided_json", read_guided_json},
    {"guided_regex", read_guided_regex},
    {"guided_choice", read_guided_choice},
    {"guided_grammar", read_guided_grammar},
    {"json_schema", read_guided_json},
    {"grammar", read_guided_grammar},
};

// Fields of other servers whose other values would change the output.
constexpr UnsupportedField kUnsupported[] = {
    {"add_special_tokens", "false"},
    {"audio", ""},
    {"best_of", "1"},
    {"chat_template", ""},
    {"chat_template_kwargs", "{}"},
    {"detokenize", "true"},
    {"documents", "[]"},
    {"dynatemp_range", "0 0.0"},
    {"echo", "false"},
    {"function_call", "\"none\""},
    {"functions", "[]"},
    {"guided_decoding_backend", ""},
    {"include_reasoning", "true"},
    {"length_penalty", "1 1.0"},
    {"logits_processors", "[]"},
    {"messages", ""},
    {"min_keep", "0"},
    {"mirostat", "0"},
    {"mm_processor_kwargs", "{}"},
    {"modalities", "[\"text\"]"},
    {"moderation", ""},
    {"n_indent", "0"},
    {"n_probs", "0"},
    {"parse_tool_calls", "true"},
    {"post_sampling_probs", "false"},
    {"prompt", ""},
    {"prompt_embeds", ""},
    {"reasoning_effort", ""},
    {"response_fields", "[]"},
    {"return_tokens", "false"},
    {"return_tokens_as_token_ids", "false"},
    {"samplers", ""},
    {"spaces_between_special_tokens", "true"},
    {"suffix", "\"\""},
    {"t_max_predict_ms", "0"},
    {"tools", "[]"},
    {"use_beam_search", "false"},
    {"verbosity", "\"medium\""},
    {"web_search_options", ""},
};

// Fields that change neither the output nor its form, or only together with one above.
constexpr std::string_view kWithoutMeaning[] = {
    "access_programs",
    "background_options",
    "cache_prompt",
    "cache_salt",
    "client_metadata",
    "dynatemp_exponent",
    "include_obfuscation",
    "metadata",
    "mirostat_eta",
    "mirostat_tau",
    "n_cache_reuse",
    "n_keep",
    "priority",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "request_id",
    "return_progress",
    "safety_identifier",
    "service_tier",
    "speculative.n_min",  // the policy decides which drafts pay
    "speculative.p_min",
    "store",
    "timings_per_token",
    "user",
};

}  // namespace

ApiResult<std::string> text_at(const RequestField& root, std::string_view name) {
  const auto field = root.find(name);
  return field ? field->string() : ApiResult<std::string>(std::string());
}

ApiStatus read_stop_strings(const RequestField& field, GenerationSpec& spec) {
  if (field.is_string()) return add_stop(field, spec);
  if (!field.is_array()) return field.expected("a string or an array of strings");
  OUTRIDER_TRY(const auto items, field.items(static_cast<size_t>(spec.limits->stop_strings)));
  for (const RequestField& item : items) OUTRIDER_RETURN_IF_ERROR(add_stop(item, spec));
  return api_ok();
}

ApiStatus read_common_field(const RequestField& field, GenerationSpec& spec) {
  if (const Rule* rule = find_rule<GenerationSpec>(kGenerationRules, field.key()))
    return rule->read(field, spec);
  if (const OptionRow* row = find_http_field(field.key())) return read_parameter(field, *row, spec.request);
  const auto* unsupported =
      std::find_if(std::begin(kUnsupported), std::end(kUnsupported),
                   [&](const UnsupportedField& candidate) { return candidate.name == field.key(); });
  if (unsupported != std::end(kUnsupported)) return check_unsupported(field, *unsupported);
  const bool has_no_meaning = std::find(std::begin(kWithoutMeaning), std::end(kWithoutMeaning),
                                        field.key()) != std::end(kWithoutMeaning);
  if (!has_no_meaning) return unknown_field(field);
  spec.ignored.push_back(field.path());
  return api_ok();
}

ApiStatus check_common_fields(const RequestField& root, const GenerationSpec& spec) {
  if (root.find("stream_options") && !spec.streams) {
    return field_error("stream_options", "expected only together with \"stream\": true");
  }
  const bool is_windowed = spec.penalty_window && *spec.penalty_window >= 0;
  if (is_windowed && spec.request.sampling.repetition_penalty != 1) {
    return field_error("repeat_last_n", "expected -1, the whole text, beside a repetition penalty, found " +
                                            std::to_string(*spec.penalty_window));
  }
  const int64_t min = spec.request.rules.min_tokens;
  if (spec.max_tokens && min > *spec.max_tokens) {
    return field_error("min_tokens", "expected at most max_tokens, " + std::to_string(*spec.max_tokens) +
                                         ", found " + std::to_string(min));
  }
  return api_ok();
}

bool truncate_prompt(const GenerationSpec& spec, std::vector<TokenId>& tokens) {
  if (!spec.prompt_limit) return false;
  const int64_t fits = std::max<int64_t>(1, spec.model->context - spec.max_tokens.value_or(1));
  const auto limit = static_cast<size_t>(*spec.prompt_limit < 0 ? fits : *spec.prompt_limit);
  if (tokens.size() <= limit) return false;
  tokens.erase(tokens.begin(), tokens.end() - static_cast<ptrdiff_t>(limit));
  return true;
}

}  // namespace outrider
