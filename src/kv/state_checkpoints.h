// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kv/prefix_cache.h"
#include "kv/state_store.h"

namespace outrider {

// Copies of states at the ends of full pages, so that a text that begins with the same pages goes on from
// there. Prefixes are never used twice: the checkpoint of a page that was overwritten is not found again, and
// gives its place to another in its turn.
class StateCheckpoints {
 public:
  // The store must outlive it. max_count: checkpoints that are kept at a time.
  StateCheckpoints(StateStore* store, int64_t max_count) : store_(store), max_count_(max_count) {
    checkpoints_.reserve(static_cast<size_t>(max_count));
  }

  bool has(PrefixId prefix) const;

  // Keeps a state with its first `updates` updates, which together hold the entries of `prefix`. It takes the
  // place of the checkpoint of `previous` if no text has gone on from there, else of the one used least
  // recently. False: one is there already, or none may be kept.
  bool keep(PrefixId prefix, int32_t state, int32_t updates, PrefixId previous);

  // A kept state outside the store.
  struct Copy {
    int32_t entries = 0;  // that it holds, in every layer
    int32_t updates = 0;
    std::vector<float> numbers;  // as of StateStore::save()
  };
  // Precondition: has(prefix).
  Copy save(PrefixId prefix) const;
  // Keeps a state that save() has copied, in the place of the one used least recently. False: as of keep().
  bool load(PrefixId prefix, const Copy& copy);
  // The prefixes with a checkpoint.
  std::vector<PrefixId> prefixes() const;

  // Copies the state kept for `prefix` over another. Returns the number of its updates. Precondition:
  // has(prefix).
  int32_t restore(PrefixId prefix, int32_t state);

 private:
  struct Checkpoint {
    PrefixId prefix = kEmptyPrefix;
    int32_t state = 0;  // in the store
    int32_t updates = 0;
    int64_t last_use = 0;
    bool is_shared = false;  // a text has gone on from it
  };
  Checkpoint& place_for(PrefixId previous);

  StateStore* store_;
  int64_t max_count_;
  int64_t uses_ = 0;
  std::vector<Checkpoint> checkpoints_;
};

}  // namespace outrider
