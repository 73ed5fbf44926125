// SPDX-License-Identifier: Apache-2.0
#include "outrider/engine.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "chat_template/plain_chat.h"
#include "drafters/ranked/draft_team.h"
#include "engine/device_orders.h"
#include "engine/engine_parts.h"
#include "engine/guarded_call.h"
#include "engine/request_checks.h"
#include "engine/saved_prompts.h"
#include "engine/scheduler.h"
#include "engine/scoring.h"
#include "engine/slot_texts.h"
#include "engine/step.h"
#include "engine/step/retire.h"
#include "kv/disk/text_file.h"
#include "models/weights/layer_stream.h"
#include "ranks/communicator.h"

namespace outrider {
namespace {

// How many of the sequence's first tokens the drafter needs no features of.
int64_t known_tokens(Drafter& drafter, const Sequence& sequence) {
  if (sequence.wants_states()) return sequence.states_end;
  if (sequence.is_offered()) return std::ssize(sequence.tokens());
  int64_t known = 0;
  (void)guarded([&] {
    known = drafter.known_tokens(sequence.tokens(), sequence.scope());
    return Status();
  });
  return std::max<int64_t>(0, known);
}

std::function<int64_t(const Sequence&)> max_cached(const EngineParts& parts) {
  return
      [drafter = parts.drafter.get()](const Sequence& sequence) { return known_tokens(*drafter, sequence); };
}

SchedulerOptions scheduler_options(const EngineParts& parts, SavedPrompts& saved) {
  return {.max_batch = parts.options.max_batch,
          .max_batch_rows = static_cast<int>(batch_limits(parts).rows),
          .prefill_chunk = parts.options.prefill_chunk,
          .prompt_logits = kMaxPromptLogits,
          .max_draft_len = max_draft_len(parts),
          .max_nodes = max_nodes(parts),
          .offered_nodes = parts.options.offered_nodes,
          .max_predicted = max_predicted(parts),
          .max_preemptions = parts.max_preemptions,
          .preempt_every = parts.preempt_every,
          .background_beside = parts.options.background_beside,
          .max_cached = max_cached(parts),
          .restorer = &saved};
}

SpeculationPolicy::Options policy_options(const EngineParts& parts) {
  return {.is_auto = parts.options.speculation.is_auto,
          .schedule = parts.options.speculation.draft_len_schedule,
          .max_draft_len = max_draft_len(parts),
          .max_nodes = tree_limits(parts).max_nodes,
          .agreement = parts.agreement};
}

// The identity of files with the target's pages. Error: they could not be told from others'.
Result<std::string> cache_identity(const EngineParts& parts) {
  if (parts.target_ranks != nullptr || parts.options.tensor_parallel * parts.options.pipeline_parallel > 1)
    return usage_error("expected a target on one rank, found one divided among ranks, which saves no texts");
  if (parts.cache_identity.empty())
    return resource_error("the model was written only just now; the next start saves texts");
  return parts.cache_identity + describe(parts.cache->shape());
}

StepParts step_parts(const EngineParts& parts, Scheduler& scheduler, SlotTexts& slots,
                     SpeculationPolicy& policy, SpeculationLimits& speculation_limits) {
  return {.target = parts.target.get(),
          .cache = parts.cache.get(),
          .drafter = parts.drafter.get(),
          .scheduler = &scheduler,
          .slots = &slots,
          .policy = &policy,
          .speculation_limits = &speculation_limits,
          .device_loop = parts.device_loop.get(),
          .pass_choices = parts.pass_choices.get(),
          .vocab_size = parts.vocab_size,
          .unused_tokens = parts.unused_tokens,
          .acceptance = acceptance_rule(parts.options),
          .draft_ahead = parts.options.draft_ahead,
          .options = &parts.options.speculation,
          .limits = batch_limits(parts),
          .max_nodes = tree_limits(parts).max_nodes};
}

}  // namespace

struct Engine::Impl {
  explicit Impl(std::unique_ptr<EngineParts> opened)
      : parts(std::move(opened)),
        saved(parts->disk.get(), parts->drafter.get(), max_cached(*parts)),
        scheduler(scheduler_options(*parts, saved), parts->cache.get()),
        slots(parts->options.max_batch),
        policy(policy_options(*parts), parts->costs),
        speculation_limits(parts->options.speculation),
        step(steps_with(step_parts(*parts, scheduler, slots, policy, speculation_limits))) {}

  std::unique_ptr<EngineParts> parts;
  SavedPrompts saved;
  Scheduler scheduler;
  SlotTexts slots;
  SpeculationPolicy policy;
  SpeculationLimits speculation_limits;
  std::atomic<bool> is_interrupted = false;
  Step step;
  StepParts steps_with(StepParts of) const {
    of.is_interrupted = &is_interrupted;
    return of;
  }
  // Ends the sequences that ran in a step that threw.
  void fail_running();

  RequestId next_id = 1;
  std::vector<RequestId> cancelled;  // since the last step
  bool is_usable = true;
};

void Engine::Impl::fail_running() {
  step.abandon();
  while (Sequence* sequence = scheduler.most_senior()) {
    if (!sequence->finished()) sequence->finish(FinishReason::kError);
    try {
      retire(step.parts(), sequence->id());
    } catch (const std::exception& error) {  // its sink threw; it is out of the scheduler
      log_warning(std::string("a request's sink threw: ") + error.what());
    }
  }
  is_usable = is_usable && parts->cache->check_invariants().ok();
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

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
  return render_plain_chat(impl_->parts->chat, messages, add_generation_prompt);
}

Result<RequestId> Engine::submit(Request request, ProgressSink sink) {
  const EngineParts& parts = *impl_->parts;
  OUTRIDER_RETURN_IF_ERROR(check_request(request, parts));
  OUTRIDER_TRY(AdapterUse adapters, parts.adapters.use_of(request));
  const RequestId id = impl_->next_id++;
  const SpeculativeOptions& speculation = parts.options.speculation;
  const Sequence::Limits limits{.context = parts.options.context,
                                .max_nodes = tree_limits(parts).max_nodes,
                                .vocab_size = parts.vocab_size,
                                .model_stop_tokens = parts.target->config().stop_tokens,
                                .thinking = {.begin = speculation.relaxed.begin_thinking_token,
                                             .end = speculation.relaxed.end_thinking_token}};
  auto sequence = std::make_unique<Sequence>(id, std::move(request), std::move(sink), parts.tokenizer, limits,
                                             std::move(adapters));
  const bool nothing_to_do = sequence->finished();
  if (!nothing_to_do) OUTRIDER_RETURN_IF_ERROR(check_room(*sequence, parts, impl_->scheduler));
  impl_->scheduler.add(std::move(sequence));
  interrupt();
  if (nothing_to_do) retire(impl_->step.parts(), id);
  return id;
}

const std::vector<AdapterInfo>& Engine::adapters() const { return impl_->parts->adapters.infos(); }

Status Engine::load_adapter(const AdapterSource& source) {
  return impl_->parts->adapters.load(*impl_->parts->target, source);
}

Status Engine::unload_adapter(std::string_view name) { return impl_->parts->adapters.unload(name); }

Status Engine::set_default_adapter(std::string_view name, double scale, bool is_default) {
  return impl_->parts->adapters.set_default(name, scale, is_default);
}

void Engine::cancel(RequestId id) {
  impl_->cancelled.push_back(id);
  interrupt();
}

void Engine::interrupt() { impl_->is_interrupted = true; }

void Engine::offer(RequestId id, TokenTree tree) {
  Sequence* sequence = impl_->scheduler.find(id);
  if (sequence != nullptr && sequence->is_offered()) sequence->offered = std::move(tree);
}

bool Engine::step() {
  for (const RequestId id : std::exchange(impl_->cancelled, {})) {
    if (Sequence* sequence = impl_->scheduler.find(id)) sequence->finish(FinishReason::kCancelled);
    retire(impl_->step.parts(), id);
  }
  if (impl_->scheduler.idle()) return impl_->saved.save(/*everything=*/true);
  try {
    impl_->step.run();
    impl_->is_interrupted = false;  // the caller looks at what is new before the next step
    impl_->scheduler.park();
    impl_->saved.save(/*everything=*/false);
  } catch (const std::exception& error) {
    impl_->is_usable = impl_->is_usable && dynamic_cast<const RankFailure*>(&error) == nullptr;
    impl_->fail_running();
    throw;
  }
  return !impl_->scheduler.idle() || impl_->saved.save(/*everything=*/true);
}

bool Engine::is_usable() const { return impl_->is_usable; }

void Engine::set_trace_sink(TraceSink sink) { impl_->step.set_trace_sink(std::move(sink)); }

Result<Completion> Engine::generate(Request request, ProgressSink sink) {
  if (request.speculation.is_offered)
    return usage_error("trees are offered between steps; submit the request and step instead of generate()");
  std::optional<Completion> completion;
  OUTRIDER_TRY([[maybe_unused]] const RequestId id,
               submit(std::move(request), [&](RequestId from, const Progress& progress) {
                 if (sink) sink(from, progress);
                 if (progress.completion != nullptr) completion = *progress.completion;
               }));
  try {
    while (!completion) step();
  } catch (const ReadFailure& failure) {
    return io_error(failure.what());
  } catch (const RankFailure& failure) {
    return io_error(failure.what());
  } catch (const std::bad_alloc&) {
    return resource_error("out of memory; a smaller context or batch needs less");
  }
  return *std::move(completion);
}

Result<std::vector<double>> Engine::score(std::span<const TokenId> tokens) {
  return outrider::score(*impl_->parts, tokens);
}

EngineStatus Engine::status() const {
  const KvCache& cache = *impl_->parts->cache;
  const Scheduler& scheduler = impl_->scheduler;
  const StepTotals& totals = impl_->step.totals();
  EngineStatus status{.running = scheduler.running(),
                      .waiting = scheduler.waiting(),
                      .parked = scheduler.parked(),
                      .pages = cache.shape().page_count,
                      .used_pages = cache.shape().page_count - cache.available_pages(),
                      .cached_pages = cache.cached_pages(),
                      .steps = totals.steps,
                      .rows = totals.rows,
                      .prompt_tokens = scheduler.prompt_tokens(),
                      .cached_tokens = scheduler.cached_tokens(),
                      .output_tokens = totals.speculation.committed,
                      .preemptions = scheduler.preemptions(),
                      .rank_messages = impl_->parts->target->traffic().messages,
                      .rank_bytes = impl_->parts->target->traffic().bytes,
                      .foreseen_drafts = impl_->parts->draft_team ? impl_->parts->draft_team->foreseen() : 0,
                      .speculation = totals.speculation,
                      .speedup = impl_->policy.speedup()};
  status.speculation.method = impl_->parts->info.drafter;
  status.device = orders_to_device(*impl_->parts->target);
  return status;
}

Result<Engine::SlotFile> Engine::save_slot(int slot, uint64_t scope, const std::filesystem::path& file) {
  OUTRIDER_RETURN_IF_ERROR(impl_->slots.check(slot));
  OUTRIDER_TRY(const std::string identity, cache_identity(*impl_->parts));
  OUTRIDER_TRY(const TextFile saved,
               save_text(*impl_->parts->cache, impl_->slots.text(slot, scope), scope, identity, file));
  return SlotFile{.tokens = std::ssize(saved.tokens), .bytes = saved.bytes};
}

Result<Engine::SlotFile> Engine::restore_slot(int slot, uint64_t scope, const std::filesystem::path& file) {
  OUTRIDER_RETURN_IF_ERROR(impl_->slots.check(slot));
  OUTRIDER_TRY(const std::string identity, cache_identity(*impl_->parts));
  OUTRIDER_TRY(const TextFile loaded, load_text(*impl_->parts->cache, scope, identity, file));
  impl_->slots.keep(slot, loaded.tokens, scope);
  return SlotFile{.tokens = std::ssize(loaded.tokens), .bytes = loaded.bytes};
}

Result<int64_t> Engine::erase_slot(int slot, uint64_t scope) {
  OUTRIDER_RETURN_IF_ERROR(impl_->slots.check(slot));
  const std::span<const TokenId> text = impl_->slots.text(slot, scope);
  const int64_t erased = std::ssize(text);
  impl_->parts->cache->forget(text, scope);
  if (erased > 0) impl_->slots.erase(slot);
  return erased;
}

const EngineParts& Engine::parts() const { return *impl_->parts; }

int64_t Engine::free_pages() const { return impl_->parts->cache->available_pages(); }

}  // namespace outrider
