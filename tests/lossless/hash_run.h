// SPDX-License-Identifier: Apache-2.0
// Whole runs of the engine on the hash model. Requests must get, token by token, the output of a reference
// that shares no code with the engine's loop.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/engine_parts.h"
#include "tests/lossless/hash_configuration.h"
#include "tests/lossless/hash_drafters.h"
#include "tests/lossless/hash_model.h"
#include "tests/lossless/plain_reference.h"

namespace outrider {

std::unique_ptr<EngineParts> hash_parts(const EngineSetup& setup, std::shared_ptr<Drafter> drafter);

struct RunTotals {
  int64_t steps = 0;
  int64_t committed = 0;
  int64_t drafted = 0;
  int64_t accepted = 0;
  int64_t slid = 0;  // requests with texts that filled the context and went on
  DraftComparison drafts;
};

// Whether the models of this seed's runs keep a state beside keys and values.
bool model_has_state(uint32_t seed);

// Fails the running test where anything differs from plain decoding. `seed` decides the requests. The last
// form takes setup and drafter as arguments instead of the configuration's.
void run_on_hash_model(const HashConfiguration& configuration, uint32_t seed);
void run_on_hash_model(const HashConfiguration& configuration, uint32_t seed, RunTotals& totals);
// In a short context, where texts slide.
void run_sliding_texts(const HashConfiguration& configuration, uint32_t seed, RunTotals& totals);
void run_on_hash_model(const HashConfiguration& configuration, uint32_t seed, const EngineSetup& setup,
                       const std::shared_ptr<Drafter>& drafter, RunTotals& totals);

}  // namespace outrider
