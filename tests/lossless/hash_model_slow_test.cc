// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <iostream>
#include <random>

#include "tests/lossless/hash_run.h"

namespace outrider {
namespace {

constexpr int kConfigurations = 20000;
constexpr uint32_t kFirstSeed = 1'000'000;
constexpr int64_t kTokensWithState = 1'000'000;

HashConfiguration random_configuration(std::mt19937& random) {
  HashConfiguration configuration;
  for (size_t factor = 0; factor < configuration.size(); ++factor)
    configuration[factor] = static_cast<int>(random() % static_cast<unsigned>(kHashLevels[factor]));
  return configuration;
}

TEST(HashModel, RandomConfigurationsGetWhatPlainDecodingGives) {
  std::mt19937 random(kFirstSeed);
  for (int i = 0; i < kConfigurations; ++i) {
    run_on_hash_model(random_configuration(random), kFirstSeed + static_cast<uint32_t>(i));
    if (HasFatalFailure()) return;
  }
  std::cout << kConfigurations << " configurations\n";
}

TEST(HashModel, AMillionTokensOfModelsWithAStateAreThoseOfPlainDecoding) {
  std::mt19937 random(2 * kFirstSeed);
  RunTotals totals;
  for (uint32_t seed = 2 * kFirstSeed; totals.committed < kTokensWithState; ++seed) {
    if (!model_has_state(seed)) continue;
    run_on_hash_model(random_configuration(random), seed, totals);
    if (HasFatalFailure()) return;
  }
  std::cout << totals.committed << " tokens, " << totals.drafted - totals.accepted << " rejected drafts\n";
}

}  // namespace
}  // namespace outrider
