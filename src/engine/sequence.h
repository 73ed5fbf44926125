// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/guarded_constraint.h"
#include "engine/stop_matcher.h"
#include "kv/kv_cache.h"
#include "outrider/engine.h"
#include "sampling/randomness.h"
#include "sampling/token_history.h"
#include "speculation/acceptance/thinking_phase.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// A request on its way: its tokens, its place in the KV cache, and everything that decides when it ends.
// Between steps, once the prompt is computed: kv.length() == tokens.size() - 1; the last token is pending.
class Sequence {
 public:
  struct Limits {
    int64_t context = 0;      // longest sequence in tokens
    int max_draft_nodes = 0;  // of one tree
    int64_t vocab_size = 0;
    std::span<const TokenId> model_stop_tokens;  // end-of-text ids of the model
    ThinkingPhase thinking = {};                 // with its tokens
  };

  Sequence(RequestId id, Request request, ProgressSink sink, std::shared_ptr<const Tokenizer> tokenizer,
           const Limits& limits);

  RequestId id() const { return id_; }
  const Request& request() const { return request_; }
  std::span<const TokenId> tokens() const { return tokens_; }  // prompt and output
  int64_t prompt_length() const { return static_cast<int64_t>(request_.prompt.size()); }
  int64_t output_length() const { return static_cast<int64_t>(completion_.tokens.size()); }
  // Tokens that may still come before max_tokens or the context ends the sequence.
  int64_t remaining() const;
  // Tokens it will have at most, prompt included.
  int64_t max_length() const {
    return std::min(prompt_length() + std::min(request_.max_tokens, context_), context_);
  }
  // Prompt tokens, its last ones, whose log-probabilities are wanted and not yet known.
  int64_t pending_logprobs() const;
  // Ends as soon as its prompt is computed, which is done for its log-probabilities alone.
  bool ends_with_prompt() const { return prompt_end_.has_value(); }
  const ThinkingPhase& thinking() const { return thinking_; }
  bool finished() const { return finish_reason_.has_value(); }
  Completion& completion() { return completion_; }

  // Null: the output may be anything.
  TokenConstraint* constraint() { return constraint_ ? &*constraint_ : nullptr; }
  TokenConstraint::State constraint_state() const { return constraint_state_; }  // behind the last token

  // Takes its pages: `cached` holds what the cache had of its tokens.
  void admit(KvSequence cached);

  // Commits tokens one at a time, in the way plain decoding does, until one of them ends the sequence.
  // Returns how many were committed, and streams the text they completed.
  int commit(std::span<const TokenId> tokens, std::span<const TokenOrigin> origins);
  // Takes those of the prompt's next token.
  void collect(TokenLogprobs logprobs);
  // Ends the sequence, if nothing has yet, and completes its text.
  void finish(FinishReason reason);

  // Sends what is new to the sink; with the completion when finished.
  void publish();

  KvSequence kv;
  bool started = false;  // has pages and a drafter that knows it
  TokenHistory history;
  CounterRandomness randomness;

 private:
  void reserve(int max_draft_nodes);
  std::shared_ptr<TokenConstraint> whole_constraint(int64_t vocab_size) const;
  std::optional<FinishReason> append(TokenId token, TokenOrigin origin);

  RequestId id_;
  Request request_;
  ProgressSink sink_;
  int64_t context_;
  std::unordered_set<TokenId> stop_tokens_;
  std::vector<TokenId> tokens_;
  ThinkingPhase thinking_;
  std::optional<GuardedConstraint> constraint_;
  TokenConstraint::State constraint_state_ = TokenConstraint::kDead;
  StreamDecoder decoder_;
  StopMatcher stops_;
  std::optional<FinishReason> finish_reason_;
  std::optional<FinishReason> prompt_end_;  // why nothing may come behind the prompt
  Completion completion_;
  double submitted_ms_;
  bool is_admitted_ = false;   // has had pages
  size_t published_text_ = 0;  // bytes of completion_.text the sink has seen
  size_t published_tokens_ = 0;
  bool is_published_ = false;
};

}  // namespace outrider
