// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <algorithm>
#include <utility>

namespace outrider {

std::span<const SequencePlan> Scheduler::plan(std::vector<Sequence*>& preempted) {
  admit();
  plans_.clear();
  int chunk_left = options_.prefill_chunk;
  for (const auto& sequence : running_) plans_.push_back(plan_one(*sequence, chunk_left));

  // Pages: draft less first, then let the latest arrivals wait.
  const auto pages = [&] {
    int64_t needed = 0;
    for (const SequencePlan& plan : plans_) needed += cache_->pages_needed(plan.sequence->kv, plan.entries());
    return needed;
  };
  if (pages() > cache_->available_pages()) {
    for (SequencePlan& plan : plans_) plan.draft_depth = plan.draft_nodes = 0;
  }
  while (plans_.size() > 1 && pages() > cache_->available_pages()) {
    Sequence* victim = plans_.back().sequence;
    plans_.pop_back();
    victim->kv = KvSequence();
    preempted.push_back(victim);
    waiting_.push_front(std::move(running_.back()));
    running_.pop_back();
  }
  std::erase_if(plans_, [](const SequencePlan& plan) { return plan.entries() == 0; });
  return plans_;
}

void Scheduler::admit() {
  while (!waiting_.empty() && static_cast<int>(running_.size()) < options_.max_batch) {
    Sequence& next = *waiting_.front();
    // Room for its first chunk must be there beyond what the running ones may take in this step.
    const int64_t first_chunk =
        std::min<int64_t>(static_cast<int64_t>(next.tokens().size()), options_.prefill_chunk);
    const int64_t reserve =
        static_cast<int64_t>(running_.size()) * (1 + options_.max_draft_nodes) / cache_->shape().page_size +
        static_cast<int64_t>(running_.size());
    if (!running_.empty() &&
        cache_->pages_needed(next.kv, static_cast<int>(first_chunk)) + reserve > cache_->available_pages()) {
      return;
    }
    next.admit(cache_->open(next.tokens()));
    next.kv.reserve(next.longest() + 1 + options_.max_draft_nodes);
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

SequencePlan Scheduler::plan_one(Sequence& sequence, int& chunk_left) const {
  SequencePlan plan{.sequence = &sequence};
  const auto length = static_cast<int64_t>(sequence.tokens().size());
  const int64_t uncomputed = length - 1 - sequence.kv.length();
  plan.catch_up = static_cast<int>(std::min<int64_t>(uncomputed, chunk_left));
  chunk_left -= plan.catch_up;
  plan.extends = plan.catch_up == uncomputed;
  if (plan.extends && uncomputed == 0 && sequence.request().speculation.enabled) {
    // The last token committed always comes from the target, so one less than what fits is worth drafting.
    plan.draft_depth = static_cast<int>(std::min<int64_t>(options_.max_draft_depth, sequence.room() - 1));
    plan.draft_nodes = plan.draft_depth > 0 ? options_.max_draft_nodes : 0;
  }
  return plan;
}

Sequence* Scheduler::find(RequestId id) {
  for (const auto& sequence : running_) {
    if (sequence->id() == id) return sequence.get();
  }
  for (const auto& sequence : waiting_) {
    if (sequence->id() == id) return sequence.get();
  }
  return nullptr;
}

std::unique_ptr<Sequence> Scheduler::remove(RequestId id) {
  const auto take = [id](auto& list) -> std::unique_ptr<Sequence> {
    const auto found =
        std::find_if(list.begin(), list.end(), [id](const auto& one) { return one->id() == id; });
    if (found == list.end()) return nullptr;
    std::unique_ptr<Sequence> taken = std::move(*found);
    list.erase(found);
    return taken;
  };
  std::unique_ptr<Sequence> taken = take(running_);
  return taken != nullptr ? std::move(taken) : take(waiting_);
}

}  // namespace outrider
