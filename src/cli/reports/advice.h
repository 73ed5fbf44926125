// SPDX-License-Identifier: Apache-2.0
// A benchmark ends with advice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/reports/bench_report.h"
#include "cli/reports/comparison_data.h"

namespace outrider {

struct Advice {
  std::string use;      // "suffix+ngram+eagle3, chosen by the model's files"
  std::string gain;     // "1.78 times plain speed (1.60 to 1.95 over prompts), the same text"
  std::string command;  // for a shell
};

// nullopt: no figure that a person can repeat was measured, as with synthetic drafts, or texts differ.
std::optional<Advice> advice_of(const BenchSetup& setup, const std::vector<PromptMeasurement>& prompts);
// The fastest drafter of greedy decoding with equal texts, or plain decoding. nullopt: no drafter was
// measured.
std::optional<Advice> advice_of(const Comparison& comparison);

// Three lines "key    value"; empty: no advice.
std::string advice_text(const std::optional<Advice>& advice);

}  // namespace outrider
