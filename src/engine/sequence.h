// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "drafters/predicted/predicted_text.h"
#include "engine/adapter_table.h"
#include "engine/guarded_constraint.h"
#include "engine/stop_matcher.h"
#include "kv/kv_cache.h"
#include "outrider/engine.h"
#include "sampling/randomness.h"
#include "sampling/token_history.h"
#include "speculation/acceptance/thinking_phase.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// A request that is being decoded: its tokens, its KV entries, and everything that decides when it ends.
// Invariant between steps, once the prompt is computed: kv.length() == tokens.size() - 1; the last token is
// pending.
class Sequence {
 public:
  struct Limits {
    int64_t context = 0;  // longest sequence in tokens
    int max_nodes = 0;    // nodes of one tree, below its root
    int64_t vocab_size = 0;
    std::span<const TokenId> model_stop_tokens;  // end-of-text ids of the model
    ThinkingPhase thinking = {};                 // holds its begin and end tokens
  };

  Sequence(RequestId id, Request request, ProgressSink sink, std::shared_ptr<const Tokenizer> tokenizer,
           const Limits& limits, AdapterUse adapters = {});

  RequestId id() const { return id_; }
  const Request& request() const { return request_; }
  // The scope of its cached entries, by its request and its adapters.
  uint64_t scope() const { return scope_; }
  std::span<const TokenId> tokens() const { return tokens_; }  // prompt and output
  int64_t prompt_length() const { return static_cast<int64_t>(request_.prompt.size()); }
  // How many of the first tokens count as the prompt, at least one; some are missing after a slide.
  int64_t prompt_part() const { return prompt_part_; }
  int64_t output_length() const { return static_cast<int64_t>(completion_.tokens.size()); }
  // Tokens that may still come before max_tokens or the context ends the sequence, or lets it slide.
  int64_t remaining() const;
  // Largest number of tokens it can have, prompt included.
  int64_t max_length() const {
    return std::min(prompt_length() + std::min(request_.max_tokens, context_), context_);
  }
  // Whether its text has filled the context and goes on only after slide().
  bool is_full() const { return request_.slide >= 0 && !finished() && std::ssize(tokens_) >= context_; }
  // The key of its randomness beside the seed: each slide begins another one, because positions come again.
  uint64_t sample_key() const { return request_.sample_index + (slides_ << 32); }
  // How many of the last prompt tokens have log-probabilities that are wanted and not yet known.
  int64_t pending_logprobs() const;
  // Every row of the prompt must be computed, so none may come from the cache.
  bool pools_all_rows() const { return request_.pooling == Pooling::kMean; }
  // The prompt is computed only for its log-probabilities, and then the sequence ends.
  bool ends_with_prompt() const { return prompt_end_.has_value(); }
  const ThinkingPhase& thinking() const { return thinking_; }
  bool finished() const { return finish_reason_.has_value(); }
  bool is_background() const { return request_.is_background; }
  bool is_offered() const { return request_.speculation.is_offered; }
  bool awaits_tree() const { return is_offered() && !offered; }
  // Null if the request expects no text.
  const PredictedText* prediction() const { return prediction_ ? &*prediction_ : nullptr; }
  // Whether its next draft comes from the prediction.
  bool is_predicted() const { return prediction_ && !prediction_->next().empty(); }
  bool wants_states() const { return request_.speculation.states_from.has_value(); }
  Completion& completion() { return completion_; }

  bool has_constraint() const { return constraint_.has_value(); }
  // Tokens that end the output.
  const std::unordered_set<TokenId>& stop_tokens() const { return stop_tokens_; }
  // Null if the output may be anything.
  TokenConstraint* constraint() { return constraint_ ? &*constraint_ : nullptr; }
  TokenConstraint::State constraint_state() const { return constraint_state_; }  // after the last token

  // Starts or restarts with the entries that the cache had of its tokens.
  void admit(KvSequence cached);

  // Commits tokens one at a time, as plain decoding does, until one of them ends the sequence or fills the
  // context. Returns how many were committed. origins: by token.
  int commit(std::span<const TokenId> tokens, std::span<const TokenOrigin> origins);
  // Adds the log-probabilities of the next prompt token.
  void add_prompt_logprobs(TokenLogprobs logprobs);
  // Adds the state of the next row that the request pools; the last one completes the embedding.
  void pool(std::span<const float> state);
  // Drops the older half of the tokens after Request::slide, at least one. Precondition: it has no entries.
  void slide();
  // Ends the sequence and completes its text; has no effect on a finished one.
  void finish(FinishReason reason);

  // Sends new output to the sink, with the completion when finished.
  void publish();

  KvSequence kv;
  std::optional<TokenTree> offered;  // verified by the next step in which the sequence decodes
  bool started = false;              // the drafter has been told of it
  int64_t ordered_length = 0;        // tokens when a draft of it was last ordered ahead of its step
  // States of the tokens before `states_end` that the sink has not seen, if it wants them.
  std::vector<float> states;
  int64_t states_end = 0;
  TokenHistory history;
  CounterRandomness randomness;

 private:
  void reserve(int max_nodes);
  void restore_output();
  std::vector<TokenId> expected_text() const;
  std::shared_ptr<TokenConstraint> whole_constraint(int64_t vocab_size) const;
  std::optional<FinishReason> append(TokenId token, TokenOrigin origin);

  RequestId id_;
  Request request_;
  AdapterUse adapters_;
  uint64_t scope_;
  ProgressSink sink_;
  int64_t context_;
  std::unordered_set<TokenId> stop_tokens_;
  std::vector<TokenId> tokens_;
  int64_t prompt_part_;
  uint64_t slides_ = 0;
  ThinkingPhase thinking_;
  std::optional<GuardedConstraint> constraint_;
  TokenConstraint::State constraint_state_ = TokenConstraint::kDead;
  std::optional<PredictedText> prediction_;
  StreamDecoder decoder_;
  StopMatcher stops_;
  std::optional<FinishReason> finish_reason_;
  std::optional<FinishReason> prompt_end_;  // set if nothing may follow the prompt
  Completion completion_;
  std::vector<double> pooled_;  // sum of the states pooled so far
  int64_t pooled_count_ = 0;
  double submitted_ms_;
  bool is_admitted_ = false;      // has been admitted at least once
  size_t published_text_ = 0;     // bytes of completion_.text that the sink has seen
  size_t published_tokens_ = 0;   // tokens that the sink has seen
  int64_t published_states_ = 0;  // tokens before this one have states that the sink has seen, or knows
  bool is_published_ = false;
};

}  // namespace outrider
