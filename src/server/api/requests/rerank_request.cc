// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/rerank_request.h"

#include <algorithm>
#include <utility>

#include "server/api/requests/chat_prompt.h"
#include "server/api/requests/common_fields.h"

namespace outrider {
namespace {

constexpr std::string_view kTask =
    "Judge whether the Document meets the requirements based on the Query and the Instruct provided. Note "
    "that "
    "the answer can only be \"yes\" or \"no\".";
constexpr std::string_view kInstruct =
    "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n<Query>: ";

ApiStatus read_query(const RequestField& field, RerankSpec& spec) {
  OUTRIDER_TRY(spec.query, field.string());
  return api_ok();
}

// Texts, or objects with a "text".
ApiStatus read_documents(const RequestField& field, RerankSpec& spec) {
  OUTRIDER_TRY(const auto items, field.items(static_cast<size_t>(spec.limits->sequences) / 2));
  for (const RequestField& item : items) {
    OUTRIDER_TRY(const RequestField text, item.is_object() ? item.at("text") : ApiResult<RequestField>(item));
    OUTRIDER_TRY(std::string document, text.string());
    spec.documents.push_back(std::move(document));
  }
  return items.empty() ? ApiStatus(field.error("expected at least one document, found none")) : api_ok();
}

ApiStatus read_max_results(const RequestField& field, RerankSpec& spec) {
  OUTRIDER_TRY(const int64_t count, field.integer(1, INT32_MAX));
  spec.max_results = static_cast<size_t>(count);
  return api_ok();
}

ApiStatus read_listing(const RequestField& field, RerankSpec& spec) {
  OUTRIDER_TRY(spec.lists_documents, field.boolean());
  return api_ok();
}

ApiStatus read_model_or_user(const RequestField& field, RerankSpec& spec) {
  return read_common_field(field, spec);
}

constexpr FieldRule<RerankSpec> kRerankRules[] = {
    {"query", read_query},         {"documents", read_documents},
    {"top_n", read_max_results},   {"return_documents", read_listing},
    {"model", read_model_or_user}, {"user", read_model_or_user}};

ApiResult<TokenId> single_token(std::string_view word, const Tokenizer& tokenizer) {
  const std::vector<TokenId> tokens = tokenizer.encode(word, {.add_special = false, .parse_special = false});
  if (tokens.size() == 1) return tokens.front();
  return not_served_error("the model's tokenizer has no single token for \"" + std::string(word) +
                          "\", by which texts are ranked");
}

ApiResult<std::vector<TokenId>> prompt_about(const std::string& document, const RerankSpec& spec) {
  ChatInput input{.messages_path = "documents", .values = {{"enable_thinking", "false"}}};
  input.messages.push_back({.role = "system", .content = std::string(kTask)});
  std::string question(kInstruct);
  question.append(spec.query).append("\n<Document>: ").append(document);
  input.messages.push_back({.role = "user", .content = std::move(question)});
  OUTRIDER_TRY(ChatPrompt prompt, render_chat(std::move(input), *spec.model));
  return std::move(prompt.tokens);
}

}  // namespace

ApiResult<RerankSpec> read_rerank_request(const RequestField& root, const CallContext& context) {
  if (context.model->pooling) {
    return not_served_error(
        "ranks need a model trained for them, such as Qwen3-Reranker; start the server with "
        "--pooling rank if this is one");
  }
  RerankSpec spec;
  spec.model = context.model;
  spec.limits = &context.limits;
  spec.max_tokens = 1;
  OUTRIDER_RETURN_IF_ERROR(read_members<RerankSpec>(root, kRerankRules, spec));
  OUTRIDER_RETURN_IF_ERROR(root.at("query"));
  OUTRIDER_RETURN_IF_ERROR(root.at("documents"));
  OUTRIDER_TRY(spec.yes, single_token("yes", *context.model->tokenizer));
  OUTRIDER_TRY(spec.no, single_token("no", *context.model->tokenizer));
  for (const std::string& document : spec.documents) {
    OUTRIDER_TRY(std::vector<TokenId> prompt, prompt_about(document, spec));
    spec.prompts.push_back(std::move(prompt));
  }
  if (spec.max_results == 0) spec.max_results = spec.documents.size();
  spec.request.sampling.temperature = 0;
  spec.request.logprobs = 0;
  return spec;
}

}  // namespace outrider
