// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outrider/token.h"
#include "outrider/token_tree.h"

namespace outrider {

// The text that a request expects as its answer (OpenAI's predicted outputs), and the place in it that the
// answer has reached. While the answer follows the prediction, the next predicted tokens are drafted. Where
// they part, the place is found again by the answer's last tokens: the longest match, and of equally long
// ones the first after the place where they parted. Depends on the text alone.
class PredictedText {
 public:
  explicit PredictedText(std::vector<TokenId> tokens);

  // Goes on after the last token of the answer so far, which is one longer than in the call before.
  void follow(std::span<const TokenId> answer);

  // The tokens that should come next; empty if the answer has left the prediction or has reached its end.
  std::span<const TokenId> next() const;
  // The answer left the prediction a few tokens ago, after it had followed it for a while. It mostly comes
  // back soon, so that no other draft is worth the text that a drafter would have to read for it.
  bool is_looking() const;

  // Adds the next tokens to the tree of the pending token, at most `max_nodes`, and fewer where the answer
  // has not followed the prediction for long.
  void grow(int max_nodes, TokenTree& tree) const;

  // Tokens of the prediction that the answer has.
  int64_t used() const { return used_count_; }

 private:
  void leave();
  void find(std::span<const TokenId> answer);
  size_t match_before(size_t place, std::span<const TokenId> answer) const;
  void use(size_t first, size_t end);

  std::vector<TokenId> tokens_;
  std::vector<uint8_t> used_;  // by token
  int64_t used_count_ = 0;
  size_t place_ = 0;  // of the token that should come next
  size_t run_;        // tokens that agreed since the place was found
  bool is_lost_ = false;
  bool was_followed_ = false;  // up to home_
  size_t home_ = 0;            // where the answer left the prediction that it had followed for a while
  size_t lost_ = 0;            // tokens of the answer since then
};

}  // namespace outrider
