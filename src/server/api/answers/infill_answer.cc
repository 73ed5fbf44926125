// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/infill_answer.h"

#include <utility>

#include "server/api/answers/stop_reason.h"

namespace outrider {

InfillAnswer::InfillAnswer(const GenerationSpec& spec, std::vector<Request> requests)
    : GenerationCall(std::move(requests), spec.streams, spec.ignored), spec_(spec) {
  figures_.prompt_tokens = static_cast<int64_t>(this->requests().front().prompt.size());
}

void InfillAnswer::add(int, ChoiceDelta delta, std::string& events) {
  figures_.add(delta);
  if (delta.completion) completion_ = std::move(delta.completion);
  if (!spec_.streams) {
    text_ += delta.text;
  } else if (completion_ || !delta.text.empty()) {
    events.append("data: ").append(object(delta.text)).append("\n\n");
  }
}

void InfillAnswer::write_end(JsonWriter& json) const {
  const std::string word = matched_stop(spec_, *completion_);
  const bool is_length = completion_->finish_reason == FinishReason::kLength;
  json.member("stop_type", is_length ? "limit" : word.empty() ? "eos" : "word");
  json.member("stopping_word", word);
  json.member("tokens_cached", figures_.cached_tokens);
  json.member("truncated", false);
}

std::string InfillAnswer::object(std::string_view text) const {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.member("index", 0);
  json.member("content", text);
  json.member("stop", completion_.has_value());
  json.member("model", spec_.model->name);
  json.member("tokens_predicted", figures_.completion_tokens);
  json.member("tokens_evaluated", figures_.prompt_tokens);
  if (completion_) {
    write_end(json);
    write_figures(json, figures_, *completion_);
  }
  json.end_object();
  return out;
}

}  // namespace outrider
