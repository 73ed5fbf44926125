// SPDX-License-Identifier: Apache-2.0
#include "engine/step/retire.h"

#include <memory>
#include <utility>

#include "engine/guarded_call.h"

namespace outrider {

void forget(const StepParts& parts, Sequence& sequence) {
  if (!std::exchange(sequence.started, false)) return;
  if (sequence.is_offered()) return;
  (void)guarded([&] { return parts.drafter->end(sequence.id()), Status(); });
  parts.policy->forget(sequence.id());
}

void retire(const StepParts& parts, RequestId id) {
  const std::unique_ptr<Sequence> sequence = parts.scheduler->remove(id);
  if (sequence == nullptr) return;
  forget(parts, *sequence);
  const Request& request = sequence->request();
  // Slots have no adapters. Without memory for the text the request ends all the same.
  if (request.pooling == Pooling::kNone && sequence->scope() == request.cache_scope) {
    (void)guarded([&] {
      parts.slots->keep(request.slot, sequence->tokens(), request.cache_scope);
      return Status();
    });
  }
  const SpeculationStats& stats = sequence->completion().speculation;
  if (!sequence->is_offered()) parts.speculation_limits->add_finished(stats.accepted, stats.drafts);
  sequence->publish();
}

}  // namespace outrider
