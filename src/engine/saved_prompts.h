// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "engine/scheduler.h"
#include "kv/disk/kv_disk.h"
#include "outrider/drafter.h"

namespace outrider {

// The engine's caches on disk: the target's, and those that the drafter has. One text is brought back at a
// time, the drafter's entries first, because the target computes what the drafter does not know.
class SavedPrompts final : public PrefixRestorer {
 public:
  // disk: of the target's cache; null: nothing is kept. max_cached: as SchedulerOptions has it.
  SavedPrompts(KvDisk* disk, Drafter* drafter, std::function<int64_t(const Sequence&)> max_cached)
      : disk_(disk), drafter_(*drafter), max_cached_(std::move(max_cached)) {}

  bool restore(const Sequence& sequence, bool is_alone) override;
  void release(RequestId id) override;
  bool release() override;

  // Saves a part of what is not saved yet: what is complete, or anything. False: nothing is left.
  bool save(bool everything);

 private:
  static constexpr int64_t kUnknown = -1;

  KvDisk* disk_;
  Drafter& drafter_;
  std::function<int64_t(const Sequence&)> max_cached_;
  RequestId current_ = 0;     // the sequence that it brings pages for; 0: none
  int64_t known_ = kUnknown;  // tokens of it that the target need not compute for the drafter
};

}  // namespace outrider
