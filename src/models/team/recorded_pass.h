// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/model.h"
#include "models/team/messages.h"

namespace outrider {

// A pass as bytes. Weights, entries of the cache and logits are named and not contained: weights are those of
// the model that runs it, entries are slots, and logits are rows of the batch.
std::vector<std::byte> record_pass(const PassOrder& order);

// Repeats the moves in the cache that came before the pass, then runs it. Passes that are run in the order in
// which they were recorded, from an empty cache of the same shape on, give the same bits on every model of
// the same weights and kernel table. Precondition: no layer is recurrent, because states are no entries. The
// result is valid until the model's next pass; states are those of a subset alone.
SubsetOutput run_recorded(std::span<const std::byte> pass, Model& model, KvCache& cache);

}  // namespace outrider
