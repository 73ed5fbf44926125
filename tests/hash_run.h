// SPDX-License-Identifier: Apache-2.0
// Whole runs of the engine on the hash model: requests with a drafter that must get, token by token, what a
// reference gives that shares no code with the engine's loop.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/engine_parts.h"
#include "hash_model.h"
#include "toy_constraint.h"

namespace outrider {

inline constexpr int kLetters = 20;
inline constexpr TokenId kEos = kLetters;
inline constexpr int kPadding = 3;  // rows of the output head without a token

struct Expected {
  std::vector<TokenId> tokens;
  std::string text;
  FinishReason reason = FinishReason::kLength;
  std::vector<TokenLogprobs> logprobs, prompt_logprobs;  // where asked for
};

// Plain decoding, one token at a time, over whole texts: no pages, no trees, no incremental state.
Expected plain_output(const HashModel& model, const Request& request, int64_t context);

// Knows the right continuations and errs at a given rate; grows chains or random trees, and misbehaves on
// demand.
class OracleDrafter final : public Drafter {
 public:
  OracleDrafter(double error_rate, bool branches, bool hostile, uint32_t seed)
      : error_rate_(error_rate), branches_(branches), hostile_(hostile), random_(seed) {}

  void know(const std::vector<TokenId>& prompt, const std::vector<TokenId>& output);
  const DrafterTraits& traits() const override { return traits_; }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;

 private:
  void grow(const DraftRequest& request, TokenTree& tree);

  DrafterTraits traits_{.name = "Oracle"};
  double error_rate_;
  bool branches_;
  bool hostile_;
  std::mt19937 random_;
  std::vector<std::vector<TokenId>> continuations_;
};

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
  int64_t context = 100;
  AcceptanceRule acceptance = AcceptanceRule::kCoupled;
  SpeculativeOptions speculation = user_provided();
};
std::unique_ptr<EngineParts> hash_parts(const EngineSetup& setup, std::shared_ptr<Drafter> drafter);

// What a run is made of; each factor is the number of one of its levels.
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

// A drafter whose trees are changed, so that they are no longer what it computed.
std::shared_ptr<Drafter> meddled(std::shared_ptr<Drafter> drafter, uint32_t seed);

struct RunTotals {
  int64_t steps = 0;
  int64_t committed = 0;
  int64_t drafted = 0;
  int64_t accepted = 0;
};

EngineSetup setup_of(const HashConfiguration& configuration);

// Fails, as a test does, where anything differs from plain decoding. `seed` decides the requests. The last
// takes its own setup and drafter instead of those of the configuration.
void run_on_hash_model(const HashConfiguration& configuration, uint32_t seed);
void run_on_hash_model(const HashConfiguration& configuration, uint32_t seed, RunTotals& totals);
void run_on_hash_model(const HashConfiguration& configuration, uint32_t seed, const EngineSetup& setup,
                       const std::shared_ptr<Drafter>& drafter, RunTotals& totals);

}  // namespace outrider
