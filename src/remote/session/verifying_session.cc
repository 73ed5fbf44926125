// SPDX-License-Identifier: Apache-2.0
#include "remote/session/verifying_session.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"
#include "remote/session/wire_tree.h"

namespace outrider {

VerifyingSession::VerifyingSession(const OpenMessage& opened, OpenedMessage limits)
    : limits_(std::move(limits)),
      states_(opened.states, limits_.state_size, opened.state_tokens),
      last_of_prompt_(opened.prompt.back()),
      prompt_length_(opened.prompt.size()),
      opened_length_(opened.output.size()),
      output_(opened.output),
      sent_(opened.output.size()) {}

Status VerifyingSession::on_tree(TreeMessage message, double now_ms) {
  if (message.number < next_tree_) return {};
  if (message.base > output_.size()) {
    return input_error("expected a tree after output token " + std::to_string(output_.size()) +
                       " or earlier, found one after token " + std::to_string(message.base));
  }
  if (waiting_.size() >= kMaxWaiting) {
    return input_error("expected at most " + std::to_string(kMaxWaiting) +
                       " trees beside the one that is verified, found more");
  }
  // The client has the token before `base`, and with it the states that were sent before that: of all tokens
  // before the last one.
  if (message.base > opened_length_) states_.confirm(static_cast<int64_t>(prompt_length_ + message.base) - 1);
  next_tree_ = uint64_t{message.number} + 1;
  waiting_.push_back({.message = std::move(message), .at_ms = now_ms});
  return {};
}

std::optional<TokenTree> VerifyingSession::next_tree() {
  if (is_verifying_ || is_finished() || sent_ != output_.size()) return std::nullopt;
  while (!waiting_.empty()) {
    const Arrived arrived = std::move(waiting_.front());
    waiting_.pop_front();
    const WireTree& tree = arrived.message.tree;
    const int node = node_at(tree, std::span(output_).subspan(arrived.message.base));
    if (node < 0) continue;
    is_verifying_ = true;
    verified_since_ms_ = arrived.at_ms;
    return tree_below(tree, node, pending());
  }
  return std::nullopt;
}

void VerifyingSession::on_tokens(std::span<const TokenId> tokens, std::optional<FinishReason> finish,
                                 double now_ms) {
  if (is_verifying_) verified_ms_ = now_ms - verified_since_ms_;
  output_.insert(output_.end(), tokens.begin(), tokens.end());
  is_verifying_ = false;
  finish_ = finish;
}

Status VerifyingSession::on_resume(uint32_t output_length, uint32_t state_tokens) {
  if (output_length > output_.size()) {
    return input_error("expected a client with at most " + std::to_string(output_.size()) +
                       " output tokens, found one with " + std::to_string(output_length));
  }
  OUTRIDER_RETURN_IF_ERROR(states_.resume(state_tokens));
  sent_ = output_length;
  waiting_.clear();
  is_greeted_ = is_end_sent_ = false;
  return {};
}

std::optional<ServerMessage> VerifyingSession::next_message() {
  if (!is_greeted_ && is_verifying_) return std::nullopt;
  if (std::optional<StatesMessage> states = states_.next()) return *std::move(states);
  if (!is_greeted_) {
    is_greeted_ = true;
    OpenedMessage opened = limits_;
    opened.missed = unsent();
    sent_ = output_.size();
    return opened;
  }
  const bool has_end = is_finished() && !is_end_sent_;
  if (sent_ == output_.size() && !has_end) return std::nullopt;
  VerdictMessage verdict{.first = static_cast<uint32_t>(sent_), .tokens = unsent(), .is_last = is_finished()};
  if (is_finished()) verdict.finish_reason = *finish_;
  constexpr double kMaxUs = std::numeric_limits<uint32_t>::max();
  verdict.server_us = static_cast<uint32_t>(std::clamp(verified_ms_ * 1e3, 0.0, kMaxUs));
  sent_ = output_.size();
  is_end_sent_ = is_finished();
  return verdict;
}

}  // namespace outrider
