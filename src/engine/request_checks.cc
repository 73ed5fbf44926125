// SPDX-License-Identifier: Apache-2.0
#include "engine/request_checks.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/quote.h"
#include "config/message_text.h"
#include "config/option_table.h"

namespace outrider {
namespace {

Status check_ids(std::span<const TokenId> tokens, int64_t vocab_size) {
  for (const TokenId token : tokens) {
    if (token >= 0 && token < vocab_size) continue;
    return input_error("token id " + std::to_string(token) + " is outside the vocabulary of " +
                       std::to_string(vocab_size) + " tokens");
  }
  return {};
}

Status check_prompt(std::span<const TokenId> prompt, const EngineParts& parts) {
  OUTRIDER_RETURN_IF_ERROR(check_tokens(prompt, parts.vocab_size));
  if (std::ssize(prompt) < parts.options.context) return {};
  return input_error("the prompt has " + std::to_string(prompt.size()) + " tokens and the context holds " +
                     std::to_string(parts.options.context) +
                     "; shorten the prompt or raise --ctx (the model allows " +
                     std::to_string(parts.target->config().max_context) + ")");
}

Status check_logprobs(std::string_view name, int count) {
  if (count >= -1 && count <= Request::kMaxLogprobs) return {};
  return usage_error(std::string(name) + " must be 0 to " + std::to_string(Request::kMaxLogprobs) +
                     ", or -1 for none, found " + std::to_string(count));
}

Status check_rules(const TokenRules& rules, int64_t max_tokens, int64_t vocab_size) {
  if (rules.min_tokens < 0 || rules.min_tokens > max_tokens) {
    return usage_error("min tokens must be 0 to max tokens, " + std::to_string(max_tokens) + ", found " +
                       std::to_string(rules.min_tokens));
  }
  OUTRIDER_RETURN_IF_ERROR(check_ids(rules.allowed, vocab_size));
  for (const std::vector<TokenId>& sequence : rules.forbidden) {
    if (sequence.empty()) return usage_error("a forbidden sequence must have a token or more, found none");
    OUTRIDER_RETURN_IF_ERROR(check_ids(sequence, vocab_size));
  }
  return {};
}

Status check_output(const Request& request, const EngineParts& parts) {
  if (request.output.empty()) return {};
  if (request.logprobs >= 0 || request.prompt_logprobs >= 0)
    return usage_error("a request that goes on after earlier output has no log-probabilities");
  const auto length = static_cast<int64_t>(request.prompt.size() + request.output.size());
  const bool has_room = length < parts.options.context || request.slide >= 0;
  if (std::ssize(request.output) >= request.max_tokens || !has_room) {
    return input_error("the earlier output has " + std::to_string(request.output.size()) +
                       " tokens, expected fewer than max tokens and than the context leaves room for");
  }
  return check_ids(request.output, parts.vocab_size);
}

Status check_slide(const Request& request, const EngineParts& parts) {
  if (request.slide < -1 || request.slide > std::max<int64_t>(-1, parts.options.context - 2)) {
    return usage_error("slide must be 0 to the context less 2, " + std::to_string(parts.options.context - 2) +
                       ", or -1 for none, found " + std::to_string(request.slide));
  }
  if (request.slide < 0 || !request.speculation.is_offered) return {};
  return usage_error("a request that offers its trees cannot slide; its text ends where the context does");
}

Status check_states(const RequestSpeculation& speculation, const EngineParts& parts) {
  if (parts.drafter->traits().states.size == 0) {
    return usage_error(
        "a request wants the states that drafters read, but the engine's drafter reads none; open it with "
        "the "
        "head that is to draft");
  }
  if (speculation.is_offered && *speculation.states_from >= 0) return {};
  return usage_error("a request's states begin with token 0 or later and need offered trees, found token " +
                     std::to_string(*speculation.states_from));
}

// Error: a drafter that the engine was not opened with.
Status check_methods(std::span<const std::string> methods, const EngineParts& parts) {
  std::string loaded;
  for (const std::string& source : parts.info.sources) loaded += (loaded.empty() ? "" : ", ") + source;
  for (const std::string& method : methods) {
    const auto is_it = [&](const std::string& source) { return names_method({&method, 1}, source); };
    if (std::ranges::any_of(parts.info.sources, is_it)) continue;
    return usage_error("a request asks for the method " + quote(method) + ", but the engine drafts with " +
                       loaded + "; ask for one of these, or open the engine with it");
  }
  return {};
}

Status check_prediction(const Request& request, int64_t vocab_size) {
  if (request.speculation.is_offered && !request.prediction.empty())
    return usage_error("a request that offers its trees has no prediction, found one");
  return check_ids(request.prediction, vocab_size);
}

Status check_speculation(const RequestSpeculation& speculation, const EngineParts& parts) {
  if (speculation.is_offered && (!speculation.enabled || parts.options.offered_nodes == 0)) {
    return usage_error(
        "a request wants to offer its trees, but the engine takes none; open it with offered_nodes");
  }
  if (speculation.states_from) OUTRIDER_RETURN_IF_ERROR(check_states(speculation, parts));
  if (speculation.max_draft_tokens < 0) {
    return usage_error("a request's max draft tokens must be 0 or more, found " +
                       std::to_string(speculation.max_draft_tokens));
  }
  for (const auto& [name, value] : {std::pair{"max draft len", speculation.max_draft_len},
                                    std::pair{"max children", speculation.max_children}}) {
    if (value >= 0) continue;
    return usage_error(std::string("a request's ") + name + " must be 0 or more, found " +
                       std::to_string(value));
  }
  OUTRIDER_RETURN_IF_ERROR(check_methods(speculation.methods, parts));
  const bool relaxes = speculation.acceptance == AcceptanceRule::kRelaxed;
  if (relaxes && acceptance_rule(parts.options) != AcceptanceRule::kRelaxed)
    OUTRIDER_RETURN_IF_ERROR(check_thinking_tokens(parts));
  if (speculation.enabled && speculation.is_auto.value_or(false) && parts.costs.empty() &&
      max_draft_len(parts) > 0) {
    return usage_error(
        "a request asks for policy auto, but no costs were measured when the model was opened; open it with "
        "policy=auto or calibrate, or leave the request's policy out");
  }
  return {};
}

}  // namespace

Status check_thinking_tokens(const EngineParts& parts) {
  const RelaxedOptions& relaxed = parts.options.speculation.relaxed;
  for (const auto& [key, token] : {std::pair{"begin_thinking_phase_token", relaxed.begin_thinking_token},
                                   std::pair{"end_thinking_phase_token", relaxed.end_thinking_token}}) {
    if (token >= 0 && token < parts.vocab_size) continue;
    return usage_error(std::string(key) + ": expected the id of a token that this model has, below " +
                       std::to_string(parts.vocab_size) + ", found " +
                       (token < 0 ? "no <think> in its vocabulary" : std::to_string(token)) + "; add " + key +
                       "=ID to --speculative");
  }
  return {};
}

bool names_method(std::span<const std::string> methods, std::string_view source) {
  return std::ranges::any_of(
      methods, [&](const std::string& method) { return folded_name(method) == folded_name(source); });
}

Status check_tokens(std::span<const TokenId> tokens, int64_t vocab_size) {
  if (tokens.empty()) return input_error("the prompt is empty, expected at least one token");
  return check_ids(tokens, vocab_size);
}

Status check_request(const Request& request, const EngineParts& parts) {
  OUTRIDER_RETURN_IF_ERROR(check_prompt(request.prompt, parts));
  if (request.max_tokens < 0)
    return usage_error("max tokens must be 0 or more, found " + std::to_string(request.max_tokens));
  if (request.pooling != Pooling::kNone && request.max_tokens != 1)
    return usage_error("a request that pools states must have max tokens 1, found " +
                       std::to_string(request.max_tokens));
  OUTRIDER_RETURN_IF_ERROR(check_logprobs("logprobs", request.logprobs));
  OUTRIDER_RETURN_IF_ERROR(check_logprobs("prompt logprobs", request.prompt_logprobs));
  OUTRIDER_RETURN_IF_ERROR(check_rules(request.rules, request.max_tokens, parts.vocab_size));
  OUTRIDER_RETURN_IF_ERROR(check_output(request, parts));
  OUTRIDER_RETURN_IF_ERROR(check_slide(request, parts));
  OUTRIDER_RETURN_IF_ERROR(check_prediction(request, parts.vocab_size));
  OUTRIDER_RETURN_IF_ERROR(check_speculation(request.speculation, parts));
  return check_sampling(request);
}

Status check_room(const Sequence& sequence, const EngineParts& parts, const Scheduler& scheduler) {
  const int64_t pages = scheduler.pages_for(sequence);
  const int64_t all = parts.cache->shape().page_count;
  if (pages > all) {
    return input_error("the request can grow to " + std::to_string(sequence.max_length()) + " tokens, " +
                       std::to_string(pages) + " pages of the KV cache, which has " + std::to_string(all) +
                       "; shorten the prompt, lower max tokens or raise --kv-pages");
  }
  const int max = parts.options.max_waiting;
  if (max > 0 && !sequence.is_background() && scheduler.queued() >= max) {
    return resource_error("the queue is full: " + std::to_string(scheduler.queued()) +
                          " requests wait, expected fewer than " + std::to_string(max) + "; try again later");
  }
  return {};
}

}  // namespace outrider
