// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "kv/kv_cache.h"
#include "models/model.h"
#include "outrider/token.h"

namespace outrider {

// Nodes of a drafted tree that the drafter has computed through the target's first layers, in topological
// order; their keys and values of these layers are in the staged entries of the same numbers. The target's
// pass resumes the rows that it finds unchanged in the tree: with the same number, parent and token.
struct ExitStates {
  struct Row {
    int node = 0;
    int parent = -1;
    TokenId token = 0;
  };
  int64_t layers = 0;  // number of first layers computed
  std::vector<Row> rows;
  std::vector<float> states;  // [rows, hidden_size]: the residual stream after these layers

  void clear() {
    rows.clear();
    states.clear();
  }
};

// The target, for drafters that run a part of it (DrafterTraits::uses_target). Staged entry i is meant for
// node i of the tree; the target's pass overwrites whatever a drafter leaves there, but for ExitStates.
struct TargetAccess {
  Model* model = nullptr;
  KvCache* cache = nullptr;
  const KvSequence* sequence = nullptr;  // holds all tokens but the pending one
  KvTransaction* staged = nullptr;       // of 1 + max_nodes entries; more may be added
  ExitStates* exits = nullptr;           // filled by the drafter, or left empty
};

}  // namespace outrider
