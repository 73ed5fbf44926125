// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/completion_json.h"

#include <nlohmann/json.hpp>

#include "config/message_text.h"

namespace outrider {

nlohmann::ordered_json completion_json(const EngineInfo& info, const std::vector<TokenId>& prompt,
                                       const TimedCompletion& timed) {
  const Completion& completion = timed.completion;
  const SpeculationStats& stats = completion.speculation;
  const size_t output = completion.tokens.size();
  nlohmann::ordered_json json;
  json["model"] = info.model_path;
  json["prompt_token_ids"] = prompt;
  json["token_ids"] = completion.tokens;
  json["text"] = completion.text;
  json["finish_reason"] = finish_reason_name(completion.finish_reason);
  for (size_t i = 0; i < completion.logprobs.size(); ++i) {
    const TokenLogprobs& logprobs = completion.logprobs[i];
    auto top = nlohmann::ordered_json::array();
    for (const auto& [token, logprob] : logprobs.top)
      top.push_back({{"token_id", token}, {"logprob", logprob}});
    json["logprobs"].push_back(
        {{"token_id", completion.tokens[i]}, {"logprob", logprobs.logprob}, {"top_logprobs", top}});
  }
  json["usage"] = {{"prompt_tokens", prompt.size()},
                   {"completion_tokens", output},
                   {"total_tokens", prompt.size() + output}};
  json["timings"] = {{"load_ms", info.load_ms},
                     {"prompt_ms", completion.prompt_ms},
                     {"decode_ms", completion.decode_ms},
                     {"tokens_per_second", timed.tokens_per_second()}};
  json["speculation"] = {{"method", snake_name(stats.method)},
                         {"lossless", stats.lossless},
                         {"steps", stats.steps},
                         {"drafted", stats.drafted},
                         {"accepted", stats.accepted},
                         {"acceptance_length", stats.acceptance_length()},
                         {"accepted_per_position", stats.accepted_per_position},
                         {"drafted_per_position", stats.drafted_per_position},
                         {"draft_failures", stats.draft_failures},
                         {"draft_ms", stats.draft_ms},
                         {"verify_ms", stats.verify_ms}};
  return json;
}

void add_prediction(const Completion& completion, nlohmann::ordered_json& json) {
  json["usage"]["completion_tokens_details"] = {
      {"accepted_prediction_tokens", completion.accepted_prediction_tokens},
      {"rejected_prediction_tokens", completion.rejected_prediction_tokens}};
}

std::string json_line(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace outrider
