// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <iostream>
#include <random>

#include "tests/lossless/hash_run.h"

namespace outrider {
namespace {

constexpr int kConfigurations = 20000;
constexpr uint32_t kFirstSeed = 1'000'000;

TEST(HashModel, RandomConfigurationsGetWhatPlainDecodingGives) {
  std::mt19937 random(kFirstSeed);
  for (int i = 0; i < kConfigurations; ++i) {
    HashConfiguration configuration;
    for (size_t factor = 0; factor < configuration.size(); ++factor)
      configuration[factor] = static_cast<int>(random() % static_cast<unsigned>(kHashLevels[factor]));
    run_on_hash_model(configuration, kFirstSeed + static_cast<uint32_t>(i));
    if (HasFatalFailure()) return;
  }
  std::cout << kConfigurations << " configurations\n";
}

}  // namespace
}  // namespace outrider
