// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/parse_call.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/api/answers/chat_answer.h"
#include "server/api/answers/completion_answer.h"
#include "server/api/answers/infill_answer.h"
#include "server/api/answers/messages_answer.h"
#include "server/api/answers/reading_answers.h"
#include "server/api/answers/responses_answer.h"
#include "server/api/requests/constraints.h"
#include "server/api/requests/infill_request.h"
#include "server/api/requests/messages_request.h"
#include "server/api/requests/responses_request.h"

namespace outrider {
namespace {

struct PromptTokens {
  std::span<const TokenId> tokens;
  std::string_view name;   // of the output, for messages: "completion"
  std::string_view field;  // of the request that holds the prompt
};

// The output of a request that names no number of tokens, within `room`.
int64_t default_budget(const GenerationSpec& spec, int64_t room) {
  const ApiLimits& limits = *spec.limits;
  if (limits.output_tokens > 0) room = std::min(room, limits.output_tokens);
  if (limits.default_tokens <= 0) return room;
  return std::min(room, std::max(limits.default_tokens, spec.request.rules.min_tokens));
}

// The maximum number of output tokens. Errors: more than the server allows; prompt and output do not fit into
// the context.
ApiResult<int64_t> token_budget(const GenerationSpec& spec, const PromptTokens& prompt) {
  const int64_t context = spec.model->context;
  const auto length = static_cast<int64_t>(prompt.tokens.size());
  const int64_t wanted = spec.max_tokens.value_or(1), limit = spec.limits->output_tokens;
  if (limit > 0 && wanted > limit) {
    return field_error("max_tokens", "expected at most " + std::to_string(limit) +
                                         " tokens of output, the limit of this server, found " +
                                         std::to_string(wanted));
  }
  const bool fits = length + wanted <= context || spec.request.slide >= 0;
  if (length < context && fits)
    return spec.max_tokens ? *spec.max_tokens : default_budget(spec, context - length);
  ApiError error;
  error.message = "expected at most " + std::to_string(context) +
                  " tokens, the context of this model, found " + std::to_string(length + wanted) + ": " +
                  std::to_string(length) + " of " + std::string(prompt.field) + " and " +
                  std::to_string(wanted) + " of the " + std::string(prompt.name) + "; shorten one of them";
  error.param = prompt.field;
  error.code = "context_length_exceeded";
  return error;
}

// Adds n requests for one prompt.
ApiStatus add_requests(const GenerationSpec& spec, const CallContext& context, const PromptTokens& prompt,
                       std::vector<Request>& requests) {
  OUTRIDER_TRY(const int64_t budget, token_budget(spec, prompt));
  if (spec.request.rules.min_tokens > budget) {
    return field_error("min_tokens", "expected at most the " + std::to_string(budget) +
                                         " tokens that this output may have, found " +
                                         std::to_string(spec.request.rules.min_tokens));
  }
  for (int i = 0; i < spec.n; ++i) {
    Request request = spec.request;
    request.prompt.assign(prompt.tokens.begin(), prompt.tokens.end());
    request.max_tokens = budget;
    request.sampling.seed = spec.seed.value_or(context.random_seed);
    request.sample_index = requests.size();
    request.cache_scope = context.cache_scope;
    requests.push_back(std::move(request));
  }
  return api_ok();
}

// Limits the listed log-probabilities, because they are held in memory and sent in one piece.
ApiStatus check_prompt_logprobs(const std::vector<Request>& requests, const ApiLimits& limits) {
  int64_t listed = 0;
  for (const Request& request : requests) {
    listed += static_cast<int64_t>(request.prompt.size()) * (1 + request.prompt_logprobs);
  }
  if (listed <= limits.prompt_logprobs) return api_ok();
  return field_error("prompt_logprobs", "expected at most " + std::to_string(limits.prompt_logprobs) +
                                            " log-probabilities of prompts, found " + std::to_string(listed) +
                                            "; ask for fewer beside each token, fewer choices or less text");
}

void set_constraints(std::vector<Request>& requests,
                     std::vector<std::shared_ptr<TokenConstraint>> constraints) {
  for (size_t i = 0; i < constraints.size(); ++i) requests[i].constraint = std::move(constraints[i]);
}

// Error: a field of the chat that an answer in another form has no place for.
ApiStatus check_plain_answer(const GenerationSpec& spec) {
  if (spec.prompt_logprobs >= 0) return field_error("prompt_logprobs", "expected no such field here");
  if (spec.return_token_ids) return field_error("return_token_ids", "expected false here, found true");
  if (spec.trace != SpeculationTrace::kNone) return field_error("speculative.trace", "expected none here");
  return api_ok();
}

}  // namespace

ApiResult<std::vector<Request>> chat_requests(ChatSpec& spec, const CallContext& context,
                                              std::string_view field) {
  prepare_output(spec);
  std::vector<Request> requests;
  OUTRIDER_RETURN_IF_ERROR(add_requests(
      spec, context, {.tokens = spec.prompt.tokens, .name = "completion", .field = field}, requests));
  // All choices have one prompt, so only the first computes its log-probabilities.
  for (size_t i = 0; i < requests.size(); ++i)
    requests[i].prompt_logprobs = i == 0 ? spec.prompt_logprobs : -1;
  OUTRIDER_RETURN_IF_ERROR(check_prompt_logprobs(requests, context.limits));
  OUTRIDER_TRY(auto constraints, chat_constraints(spec));
  set_constraints(requests, std::move(constraints));
  return requests;
}

ParsedCall parse_chat(const RequestField& root, const CallContext& context) {
  OUTRIDER_TRY(ChatSpec spec, read_chat_request(root, context));
  OUTRIDER_TRY(std::vector<Request> requests, chat_requests(spec, context, "messages"));
  return std::unique_ptr<GenerationCall>(
      std::make_unique<ChatAnswer>(std::move(spec), context, std::move(requests)));
}

ParsedCall parse_responses(const RequestField& root, const CallContext& context) {
  OUTRIDER_TRY(ResponsesSpec spec, read_responses_request(root, context));
  OUTRIDER_RETURN_IF_ERROR(check_plain_answer(spec));
  OUTRIDER_TRY(std::vector<Request> requests, chat_requests(spec, context, "input"));
  return std::unique_ptr<GenerationCall>(
      std::make_unique<ResponsesAnswer>(std::move(spec), context, std::move(requests)));
}

ParsedCall parse_messages(const RequestField& root, const CallContext& context) {
  OUTRIDER_TRY(ChatSpec spec, read_messages_request(root, context));
  OUTRIDER_RETURN_IF_ERROR(check_plain_answer(spec));
  OUTRIDER_TRY(std::vector<Request> requests, chat_requests(spec, context, "messages"));
  return std::unique_ptr<GenerationCall>(
      std::make_unique<MessagesAnswer>(std::move(spec), context, std::move(requests)));
}

ParsedCall parse_completion(const RequestField& root, const CallContext& context) {
  OUTRIDER_TRY(const CompletionSpec spec, read_completion_request(root, context));
  std::vector<Request> requests;
  for (const CompletionPrompt& prompt : spec.prompts) {
    OUTRIDER_RETURN_IF_ERROR(add_requests(
        spec, context, {.tokens = prompt.tokens, .name = "completion", .field = "prompt"}, requests));
  }
  OUTRIDER_RETURN_IF_ERROR(check_prompt_logprobs(requests, context.limits));
  OUTRIDER_TRY(auto constraints, form_constraints(spec, requests.size()));
  set_constraints(requests, std::move(constraints));
  return std::unique_ptr<GenerationCall>(
      std::make_unique<CompletionAnswer>(spec, context, std::move(requests)));
}

namespace {

// The call of one prompt in a field, answered in llama-server's own form.
ParsedCall llama_call(const CompletionSpec& spec, const CallContext& context, std::string_view field) {
  OUTRIDER_RETURN_IF_ERROR(check_plain_answer(spec));
  std::vector<Request> requests;
  OUTRIDER_RETURN_IF_ERROR(add_requests(
      spec, context, {.tokens = spec.prompts[0].tokens, .name = "completion", .field = field}, requests));
  OUTRIDER_TRY(auto constraints, form_constraints(spec, requests.size()));
  set_constraints(requests, std::move(constraints));
  return std::unique_ptr<GenerationCall>(std::make_unique<InfillAnswer>(spec, std::move(requests)));
}

}  // namespace

ParsedCall parse_infill(const RequestField& root, const CallContext& context) {
  OUTRIDER_TRY(const CompletionSpec spec, read_infill_request(root, context));
  return llama_call(spec, context, "input_prefix");
}

ParsedCall parse_llama_completion(const RequestField& root, const CallContext& context) {
  OUTRIDER_TRY(const CompletionSpec spec, read_llama_completion(root, context));
  return llama_call(spec, context, "prompt");
}

ParsedCall parse_embeddings(const RequestField& root, const CallContext& context) {
  OUTRIDER_TRY(EmbeddingsSpec spec, read_embeddings_request(root, context));
  return embeddings_call(std::move(spec), context, "input");
}

ParsedCall embeddings_call(EmbeddingsSpec spec, const CallContext& context, std::string_view field) {
  std::vector<Request> requests;
  for (const CompletionPrompt& input : spec.prompts) {
    OUTRIDER_RETURN_IF_ERROR(
        add_requests(spec, context, {.tokens = input.tokens, .name = "embedding", .field = field}, requests));
  }
  return std::unique_ptr<GenerationCall>(
      std::make_unique<EmbeddingsAnswer>(std::move(spec), std::move(requests)));
}

ParsedCall parse_rerank(const RequestField& root, const CallContext& context) {
  OUTRIDER_TRY(RerankSpec spec, read_rerank_request(root, context));
  std::vector<Request> requests;
  for (const std::vector<TokenId>& prompt : spec.prompts) {
    for (const TokenId answer : {spec.yes, spec.no}) {
      spec.request.rules.allowed = {answer};
      OUTRIDER_RETURN_IF_ERROR(
          add_requests(spec, context, {.tokens = prompt, .name = "answer", .field = "documents"}, requests));
    }
  }
  return std::unique_ptr<GenerationCall>(
      std::make_unique<RerankAnswer>(std::move(spec), std::move(requests)));
}

ParsedCall parse_call(ParseFunction parse, std::string_view body, const CallContext& context) {
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(body, context.limits.json_depth));
  return parse(parsed.root(), context);
}

}  // namespace outrider
