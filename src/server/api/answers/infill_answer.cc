// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/infill_answer.h"

#include <utility>

#include "server/api/answers/stop_reason.h"

namespace outrider {

InfillAnswer::InfillAnswer(const GenerationSpec& spec, std::vector<Request> requests)
    : spec_(spec), requests_(std::move(requests)) {
  figures_.prompt_tokens = static_cast<int64_t>(requests_.front().prompt.size());
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

void InfillAnswer::append_end(JsonObject& answer) const {
  const std::string word = matched_stop(spec_, *completion_);
  const bool is_length = completion_->finish_reason == FinishReason::kLength;
  answer.text("stop_type", is_length ? "limit" : word.empty() ? "eos" : "word");
  answer.text("stopping_word", word);
  answer.integer("tokens_cached", figures_.cached_tokens);
  answer.flag("truncated", false);
}

std::string InfillAnswer::object(std::string_view text) const {
  std::string out;
  {
    JsonObject answer(out);
    answer.integer("index", 0);
    answer.text("content", text);
    answer.flag("stop", completion_.has_value());
    answer.text("model", spec_.model->name);
    answer.integer("tokens_predicted", figures_.completion_tokens);
    answer.integer("tokens_evaluated", figures_.prompt_tokens);
    if (completion_) append_end(answer);
    if (completion_) append_figures(out, figures_, *completion_);
  }
  return out;
}

}  // namespace outrider
