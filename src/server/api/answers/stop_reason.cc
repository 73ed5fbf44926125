// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/stop_reason.h"

#include <algorithm>

namespace outrider {

bool is_stop_token(const GenerationSpec& spec, TokenId token) {
  const auto contains = [&](const std::vector<TokenId>& tokens) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
  };
  return contains(spec.request.stop_tokens) ||
         (!spec.request.ignore_eos && contains(spec.model->stop_tokens));
}

std::string matched_stop(const GenerationSpec& spec, const Completion& completion) {
  const bool is_text = completion.finish_reason == FinishReason::kStop && !completion.tokens.empty() &&
                       !is_stop_token(spec, completion.tokens.back());
  if (!is_text || spec.request.stop.empty()) return {};
  StreamDecoder decoder(spec.model->tokenizer, spec.request.skip_special);
  std::string text;
  for (const TokenId token : completion.tokens) text += decoder.push(token);
  if (text.size() < completion.text.size()) return {};
  const std::string_view rest = std::string_view(text).substr(completion.text.size());
  for (const std::string& stop : spec.request.stop) {
    if (rest.starts_with(stop)) return stop;
  }
  return {};
}

}  // namespace outrider
