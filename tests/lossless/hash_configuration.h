// SPDX-License-Identifier: Apache-2.0
// Configurations of runs on the hash model, for covering arrays and random choice.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "outrider/drafter.h"
#include "outrider/engine.h"
#include "speculation/policy/pass_costs.h"
#include "tests/lossless/hash_drafters.h"
#include "tests/support/toy_constraint.h"

namespace outrider {

inline constexpr int64_t kContext = 100;

inline SpeculativeOptions user_provided() {
  SpeculativeOptions options;
  options.decoding_type = Method::kUserProvided;
  return options;
}

struct EngineSetup {
  int page_size = 16;
  int64_t kv_pages = 0;  // 0: twice as many as all sequences need
  int max_batch = 4;
  int prefill_chunk = 16;
  int max_batch_rows = 0;
  int preempt_every = 0;
  int max_preemptions = 8;
  int64_t context = kContext;
  bool slides = false;      // texts go on where they fill the context
  bool has_state = false;   // target and draft models keep a state beside keys and values
  int64_t checkpoints = 0;  // of states of the target
  AcceptanceRule acceptance = AcceptanceRule::kCoupled;
  SpeculativeOptions speculation = user_provided();
  PassCosts costs = {};  // for policy auto
};

enum class DrafterKind {
  kNone,
  kOracleChain,
  kOracleTree,
  kHostileOracle,
  kHash,
  kMergedHash,
  kMeddled,  // EarlyExit
  kNGram,
  kSuffix,
  kLookahead,
  kEarlyExit,
  kCombined,
  kDraftTarget,
  kMixedDrafts,  // two draft models and NGram
  kCorpus,       // Suffix with texts of others
  kCount,
};

// The value of a factor is the number of one of its levels.
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
  kPolicyFactor,
  kPredictionFactor,
  kHashFactors,
};
using HashConfiguration = std::array<int, kHashFactors>;
inline constexpr HashConfiguration kHashLevels = {
    static_cast<int>(DrafterKind::kCount), 5, 9, 7, 6, 3, 6, 3, 3, 4, 5, 5, 4, 6};

std::string describe(const HashConfiguration& configuration, uint32_t seed);

EngineSetup setup_of(const HashConfiguration& configuration);
DrafterContext context_of(const EngineSetup& setup);
// comparison: counts compared trees of its draft models; must outlive the drafter.
std::shared_ptr<Drafter> drafter_of(const HashConfiguration& configuration, const EngineSetup& setup,
                                    uint32_t seed, DraftComparison& comparison);
// The text that a request expects in place of `answer`; empty: it expects none.
std::vector<TokenId> prediction_of(const HashConfiguration& configuration, std::span<const TokenId> answer,
                                   uint32_t seed);
int requests_in(const HashConfiguration& configuration);
bool arrive_late(const HashConfiguration& configuration);  // requests arrive while others run
Request request_of(const HashConfiguration& configuration, std::mt19937& random);

}  // namespace outrider
