// SPDX-License-Identifier: Apache-2.0
// What a run on the hash model is made of, for covering arrays and random choice.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "outrider/drafter.h"
#include "outrider/engine.h"
#include "toy_constraint.h"

namespace outrider {

inline constexpr int64_t kContext = 100;

inline SpeculativeOptions user_provided() {
  SpeculativeOptions options;
  options.decoding_type = "UserProvided";
  return options;
}

struct EngineSetup {
  int page_size = 16;
  int64_t kv_pages = 0;  // 0: plenty
  int max_batch = 4;
  int prefill_chunk = 16;
  int max_batch_rows = 0;
  int preempt_every = 0;
  int max_preemptions = 8;
  int64_t context = kContext;
  AcceptanceRule acceptance = AcceptanceRule::kCoupled;
  SpeculativeOptions speculation = user_provided();
};

// Each factor is the number of one of its levels.
enum HashFactor {
  kDrafterFactor,
  kErrorFactor,
  kTreeFactor,
  kPageFactor,
  kBatchFactor,
  kPagesFactor,
  kFeatureFactor,
  kTemperatureFactor,
  kPromptFactor,
  kChunkFactor,
  kRuleFactor,
  kLanguageFactor,
  kHashFactors,
};
using HashConfiguration = std::array<int, kHashFactors>;
inline constexpr HashConfiguration kHashLevels = {12, 5, 9, 7, 6, 3, 6, 3, 3, 4, 4, 5};

std::string describe(const HashConfiguration& configuration, uint32_t seed);

EngineSetup setup_of(const HashConfiguration& configuration);
std::shared_ptr<Drafter> drafter_of(const HashConfiguration& configuration, const SpeculativeOptions& options,
                                    uint32_t seed);
int requests_in(const HashConfiguration& configuration);
bool arrive_late(const HashConfiguration& configuration);  // while others run
Request request_of(const HashConfiguration& configuration, std::mt19937& random);

}  // namespace outrider
