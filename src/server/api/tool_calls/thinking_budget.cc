// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/thinking_budget.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "sampling/token_mask.h"

namespace outrider {
namespace {

// The marks are harmony's.
constexpr std::string_view kBeforeChannel = "<|channel|>";
constexpr std::string_view kFinalChannel = "<|channel|>final";
constexpr std::string_view kMessageEnds[] = {"<|end|>", "<|start|>", "<|call|>", "<|return|>"};
// Ends the thinking and begins a message on a channel that the model may choose.
constexpr std::string_view kNextMessage = "<|end|><|start|>assistant<|channel|>";
constexpr size_t kLongestMark = 64;

class ThinkingConstraint final : public TokenConstraint {
 public:
  ThinkingConstraint(int64_t budget, ThinkingTracker start, std::vector<TokenId> closing,
                     std::shared_ptr<const Tokenizer> tokenizer, int64_t vocab_size,
                     std::shared_ptr<TokenConstraint> inner)
      : budget_(budget),
        start_(std::move(start)),
        closing_(std::move(closing)),
        tokenizer_(std::move(tokenizer)),
        all_(all_tokens(vocab_size)),
        inner_(std::move(inner)) {}

  State start() override { return state_of({.inner = inner_ ? inner_->start() : 0, .tracker = start_}); }
  State advance(State state, TokenId token) override;
  std::span<const uint64_t> allowed(State state) override;
  bool is_complete(State state) override {
    const Node& node = nodes_[static_cast<size_t>(state)];
    return node.closing < 0 && inner_ && inner_->is_complete(node.inner);
  }

 private:
  struct Node {
    State inner = 0;
    ThinkingTracker tracker;
    int64_t thought = 0;  // tokens
    int closing = -1;     // index in closing_ of the only token that may come; -1: any may
  };

  State state_of(Node node);
  std::string_view text_of(TokenId token) const {
    return tokenizer_->is_control(token) ? tokenizer_->token_piece(token) : tokenizer_->token_bytes(token);
  }
  // The name of the thinking's channel is the only one that begins so.
  bool names_thinking(TokenId token) const { return text_of(token).starts_with('a'); }
  bool may_not_think(const Node& node) const {
    return node.thought >= budget_ && node.tracker.is_before_channel();
  }

  int64_t budget_;
  ThinkingTracker start_;
  std::vector<TokenId> closing_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<uint64_t> all_;  // every id
  std::shared_ptr<TokenConstraint> inner_;
  std::vector<Node> nodes_;  // by state
  std::map<std::pair<State, TokenId>, State> next_;
  std::map<State, State> after_;  // thinking is over: by state of the inner constraint
  std::vector<uint64_t> words_;   // the last result of allowed()
};

TokenConstraint::State ThinkingConstraint::state_of(Node node) {
  if (node.closing < 0 && node.tracker.is_thinking() && node.thought >= budget_) node.closing = 0;
  const auto state = static_cast<State>(nodes_.size());
  if (node.closing < 0 && node.tracker.is_over()) {
    const auto [found, is_new] = after_.try_emplace(node.inner, state);
    if (!is_new) return found->second;
  }
  nodes_.push_back(std::move(node));
  return state;
}

TokenConstraint::State ThinkingConstraint::advance(State state, TokenId token) {
  if (const auto known = next_.find({state, token}); known != next_.end()) return known->second;
  Node node = nodes_[static_cast<size_t>(state)];
  if (node.closing >= 0 && token != closing_[static_cast<size_t>(node.closing)]) return kDead;
  if (may_not_think(node) && names_thinking(token)) return kDead;
  if (inner_ && (node.inner = inner_->advance(node.inner, token)) == kDead) return kDead;
  if (node.closing >= 0 && static_cast<size_t>(++node.closing) == closing_.size()) node.closing = -1;
  if (node.tracker.is_thinking()) ++node.thought;
  node.tracker.push(text_of(token));
  const State next = state_of(std::move(node));
  next_.emplace(std::pair(state, token), next);
  return next;
}

std::span<const uint64_t> ThinkingConstraint::allowed(State state) {
  const Node& node = nodes_[static_cast<size_t>(state)];
  words_ = all_;
  if (node.closing >= 0) {
    const TokenId only = closing_[static_cast<size_t>(node.closing)];
    std::ranges::fill(words_, 0);
    add_token(words_, only);
  } else if (may_not_think(node)) {
    for (TokenId token = 0; token < tokenizer_->vocab_size(); ++token) {
      if (names_thinking(token)) remove_token(words_, token);
    }
  }
  if (inner_) {
    const std::span<const uint64_t> others = inner_->allowed(node.inner);
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= i < others.size() ? others[i] : 0;
  }
  return words_;
}

}  // namespace

ThinkingTracker::ThinkingTracker(const ThinkingForm& form, ThinkingState begins,
                                 std::vector<std::string_view> call_marks)
    : form_(&form),
      call_marks_(std::make_shared<const std::vector<std::string_view>>(std::move(call_marks))),
      splitter_(form, begins),
      is_in_channel_(begins == ThinkingState::kOpen),
      is_over_(begins == ThinkingState::kClosed && !form.is_channel) {}

bool ThinkingTracker::is_thinking() const {
  return !is_over_ && (form_->is_channel ? is_in_channel_ : splitter_.is_thinking());
}

bool ThinkingTracker::is_before_channel() const {
  return form_->is_channel && end_.ends_with(kBeforeChannel);
}

void ThinkingTracker::push(std::string_view text) {
  for (const char next : text) {
    if (!is_over_) push(next);
  }
}

void ThinkingTracker::push(char next) {
  end_ += next;
  if (end_.size() > kLongestMark) end_.erase(0, end_.size() - kLongestMark);
  if (form_->is_channel) return follow_channels();
  std::string thinking, content;
  splitter_.push(next, thinking, content);
  const bool calls =
      std::ranges::any_of(*call_marks_, [&](std::string_view mark) { return end_.ends_with(mark); });
  is_over_ = splitter_.is_over() || (calls && splitter_.is_thinking());
}

void ThinkingTracker::follow_channels() {
  if (end_.ends_with(form_->open)) is_in_channel_ = true;
  if (std::ranges::any_of(kMessageEnds, [&](std::string_view mark) { return end_.ends_with(mark); }))
    is_in_channel_ = false;
  is_over_ = end_.ends_with(kFinalChannel);
}

std::shared_ptr<TokenConstraint> limit_thinking(const ThinkingBudget& budget, const ThinkingTracker& start,
                                                const ThinkingForm& form,
                                                std::shared_ptr<const Tokenizer> tokenizer,
                                                int64_t vocab_size, std::shared_ptr<TokenConstraint> inner) {
  const std::string closing = budget.message + std::string(form.is_channel ? kNextMessage : form.closing);
  std::vector<TokenId> tokens = tokenizer->encode(closing, {.add_special = false});
  return std::make_shared<ThinkingConstraint>(budget.tokens, start, std::move(tokens), std::move(tokenizer),
                                              vocab_size, std::move(inner));
}

}  // namespace outrider
