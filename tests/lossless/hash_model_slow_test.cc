// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include "config/environment.h"
#include "tests/lossless/hash_run.h"

namespace outrider {
namespace {

constexpr int kConfigurations = 20000;
constexpr uint32_t kFirstSeed = 1'000'000;

// The value of an environment variable, or `usual`.
int64_t number_of(const std::string& variable, int64_t usual) {
  const auto variables = read_environment();
  const auto given = variables.find(variable);
  return given == variables.end() ? usual : std::atoll(given->second.c_str());
}

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

// OUTRIDER_HASH_TOKENS tokens (a million) with seeds from OUTRIDER_HASH_SEED on, so that runs add up.
void expect_plain_tokens(bool only_with_state) {
  const auto first = static_cast<uint32_t>(number_of("OUTRIDER_HASH_SEED", 2 * kFirstSeed));
  const int64_t tokens = number_of("OUTRIDER_HASH_TOKENS", 1'000'000);
  std::mt19937 random(first);
  RunTotals totals;
  uint32_t seed = first;
  for (; totals.committed < tokens; ++seed) {
    if (only_with_state && !model_has_state(seed)) continue;
    run_on_hash_model(random_configuration(random), seed, totals);
    if (testing::Test::HasFatalFailure()) return;
  }
  std::cout << totals.committed << " tokens, " << totals.drafted - totals.accepted
            << " rejected drafts, seeds " << first << " to " << seed - 1 << "\n";
}

TEST(HashModel, AMillionTokensAreThePlainOnes) { expect_plain_tokens(/*only_with_state=*/false); }

TEST(HashModel, AMillionTokensOfModelsWithAStateAreThePlainOnes) {
  expect_plain_tokens(/*only_with_state=*/true);
}

}  // namespace
}  // namespace outrider
