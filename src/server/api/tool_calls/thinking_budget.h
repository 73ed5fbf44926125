// SPDX-License-Identifier: Apache-2.0
// A bound on the tokens that a model thinks before it answers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/token_constraint.h"
#include "server/api/tool_calls/thinking.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// Knows of an answer whether its text so far ends within thinking.
class ThinkingTracker {
 public:
  // form: outlives this. call_marks: the marks that begin calls, which end thinking, too.
  ThinkingTracker(const ThinkingForm& form, ThinkingState begins, std::vector<std::string_view> call_marks);

  void push(std::string_view text);
  bool is_thinking() const;
  bool is_over() const { return is_over_; }  // no more thinking can come
  bool is_before_channel() const;            // the name of a channel follows

 private:
  void push(char next);
  void follow_channels();

  const ThinkingForm* form_;
  std::shared_ptr<const std::vector<std::string_view>> call_marks_;
  ThinkingSplitter splitter_;  // of forms without channels
  std::string end_;            // of the text, as long as the longest mark
  bool is_in_channel_;
  bool is_over_;
};

struct ThinkingBudget {
  int64_t tokens = 0;
  std::string message = {};  // is written where the budget ends, before the mark that closes the thinking
};

// As a constraint on every node of a draft: after `budget.tokens` tokens of thinking only the tokens that
// close it may come, and no more thinking. A model with channels chooses another channel then. inner: also
// holds; may be null.
std::shared_ptr<TokenConstraint> limit_thinking(const ThinkingBudget& budget, const ThinkingTracker& start,
                                                const ThinkingForm& form,
                                                std::shared_ptr<const Tokenizer> tokenizer,
                                                int64_t vocab_size, std::shared_ptr<TokenConstraint> inner);

}  // namespace outrider
