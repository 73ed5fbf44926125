// SPDX-License-Identifier: Apache-2.0
// Time to make the distribution of one token from the logits of a large vocabulary, on one thread.
#include <cmath>
#include <string>
#include <vector>

#include "base/counter_rng.h"
#include "micro.h"
#include "sampling/logits_processor.h"

namespace outrider {
namespace {

constexpr int kVocabulary = 152064;

// Normally distributed logits, like the logits of most tokens; `lifted` tokens exceed them by up to 16, as
// with a confident model.
std::vector<float> bell_logits(float width, int lifted) {
  std::vector<float> logits(kVocabulary);
  for (size_t i = 0; i < logits.size(); ++i) {
    const double a = (static_cast<double>(mix64(2 * i) >> 11) + 1) * 0x1p-53;
    const double b = static_cast<double>(mix64(2 * i + 1) >> 11) * 0x1p-53;
    logits[i] = width * static_cast<float>(std::sqrt(-2 * std::log(a)) * std::cos(6.283185307179586 * b));
  }
  for (int i = 0; i < lifted; ++i) {
    logits[mix64(static_cast<uint64_t>(i)) % kVocabulary] += 16 * static_cast<float>(lifted - i) / lifted;
  }
  return logits;
}

struct Cut {
  std::string name;
  SamplingParams params;
};

std::vector<Cut> cuts() {
  std::vector<Cut> all;
  const auto add = [&](const char* name, auto set) {
    SamplingParams params;
    params.temperature = 0.8;
    set(params);
    all.push_back({name, params});
  };
  add("top_p_0.9", [](SamplingParams& p) { p.top_p = 0.9; });
  add("top_p_0.9_penalty", [](SamplingParams& p) { p.top_p = 0.9, p.repetition_penalty = 1.1; });
  add("min_p_0.05", [](SamplingParams& p) { p.min_p = 0.05; });
  add("top_k_50_top_p_0.9", [](SamplingParams& p) { p.top_k = 50, p.top_p = 0.9; });
  return all;
}

void time_distribution(benchmark::State& state, const std::vector<float>& logits,
                       const SamplingParams& params) {
  LogitsProcessor processor;
  TokenHistory history;
  for (TokenId token = 0; token < 200; ++token) history.push(token * 700);
  for ([[maybe_unused]] auto iteration : state) {
    benchmark::DoNotOptimize(processor.build(logits, params, history).tokens.data());
  }
  state.counters["tokens kept"] = static_cast<double>(processor.build(logits, params, history).tokens.size());
}

void register_sampling() {
  for (const auto& [shape, width, lifted] : {std::tuple("peaked", 2.5F, 100), std::tuple("flat", 1.0F, 0)}) {
    for (const Cut& cut : cuts()) {
      benchmark::RegisterBenchmark(("distribution/" + std::string(shape) + "/" + cut.name).c_str(),
                                   [logits = bell_logits(width, lifted), params = cut.params](
                                       benchmark::State& state) { time_distribution(state, logits, params); })
          ->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) { return outrider::run_micro(argc, argv, outrider::register_sampling); }
