// SPDX-License-Identifier: Apache-2.0
#include "engine/saved_prompts.h"

#include <algorithm>

#include "engine/guarded_call.h"

namespace outrider {
namespace {

// Other sequences wait no longer for a part of a text.
constexpr double kBesideOthersMs = 20;
constexpr double kAloneMs = 100;

}  // namespace

bool SavedPrompts::restore(const Sequence& sequence, bool is_alone) {
  if (disk_ == nullptr) return false;
  const std::span<const TokenId> tokens = sequence.tokens();
  const uint64_t scope = sequence.scope();
  if (current_ != 0 && current_ != sequence.id()) return disk_->has_more(tokens, scope);
  if (current_ == 0 && !disk_->has_more(tokens, scope)) return false;
  current_ = sequence.id();
  const double limit_ms = is_alone ? kAloneMs : kBesideOthersMs;
  if (known_ == kUnknown) {
    bool has_more = false;
    (void)guarded([&] {
      has_more = !sequence.is_offered() && drafter_.restore(sequence.id(), tokens, scope, limit_ms);
      return Status();
    });
    if (has_more) return true;
    known_ = std::clamp<int64_t>(max_cached_(sequence), 0, std::ssize(tokens) - 1);
  }
  return disk_->restore(sequence.id(), tokens.first(static_cast<size_t>(known_) + 1), scope, limit_ms);
}

void SavedPrompts::release(RequestId id) {
  if (current_ == id) release();
}

bool SavedPrompts::release() {
  current_ = 0;
  known_ = kUnknown;
  return disk_ != nullptr && disk_->release();
}

bool SavedPrompts::save(bool everything) {
  if (disk_ == nullptr) return false;
  bool is_more = false;
  (void)guarded([&] {
    is_more = disk_->save(everything) || drafter_.save(everything);
    return Status();
  });
  return is_more;
}

}  // namespace outrider
