// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "kv/disk/page_run.h"
#include "kv/state_checkpoints.h"
#include "kv/state_store.h"

namespace outrider {

// A state as the only part of a run.
RunParts parts_of(const StateCheckpoints::Copy& copy);
// The state in such a part; nullopt: it is none of this store.
std::optional<StateCheckpoints::Copy> state_of(std::span<const std::byte> bytes, const StateStore& store);

}  // namespace outrider
