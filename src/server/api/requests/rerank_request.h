// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "server/api/request_field.h"
#include "server/api/requests/generation_spec.h"

namespace outrider {

// Documents to be ranked by how well they answer a query. The model is asked about each: the rank is the
// probability of "yes" where it is sure to say "yes" or "no".
struct RerankSpec : GenerationSpec {
  std::string query;
  std::vector<std::string> documents;
  std::vector<std::vector<TokenId>> prompts;  // by document
  TokenId yes = 0, no = 0;
  size_t max_results = 0;
  bool lists_documents = false;
};

// Reads the body of /v1/rerank and renders the prompts with the model's chat template, in the words that
// Qwen3-Reranker was trained with. Errors: the model is not served to rank texts, has no template, or no
// single tokens for "yes" and "no".
ApiResult<RerankSpec> read_rerank_request(const RequestField& root, const CallContext& context);

}  // namespace outrider
