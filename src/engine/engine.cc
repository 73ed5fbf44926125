// SPDX-License-Identifier: Apache-2.0
#include "outrider/engine.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "engine/engine_parts.h"
#include "engine/guarded_call.h"
#include "engine/scheduler.h"
#include "engine/step.h"
#include "engine/step_tracer.h"
#include "sampling/log_probability.h"
#include "sampling/logits_processor.h"

namespace outrider {
namespace {

// Rows of logits held at once while scoring.
constexpr size_t kScoreChunk = 32;

constexpr int kMaxLogprobs = 20;  // beside each token

}  // namespace

struct Engine::Impl {
  explicit Impl(std::unique_ptr<EngineParts> opened)
      : parts(std::move(opened)),
        scheduler({.max_batch = parts->options.max_batch,
                   .max_batch_rows = static_cast<int>(batch_limits(*parts).rows),
                   .prefill_chunk = parts->options.prefill_chunk,
                   .prompt_logits = kMaxPromptLogits,
                   .max_draft_depth = max_draft_depth(*parts),
                   .max_draft_nodes = max_draft_nodes(*parts),
                   .max_preemptions = parts->max_preemptions,
                   .preempt_every = parts->preempt_every,
                   .max_cached = [this](const Sequence& sequence) { return known_tokens(sequence); }},
                  parts->cache.get()),
        policy({.is_auto = parts->options.speculation.is_auto,
                .schedule = parts->options.speculation.draft_len_schedule,
                .max_depth = max_draft_depth(*parts),
                .max_nodes = max_draft_nodes(*parts)},
               parts->costs),
        pass({.target = parts->target.get(),
              .cache = parts->cache.get(),
              .drafter = parts->drafter.get(),
              .policy = &policy,
              .vocab_size = parts->vocab_size,
              .acceptance = acceptance_rule(parts->options),
              .options = &parts->options.speculation,
              .limits = batch_limits(*parts),
              .max_nodes = max_draft_nodes(*parts)}) {}

  Status check(const Request& request) const;
  Status check_tokens(std::span<const TokenId> tokens) const;
  Status check_ids(std::span<const TokenId> tokens) const;
  Status check_rules(const Request& request) const;
  Status check_room(const Sequence& sequence) const;
  Status check_speculation(const RequestSpeculation& speculation) const;
  void retire(RequestId id);
  int64_t known_tokens(const Sequence& sequence) const;

  std::unique_ptr<EngineParts> parts;
  Scheduler scheduler;
  SpeculationPolicy policy;
  Step pass;
  std::optional<StepTracer> tracer;  // where a sink wants traces
  RequestId next_id = 1;
  std::vector<RequestId> cancelled;  // since the last step
};

// To the drafter; what it cannot say, it does not know.
int64_t Engine::Impl::known_tokens(const Sequence& sequence) const {
  int64_t known = 0;
  (void)guarded([&] {
    return known = parts->drafter->known_tokens(sequence.tokens(), sequence.request().cache_scope), Status();
  });
  return std::max<int64_t>(0, known);
}

Status Engine::Impl::check_tokens(std::span<const TokenId> tokens) const {
  if (tokens.empty()) return input_error("the prompt is empty, expected at least one token");
  return check_ids(tokens);
}

Status Engine::Impl::check_ids(std::span<const TokenId> tokens) const {
  for (const TokenId token : tokens) {
    if (token >= 0 && token < parts->vocab_size) continue;
    return input_error("token id " + std::to_string(token) + " is outside the vocabulary of " +
                       std::to_string(parts->vocab_size) + " tokens");
  }
  return {};
}

Status Engine::Impl::check(const Request& request) const {
  OUTRIDER_RETURN_IF_ERROR(check_tokens(request.prompt));
  if (static_cast<int64_t>(request.prompt.size()) >= parts->options.context) {
    return input_error("the prompt has " + std::to_string(request.prompt.size()) +
                       " tokens and the context holds " + std::to_string(parts->options.context) +
                       "; shorten the prompt or raise --ctx (the model allows " +
                       std::to_string(parts->target->config().max_context) + ")");
  }
  if (request.max_tokens < 0) {
    return usage_error("max tokens must be 0 or more, found " + std::to_string(request.max_tokens));
  }
  for (const auto& [name, count] :
       {std::pair("logprobs", request.logprobs), std::pair("prompt logprobs", request.prompt_logprobs)}) {
    if (count >= -1 && count <= kMaxLogprobs) continue;
    return usage_error(std::string(name) + " must be 0 to " + std::to_string(kMaxLogprobs) +
                       ", or -1 for none, found " + std::to_string(count));
  }
  OUTRIDER_RETURN_IF_ERROR(check_rules(request));
  OUTRIDER_RETURN_IF_ERROR(check_speculation(request.speculation));
  return validate(request.sampling);
}

Status Engine::Impl::check_rules(const Request& request) const {
  const TokenRules& rules = request.rules;
  if (rules.min_tokens < 0 || rules.min_tokens > request.max_tokens) {
    return usage_error("min tokens must be 0 to max tokens, " + std::to_string(request.max_tokens) +
                       ", found " + std::to_string(rules.min_tokens));
  }
  if (!rules.allowed.empty()) OUTRIDER_RETURN_IF_ERROR(check_ids(rules.allowed));
  for (const std::vector<TokenId>& sequence : rules.forbidden) {
    if (sequence.empty()) return usage_error("a forbidden sequence must have a token or more, found none");
    OUTRIDER_RETURN_IF_ERROR(check_ids(sequence));
  }
  return {};
}

Status Engine::Impl::check_room(const Sequence& sequence) const {
  const int64_t pages = scheduler.pages_for(sequence);
  const int64_t all = parts->cache->shape().page_count;
  if (pages > all) {
    return input_error("the request can grow to " + std::to_string(sequence.max_length()) + " tokens, " +
                       std::to_string(pages) + " pages of the KV cache, which has " + std::to_string(all) +
                       "; shorten the prompt, lower max tokens or raise --kv-pages");
  }
  const int max = parts->options.max_waiting;
  if (max > 0 && scheduler.queued() >= max) {
    return resource_error("the queue is full: " + std::to_string(scheduler.queued()) +
                          " requests wait, expected fewer than " + std::to_string(max) + "; try again later");
  }
  return {};
}

Status Engine::Impl::check_speculation(const RequestSpeculation& speculation) const {
  if (speculation.max_draft_tokens < 0) {
    return usage_error("a request's max draft tokens must be 0 or more, found " +
                       std::to_string(speculation.max_draft_tokens));
  }
  if (speculation.enabled && speculation.is_auto.value_or(false) && parts->costs.empty() &&
      max_draft_depth(*parts) > 0) {
    return usage_error(
        "a request asks for policy auto, but no costs were measured when the model was opened; open it with "
        "policy=auto or calibrate, or leave the request's policy out");
  }
  return {};
}

void Engine::Impl::retire(RequestId id) {
  std::unique_ptr<Sequence> sequence = scheduler.remove(id);
  if (sequence == nullptr) return;
  pass.forget(*sequence);
  sequence->publish();
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::open(EngineOptions options) {
  OUTRIDER_TRY(std::unique_ptr<EngineParts> parts, open_parts(std::move(options)));
  return assemble(std::move(parts));
}

std::unique_ptr<Engine> Engine::assemble(std::unique_ptr<EngineParts> parts) {
  return std::unique_ptr<Engine>(new Engine(std::make_unique<Impl>(std::move(parts))));
}

const EngineInfo& Engine::info() const { return impl_->parts->info; }

std::vector<TokenId> Engine::tokenize(std::string_view text, bool add_special, bool parse_special) const {
  return impl_->parts->tokenizer->encode(text, {.add_special = add_special, .parse_special = parse_special});
}

std::string Engine::detokenize(std::span<const TokenId> tokens, bool skip_special) const {
  return impl_->parts->tokenizer->decode(tokens, skip_special);
}

Result<std::string> Engine::apply_chat_template(std::span<const std::pair<std::string, std::string>> messages,
                                                bool add_generation_prompt) const {
  const EngineParts& parts = *impl_->parts;
  if (!parts.chat_template)
    return input_error("the model has no chat template; use generate with a plain prompt");
  ChatContext context;
  for (const auto& [role, content] : messages) {
    ChatMessage message;
    message.role = role;
    message.content = content;
    context.messages.push_back(std::move(message));
  }
  context.add_generation_prompt = add_generation_prompt;
  context.bos_token = parts.bos_token;
  context.eos_token = parts.eos_token;
  return parts.chat_template->render(context);
}

Result<RequestId> Engine::submit(Request request, ProgressSink sink) {
  OUTRIDER_RETURN_IF_ERROR(impl_->check(request));
  const RequestId id = impl_->next_id++;
  const SpeculativeOptions& speculation = impl_->parts->options.speculation;
  const Sequence::Limits limits{.context = impl_->parts->options.context,
                                .max_draft_nodes = max_draft_nodes(*impl_->parts),
                                .vocab_size = impl_->parts->vocab_size,
                                .model_stop_tokens = impl_->parts->target->config().stop_tokens,
                                .thinking = {.begin = speculation.relaxed.begin_thinking_token,
                                             .end = speculation.relaxed.end_thinking_token}};
  auto sequence =
      std::make_unique<Sequence>(id, std::move(request), std::move(sink), impl_->parts->tokenizer, limits);
  const bool nothing_to_do = sequence->finished();
  if (!nothing_to_do) OUTRIDER_RETURN_IF_ERROR(impl_->check_room(*sequence));
  impl_->scheduler.add(std::move(sequence));
  if (nothing_to_do) impl_->retire(id);
  return id;
}

void Engine::cancel(RequestId id) { impl_->cancelled.push_back(id); }

bool Engine::step() {
  for (const RequestId id : std::exchange(impl_->cancelled, {})) {
    if (Sequence* sequence = impl_->scheduler.find(id)) sequence->finish(FinishReason::kCancelled);
    impl_->retire(id);
  }
  if (impl_->scheduler.idle()) return false;
  StepTracer* tracer = impl_->tracer ? &*impl_->tracer : nullptr;
  if (tracer != nullptr) tracer->start_step();
  std::vector<Sequence*> preempted;
  const std::span<const SequencePlan> plans = impl_->scheduler.plan(preempted);
  for (Sequence* sequence : preempted) impl_->pass.forget(*sequence);
  if (tracer != nullptr) tracer->plan(plans);
  impl_->pass.run(plans, impl_->scheduler.draft_rows(), tracer);
  for (const SequencePlan& plan : plans) {
    if (plan.sequence->finished()) {
      impl_->retire(plan.sequence->id());
    } else if (plan.decodes) {
      plan.sequence->publish();
    }
  }
  if (tracer != nullptr) tracer->finish_step();
  return !impl_->scheduler.idle();
}

void Engine::set_trace_sink(TraceSink sink) {
  impl_->tracer.reset();
  if (sink) impl_->tracer.emplace(std::move(sink), impl_->parts->vocab_size);
}

Result<Completion> Engine::generate(Request request, ProgressSink sink) {
  std::optional<Completion> completion;
  OUTRIDER_TRY([[maybe_unused]] const RequestId id,
               submit(std::move(request), [&](RequestId from, const Progress& progress) {
                 if (sink) sink(from, progress);
                 if (progress.completion != nullptr) completion = *progress.completion;
               }));
  while (!completion) step();
  return *std::move(completion);
}

Result<std::vector<double>> Engine::score(std::span<const TokenId> tokens) {
  OUTRIDER_RETURN_IF_ERROR(impl_->check_tokens(tokens));
  EngineParts& parts = *impl_->parts;
  if (static_cast<int64_t>(tokens.size()) > parts.options.context) {
    return input_error("the text has " + std::to_string(tokens.size()) + " tokens and the context holds " +
                       std::to_string(parts.options.context) + "; shorten it or raise --ctx");
  }
  KvSequence kv = parts.cache->open({});
  ForwardBatch batch;
  std::vector<double> log_probabilities = {0.0};
  std::vector<int> path;
  for (size_t begin = 0; begin + 1 < tokens.size(); begin += kScoreChunk) {
    const auto chunk = tokens.subspan(begin, std::min(kScoreChunk, tokens.size() - 1 - begin));
    OUTRIDER_TRY(KvTransaction transaction, parts.cache->stage(kv, static_cast<int>(chunk.size())));
    batch.clear();
    append_chain(batch, kv, transaction, chunk, LogitsWanted::kAll);
    const std::span<const float> logits = parts.target->forward(batch, *parts.cache);
    const auto row_size = static_cast<size_t>(parts.target->config().vocab_size);
    for (size_t i = 0; i < chunk.size(); ++i) {
      const auto row = logits.subspan(i * row_size, static_cast<size_t>(parts.vocab_size));
      log_probabilities.push_back(LogSoftmax(row).of(tokens[begin + i + 1]));
    }
    path.resize(chunk.size());
    std::iota(path.begin(), path.end(), 0);
    transaction.commit(path, chunk);
  }
  return log_probabilities;
}

EngineStatus Engine::status() const {
  const KvCache& cache = *impl_->parts->cache;
  const Scheduler& scheduler = impl_->scheduler;
  const Step::Totals& totals = impl_->pass.totals();
  EngineStatus status{.running = scheduler.running(),
                      .waiting = scheduler.waiting(),
                      .pages = cache.shape().page_count,
                      .used_pages = cache.shape().page_count - cache.available_pages(),
                      .steps = totals.steps,
                      .rows = totals.rows,
                      .prompt_tokens = scheduler.prompt_tokens(),
                      .cached_tokens = scheduler.cached_tokens(),
                      .output_tokens = totals.speculation.committed,
                      .preemptions = scheduler.preemptions(),
                      .speculation = totals.speculation,
                      .speedup = impl_->policy.speedup()};
  status.speculation.method = impl_->parts->info.drafter;
  return status;
}

const EngineParts& Engine::parts() const { return *impl_->parts; }

int64_t Engine::free_pages() const { return impl_->parts->cache->available_pages(); }

}  // namespace outrider
