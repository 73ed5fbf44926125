// SPDX-License-Identifier: Apache-2.0
#include "server/calls/live_calls.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "server/access/key_quotas.h"
#include "server/telemetry/trace_exporter.h"

namespace outrider {
namespace {

constexpr int kMaxRetry = 60;  // seconds

void wake(const LiveCall& call) {
  if (call.wake) call.wake();
}

template <typename T>
void append(std::vector<T>& to, std::vector<T>& from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

// Merges the deltas of several steps into one, which keeps the last trace.
void merge(ChoiceDelta& held, ChoiceDelta delta) {
  held.text += delta.text;
  append(held.tokens, delta.tokens);
  append(held.origins, delta.origins);
  append(held.logprobs, delta.logprobs);
  append(held.prompt_logprobs, delta.prompt_logprobs);
  if (delta.trace) held.trace = std::move(delta.trace);
  if (delta.completion) held.completion = std::move(delta.completion);
}

void count(CallTotals& totals, const Completion& completion) {
  totals.prompt_tokens = completion.prompt_tokens;
  totals.cached_tokens += completion.cached_tokens;
  totals.output_tokens += static_cast<int64_t>(completion.tokens.size());
  totals.queue_ms = std::max(totals.queue_ms, completion.queue_ms);
  totals.prompt_ms = std::max(totals.prompt_ms, completion.prompt_ms);
  totals.decode_ms = std::max(totals.decode_ms, completion.decode_ms);
  totals.steps += completion.speculation.steps;
  totals.drafted += completion.speculation.drafted;
  totals.accepted += completion.speculation.accepted;
  totals.finish_reason = finish_reason_name(completion.finish_reason);
}

ApiError failure_error() {
  return {.status = 500,
          .type = "server_error",
          .message = "the server failed while it worked on this request; its log says why",
          .code = "engine_failed"};
}

ApiError refusal_error(const Error& refusal) {
  if (refusal.kind == ErrorKind::kResource) {
    return {.status = 429,
            .type = "rate_limit_error",
            .message = refusal.message,
            .code = "queue_full",
            .retry_after = 1};
  }
  return {.message = refusal.message};
}

}  // namespace

int LiveCalls::retry_after() const {
  return std::clamp(static_cast<int>(std::ceil(mean_call_seconds_)), 1, kMaxRetry);
}

std::shared_ptr<LiveCall> LiveCalls::open(LiveCall call) {
  call.number = next_number_++;
  auto opened = std::make_shared<LiveCall>(std::move(call));
  calls_.emplace(opened->number, opened);
  if (!opened->is_background) ++preparing_;
  return opened;
}

bool LiveCalls::submit(LiveCall& call, EngineLoop& engine) {
  std::vector<Request>& requests = call.generation->requests();
  const auto choices = static_cast<int>(requests.size());
  if (!call.is_background && load() - 1 + choices > limits_.calls) return false;
  call.held.resize(requests.size());
  call.totals.choices = choices;
  call.totals.ignored_fields = call.generation->ignored_fields();
  engine.submit(call.number, std::move(requests), call.generation->wants_traces());
  if (!call.is_background) --preparing_;
  sequences(call) += choices;
  call.unfinished = static_cast<size_t>(choices);
  return true;
}

void LiveCalls::close(LiveCall& call) {
  if (calls_.erase(call.number) > 0 && !call.is_background) --preparing_;
}

void LiveCalls::abandon(LiveCall& call, EngineLoop& engine) {
  call.is_abandoned = true;
  if (!call.error) call.status = 499;  // else its client was told another one
  call.wake = nullptr;
  call.events = {};
  call.held.assign(call.held.size(), std::nullopt);
  if (call.unfinished == 0) return close(call);
  call.is_cancelled = engine.cancel(call.number);
}

void LiveCalls::cancel_abandoned(EngineLoop& engine) {
  for (const auto& [number, call] : calls_) {
    if (call->is_abandoned && !call->is_cancelled) call->is_cancelled = engine.cancel(number);
  }
}

void LiveCalls::deliver(std::vector<CallUpdate> updates) {
  for (CallUpdate& item : updates) {
    const auto found = calls_.find(item.call);
    if (found == calls_.end()) continue;
    const std::shared_ptr<LiveCall> call = found->second;
    try {
      take(*call, item);
    } catch (const std::exception&) {  // ends this call; its connection then cancels it
      log_failure("update_failed", std::current_exception());
      call->error = failure_error();
      if (call->unfinished == 0 && !call->is_finished) finish(*call);
    }
    wake(*call);
  }
}

void LiveCalls::take(LiveCall& call, CallUpdate& update) {
  switch (update.kind) {
    case CallUpdate::Kind::kAccepted:
      call.is_accepted = true;
      if (!call.is_abandoned && call.generation->streams()) call.generation->start(call.events);
      break;
    case CallUpdate::Kind::kRefused:
      fail(call, refusal_error(update.refusal));
      break;
    case CallUpdate::Kind::kFailed:
      fail(call, failure_error());
      break;
    case CallUpdate::Kind::kProgress:
      on_progress(call, update.choice, std::move(update.delta));
      break;
  }
}

// Ends a call that the engine does not know any more.
void LiveCalls::fail(LiveCall& call, ApiError error) {
  sequences(call) -= static_cast<int>(std::exchange(call.unfinished, 0));
  call.status = error.status;
  call.error = std::move(error);
  finish(call);
}

void LiveCalls::on_progress(LiveCall& call, int choice, ChoiceDelta delta) {
  const double now = now_ms();
  if (const auto tokens = static_cast<int64_t>(delta.tokens.size()); tokens > 0 && !call.is_background) {
    if (!call.totals.first_token_ms) {
      call.totals.first_token_ms = now - call.arrived_ms;
      metrics_->on_first_token(*call.totals.first_token_ms / 1e3);
    } else {
      metrics_->on_tokens((now - call.last_token_ms) / 1e3, tokens);
    }
    call.last_token_ms = now;
  }
  const bool is_last = delta.completion.has_value();
  if (is_last) {
    if (!call.is_background) metrics_->on_completion(*delta.completion);
    count(call.totals, *delta.completion);
    --sequences(call);
    --call.unfinished;
    if (delta.completion->finish_reason == FinishReason::kError && !call.error) {
      call.error = failure_error();
      call.status = call.error->status;
    }
  }
  if (!call.is_abandoned && !call.error) {
    auto& held = call.held[static_cast<size_t>(choice)];
    if (held) {
      merge(*held, std::move(delta));
    } else if (call.generation->streams() && call.events.size() + call.writing_bytes > limits_.stream_bytes) {
      held = std::move(delta);
    } else {
      call.generation->add(choice, std::move(delta), call.events);
    }
  }
  if (is_last && call.unfinished == 0) finish(call);
}

void LiveCalls::release_held(LiveCall& call) {
  for (size_t choice = 0; choice < call.held.size(); ++choice) {
    if (!call.held[choice] || call.events.size() > limits_.stream_bytes) continue;
    call.generation->add(static_cast<int>(choice), *std::exchange(call.held[choice], std::nullopt),
                         call.events);
  }
}

void LiveCalls::finish(LiveCall& call) {
  const double seconds = (now_ms() - call.arrived_ms) / 1e3;
  if (!call.is_background) {
    metrics_->on_call(seconds);
    mean_call_seconds_ = mean_call_seconds_ == 0 ? seconds : 0.9 * mean_call_seconds_ + 0.1 * seconds;
  }
  if (!call.client.key.empty()) metrics_->on_key(call.client.key, call.totals);
  if (quotas_ != nullptr)
    quotas_->take_tokens(call.scope, call.totals.prompt_tokens + call.totals.output_tokens, now_ms());
  call.is_finished = true;
  const auto taken = calls_.extract(call.number);
  log(call, seconds);
}

void LiveCalls::log(const LiveCall& call, double seconds) const noexcept try {
  if (!call.is_logged) return;
  const RequestRecord record{
      .id = call.request_id,
      .method = call.method,
      .route = call.route,
      .status = call.status,
      .total_ms = seconds * 1e3,
      .error = call.error ? call.error->message : "",
      .client = call.client,
      .model = call.model,
      .streams = call.generation ? std::optional(call.generation->streams()) : std::nullopt,
      .call = call.totals};
  log_request(record);
  if (traces_ != nullptr) traces_->add(record);
} catch (const std::exception&) {  // without memory for its line the call ends all the same
  log_failure("line_lost", std::current_exception());
}

bool LiveCalls::cancel(std::string_view id, uint64_t scope, EngineLoop& engine) {
  for (const std::string_view prefix : {"chatcmpl-", "cmpl-", "resp_", "msg_"}) {
    if (id.starts_with(prefix)) id.remove_prefix(prefix.size());
  }
  bool is_found = false;
  for (const auto& [number, call] : calls_) {
    if (call->scope != scope || (call->id != id && call->request_id != id)) continue;
    is_found = true;
    if (call->unfinished > 0) {
      engine.cancel(number);
    } else {
      call->error =
          ApiError{.status = 499, .type = "cancelled_error", .message = "the request was cancelled"};
      wake(*call);
    }
  }
  return is_found;
}

void LiveCalls::abort(LiveCall& call, const ApiError& error, EngineLoop* engine) {
  call.error = error;
  call.status = error.status;
  if (engine != nullptr && call.unfinished > 0) engine->cancel(call.number);
  wake(call);
}

void LiveCalls::expire(double before_ms, const ApiError& error, EngineLoop& engine) {
  for (const auto& [number, call] : calls_) {
    if (!call->has_time_limit || call->error || call->is_abandoned || call->arrived_ms >= before_ms) continue;
    abort(*call, error, &engine);
  }
}

void LiveCalls::abort_all(const ApiError& error, EngineLoop* engine) {
  for (const auto& [number, call] : calls_) abort(*call, error, engine);
}

int LiveCalls::load_of(uint64_t scope) const {
  int load = 0;
  for (const auto& [number, call] : calls_) {
    if (call->scope == scope && !call->is_background) load += std::max(1, static_cast<int>(call->unfinished));
  }
  return load;
}

void LiveCalls::end_all() {
  for (const auto& [number, call] : calls_) log(*call, (now_ms() - call->arrived_ms) / 1e3);
  calls_.clear();
}

}  // namespace outrider
