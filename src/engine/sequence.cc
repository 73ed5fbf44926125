// SPDX-License-Identifier: Apache-2.0
#include "engine/sequence.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/token_limits.h"
#include "sampling/token_mask.h"

namespace outrider {

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "";
}

// The tokens with one of the texts, as a bit set; null: there is none.
std::shared_ptr<const std::vector<uint64_t>> breaker_tokens(const Tokenizer& tokenizer,
                                                            std::vector<std::string> texts) {
  if (texts.empty()) texts = {"\n", ":", "\"", "*"};
  if (texts == std::vector<std::string>{"none"}) return nullptr;
  std::vector<uint64_t> words = no_tokens(tokenizer.vocab_size());
  for (TokenId token = 0; token < tokenizer.vocab_size(); ++token) {
    const std::string_view bytes = tokenizer.token_bytes(token);
    const auto has_text = [&](const std::string& text) { return bytes.find(text) != std::string_view::npos; };
    if (std::ranges::any_of(texts, has_text)) add_token(words, token);
  }
  return std::make_shared<const std::vector<uint64_t>>(std::move(words));
}

Sequence::Sequence(RequestId id, Request request, ProgressSink sink,
                   std::shared_ptr<const Tokenizer> tokenizer, const Limits& limits, AdapterUse adapters)
    : randomness(request.sampling.seed, request.sample_index),
      id_(id),
      request_(std::move(request)),
      adapters_(std::move(adapters)),
      scope_(adapters_.scope_within(request_.cache_scope)),
      sink_(std::move(sink)),
      context_(limits.context),
      stop_tokens_(request_.stop_tokens.begin(), request_.stop_tokens.end()),
      tokens_(request_.prompt),
      prompt_part_(prompt_length()),
      thinking_(limits.thinking),
      decoder_(tokenizer, request_.skip_special),
      stops_(request_.stop),
      submitted_ms_(now_ms()) {
  states_end = published_states_ = request_.speculation.states_from.value_or(0);
  if (!request_.ignore_eos)
    stop_tokens_.insert(limits.model_stop_tokens.begin(), limits.model_stop_tokens.end());
  reserve(limits.max_nodes);
  history.add_prompt(request_.prompt);
  if (request_.sampling.dry.multiplier > 0.0)
    history.set_breakers(breaker_tokens(*tokenizer, request_.dry_breakers));
  for (const TokenId token : request_.prompt) thinking_.push(token);
  completion_.prompt_tokens = prompt_length();
  if (remaining() <= 0) prompt_end_ = FinishReason::kLength;
  if (!request_.prediction.empty()) prediction_.emplace(expected_text());
  if (const std::shared_ptr<TokenConstraint> constraint = whole_constraint(limits.vocab_size)) {
    constraint_.emplace(constraint);
    constraint_state_ = constraint_->start();
    if (constraint_->is_complete(constraint_state_)) prompt_end_ = FinishReason::kStop;
  }
  if (prompt_end_ && pending_logprobs() == 0) finish(*prompt_end_);
  restore_output();
}

// The part of the prediction that the context has room for.
std::vector<TokenId> Sequence::expected_text() const {
  const auto room = static_cast<size_t>(std::max<int64_t>(0, context_ - prompt_length()));
  const std::span<const TokenId> text = request_.prediction;
  return {text.begin(), text.begin() + static_cast<ptrdiff_t>(std::min(text.size(), room))};
}

// The request's constraint and its token rules as one constraint; null if it has neither.
std::shared_ptr<TokenConstraint> Sequence::whole_constraint(int64_t vocab_size) const {
  const TokenRules& rules = request_.rules;
  if (rules.empty()) return request_.constraint;
  return std::make_shared<TokenLimits>(TokenLimits::Rules{.vocab_size = vocab_size,
                                                          .allowed = rules.allowed,
                                                          .forbidden = rules.forbidden,
                                                          .min_tokens = rules.min_tokens,
                                                          .ends = {stop_tokens_.begin(), stop_tokens_.end()}},
                                       request_.constraint);
}

// Makes room so that steps do not allocate, except for very long sequences and for tokens that stand for many
// bytes.
void Sequence::reserve(int max_nodes) {
  constexpr int64_t kMax = 1 << 16;
  constexpr size_t kBytesPerToken = 8;
  const auto room = static_cast<size_t>(std::clamp<int64_t>(max_length() - prompt_length(), 0, kMax));
  tokens_.reserve(tokens_.size() + room);
  completion_.tokens.reserve(room);
  completion_.origins.reserve(room);
  completion_.text.reserve(kBytesPerToken * room);
  if (request_.logprobs >= 0) completion_.logprobs.reserve(room);
  history.reserve(tokens_.size() + room + static_cast<size_t>(max_nodes));
}

// Commits the output of an earlier run, of which the sink hears nothing.
void Sequence::restore_output() {
  for (size_t i = 0; i < request_.output.size() && !finished(); ++i) {
    if (const auto reason = append(request_.output[i], TokenOrigin::kPlain)) finish(*reason);
    if (is_full()) slide();
  }
  published_text_ = completion_.text.size();
  published_tokens_ = completion_.tokens.size();
}

int64_t Sequence::pending_logprobs() const {
  if (request_.prompt_logprobs < 0) return 0;
  return prompt_length() - 1 - static_cast<int64_t>(completion_.prompt_logprobs.size());
}

int64_t Sequence::remaining() const {
  return std::min(request_.max_tokens - output_length(), context_ - static_cast<int64_t>(tokens_.size()));
}

void Sequence::admit(KvSequence cached) {
  kv = std::move(cached);
  kv.set_adapters(adapters_.scaled);
  pooled_.clear();
  pooled_count_ = 0;
  if (std::exchange(is_admitted_, true)) return;
  completion_.cached_tokens = kv.length();
  completion_.queue_ms = now_ms() - submitted_ms_;
}

int Sequence::commit(std::span<const TokenId> tokens, std::span<const TokenOrigin> origins) {
  int committed = 0;
  if (completion_.tokens.empty() && !tokens.empty()) completion_.first_token_ms = now_ms() - submitted_ms_;
  while (committed < static_cast<int>(tokens.size()) && !finished() && !is_full()) {
    const auto i = static_cast<size_t>(committed++);
    if (const auto reason = append(tokens[i], origins[i])) finish(*reason);
  }
  return committed;
}

// The one place where a sequence grows. Stop rules come before the length rule, so that a stop on the last
// allowed token is reported as a stop.
std::optional<FinishReason> Sequence::append(TokenId token, TokenOrigin origin) {
  if (constraint_) constraint_state_ = constraint_->advance(constraint_state_, token);
  tokens_.push_back(token);
  history.push(token);
  thinking_.push(token);
  completion_.tokens.push_back(token);
  completion_.origins.push_back(origin);
  if (prediction_) prediction_->follow(completion_.tokens);
  if (stop_tokens_.contains(token)) return FinishReason::kStop;
  if (output_length() <= request_.rules.min_tokens) {
    completion_.text += decoder_.push(token);
  } else {
    stops_.push(decoder_.push(token), completion_.text);
  }
  if (stops_.matched()) return FinishReason::kStop;
  if (constraint_ && constraint_->is_complete(constraint_state_)) return FinishReason::kStop;
  const bool fills_context = std::ssize(tokens_) >= context_ && request_.slide < 0;
  if (output_length() >= request_.max_tokens || fills_context) return FinishReason::kLength;
  return std::nullopt;
}

// Penalties and all later steps know the tokens that are left and no others. The constraint, the stop texts
// and the limits go on.
void Sequence::slide() {
  const int64_t kept = request_.slide;
  const int64_t dropped = std::max<int64_t>(1, (context_ - kept) / 2);
  tokens_.erase(tokens_.begin() + kept, tokens_.begin() + kept + dropped);
  const int64_t of_prompt = std::clamp<int64_t>(prompt_part_ - kept, 0, dropped);
  prompt_part_ = std::max<int64_t>(1, prompt_part_ - of_prompt);
  const std::span<const TokenId> left = tokens_;
  history.restart(left.first(static_cast<size_t>(prompt_part_)),
                  left.subspan(static_cast<size_t>(prompt_part_)));
  ++slides_;
  randomness = CounterRandomness(request_.sampling.seed, sample_key());
  ordered_length = 0;
}

void Sequence::add_prompt_logprobs(TokenLogprobs logprobs) {
  completion_.prompt_logprobs.push_back(std::move(logprobs));
  if (prompt_end_ && pending_logprobs() == 0) finish(*prompt_end_);
}

void Sequence::pool(std::span<const float> state) {
  pooled_.resize(state.size());
  for (size_t i = 0; i < state.size(); ++i) pooled_[i] += state[i];
  ++pooled_count_;
  if (pools_all_rows() && pooled_count_ < prompt_length()) return;
  for (const double sum : pooled_)
    completion_.embedding.push_back(static_cast<float>(sum / static_cast<double>(pooled_count_)));
}

void Sequence::finish(FinishReason reason) {
  if (finished()) return;
  finish_reason_ = reason;
  completion_.finish_reason = reason;
  if (prediction_) completion_.accepted_prediction_tokens = prediction_->used();
  completion_.rejected_prediction_tokens =
      std::ssize(request_.prediction) - completion_.accepted_prediction_tokens;
  stops_.push(decoder_.finish(), completion_.text);
  stops_.finish(completion_.text);
}

void Sequence::publish() {
  if (sink_) {
    const Progress progress{
        .text = std::string_view(completion_.text).substr(published_text_),
        .tokens = std::span<const TokenId>(completion_.tokens).subspan(published_tokens_),
        .origins = std::span<const TokenOrigin>(completion_.origins).subspan(published_tokens_),
        .logprobs = std::span<const TokenLogprobs>(completion_.logprobs)
                        .subspan(std::min(published_tokens_, completion_.logprobs.size())),
        .prompt_logprobs = is_published_ ? std::span<const TokenLogprobs>() : completion_.prompt_logprobs,
        .states = states,
        .first_state = published_states_,
        .completion = finished() ? &completion_ : nullptr,
    };
    sink_(id_, progress);
  }
  published_text_ = completion_.text.size();
  published_tokens_ = completion_.tokens.size();
  published_states_ = states_end;
  states.clear();
  is_published_ = true;
}

}  // namespace outrider
