// SPDX-License-Identifier: Apache-2.0
#include "drafters/predicted/predicted_text.h"

#include <algorithm>
#include <utility>

namespace outrider {
namespace {

// A request that brings a prediction is believed at its beginning like one that followed it for so long.
constexpr size_t kBelief = 4;
constexpr size_t kFollowed = 8;   // tokens that agreed, from which on a place is no coincidence
constexpr size_t kPatience = 8;   // tokens after which the answer is not expected back soon
constexpr size_t kMaxMatch = 16;  // a longer match says no more
constexpr size_t kEnough = 4;     // tokens that have to match
constexpr size_t kNearness = 2;   // tokens that a place near home counts for
constexpr size_t kNear = 16;      // tokens after home, and some for every token of the answer since
constexpr size_t kNearByToken = 4;
constexpr double kLeastPath = 0.2;  // chance of the last token drafted

}  // namespace

PredictedText::PredictedText(std::vector<TokenId> tokens)
    : tokens_(std::move(tokens)), used_(tokens_.size(), 0), run_(kBelief) {}

void PredictedText::follow(std::span<const TokenId> answer) {
  if (!is_lost_ && place_ < tokens_.size() && tokens_[place_] == answer.back()) {
    use(place_, place_ + 1);
    ++place_;
    ++run_;
    return;
  }
  if (!is_lost_) leave();
  ++lost_;
  find(answer);
}

void PredictedText::leave() {
  is_lost_ = true;
  if (run_ < kFollowed) return;
  was_followed_ = true;
  home_ = place_;
  lost_ = 0;
}

std::span<const TokenId> PredictedText::next() const {
  return is_lost_ ? std::span<const TokenId>() : std::span(tokens_).subspan(place_);
}

bool PredictedText::is_looking() const {
  return is_lost_ && was_followed_ && lost_ < kPatience && home_ < tokens_.size();
}

// Tokens before `place` that are the last ones of the answer.
size_t PredictedText::match_before(size_t place, std::span<const TokenId> answer) const {
  const size_t max = std::min({place, answer.size(), kMaxMatch});
  size_t match = 0;
  while (match < max && tokens_[place - 1 - match] == answer[answer.size() - 1 - match]) ++match;
  return match;
}

void PredictedText::find(std::span<const TokenId> answer) {
  const size_t near = home_ + kNear + kNearByToken * lost_;
  size_t best = kEnough - 1, match_of_best = 0, place_of_best = 0;
  const auto visit = [&](size_t place) {
    const size_t match = match_before(place, answer);
    const bool is_near = place > home_ && place <= near;
    const size_t score = match == 0 ? 0 : match + (is_near ? kNearness : 0);
    if (score <= best) return;
    best = score;
    match_of_best = match;
    place_of_best = place;
  };
  for (size_t place = home_ + 1; place <= tokens_.size(); ++place) visit(place);
  for (size_t place = 1; place <= home_; ++place) visit(place);
  if (match_of_best == 0) return;
  is_lost_ = false;
  place_ = place_of_best;
  run_ = match_of_best;
  use(place_ - run_, place_);
}

void PredictedText::use(size_t first, size_t end) {
  for (size_t i = first; i < end; ++i) used_count_ += std::exchange(used_[i], uint8_t{1}) == 0 ? 1 : 0;
}

// By Laplace's rule of succession a token that follows a run of n tokens agrees with probability
// n / (n + 1), if one of n + 1 did not.
void PredictedText::grow(int max_nodes, TokenTree& tree) const {
  double run = static_cast<double>(run_), path = 1.0;
  int node = 0;
  for (const TokenId token : next()) {
    const double probability = run / (run + 1.0);
    path *= probability;
    if (tree.drafted() >= max_nodes || path < kLeastPath) return;
    node = tree.add(node, token, probability);
    run += 1.0;
  }
}

}  // namespace outrider
