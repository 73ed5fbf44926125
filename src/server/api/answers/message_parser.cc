// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/message_parser.h"

#include <algorithm>
#include <memory>

namespace outrider {

std::string ControlFilter::push(std::string_view text, std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    decoded_ += decoder_.push(token).size();
    const bool is_out =
        tokenizer_->is_control(token) && std::find(kept_.begin(), kept_.end(), token) == kept_.end();
    if (is_out) left_out_.emplace_back(decoded_ - tokenizer_->token_piece(token).size(), decoded_);
  }
  std::string shown;
  const size_t end = given_ + text.size();
  size_t done = 0;  // ranges that the text has passed
  for (const auto& [from, to] : left_out_) {
    if (from >= end) break;
    if (from > given_) shown += text.substr(text.size() - (end - given_), from - given_);
    given_ = std::min(to, end);
    if (to > end) break;
    ++done;
  }
  left_out_.erase(left_out_.begin(), left_out_.begin() + static_cast<std::ptrdiff_t>(done));
  shown += text.substr(text.size() - (end - given_));
  given_ = end;
  return shown;
}

MessageParser::MessageParser(const ChatSpec& spec)
    : parser_(spec.prompt.output, std::make_shared<const std::vector<Tool>>(spec.prompt.tools.tools)) {
  if (spec.hides_control) filter_.emplace(spec.model->tokenizer, spec.shown_control);
}

MessageDelta MessageParser::push(std::string_view text, std::span<const TokenId> tokens, bool is_last) {
  return filter_ ? parser_.push(filter_->push(text, tokens), is_last) : parser_.push(text, is_last);
}

}  // namespace outrider
