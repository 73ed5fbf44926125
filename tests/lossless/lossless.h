// SPDX-License-Identifier: Apache-2.0
// What the quick and the slow losslessness suites share: prompts, engines, and the comparison token by token.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine_parts.h"
#include "outrider/engine.h"
#include "tests/support/toy_constraint.h"

namespace outrider {

// Directories of the default models.
std::string default_target();
std::string default_draft();
// A target of two layers with random weights, which fake drafters fit.
std::string small_target();

// `count` different prompts of mixed length and kind, the same on every machine.
std::vector<std::string> mixed_prompts(int count);

// One way to produce the same output.
struct Variant {
  // As in --speculative. The draft model is the default one unless speculative_model is one of the drafters
  // that default_head() names; speculative_models may name `draft` and `target`.
  std::string speculative = "none";
  int page_size = 16;
  int batch = 1;
  AcceptanceRule acceptance = AcceptanceRule::kCoupled;
  int prefill_chunk = 256;
  int preempt_every = 0;
  int threads = 0;                  // 0: one per core
  std::filesystem::path head = {};  // speculative_model instead
};
std::string describe(const Variant& variant);

struct Numerics {
  std::string kernels = "";
  WeightPrecision weights = WeightPrecision::kAuto;
  KvCacheType kv_cache_type = KvCacheType::kAuto;
};
std::string describe(const Numerics& numerics);

// The kernel tables of this machine times f32, bf16, 8 and 4 bit weights; with every table each type of the
// KV cache takes its turn.
std::vector<Numerics> all_numerics();

// The choices that a variant and its sampling are put together of. A variant's text is one of drafters(), and
// behind commas one each of the next three.
std::vector<std::string> drafters();  // all that draft, alone and combined
std::vector<std::string> shapes();
std::vector<std::string> stops();  // what ends a draft early
std::vector<std::string> children_choices();
std::vector<SamplingParams> warps();      // temperature aside
std::vector<SamplingParams> penalties();  // these alone

struct Workload {
  std::vector<std::string> prompts;
  int64_t max_tokens = 32;
  SamplingParams sampling = {};              // seeds are seed + index of the prompt
  ToyLanguage language = ToyLanguage::kAny;  // of seeds likewise
  int logprobs = -1;
  bool has_rules = false;  // TokenRules, made up out of the prompts
  bool ignore_eos = false;
  std::string target = default_target();
  std::vector<std::vector<TokenId>> token_prompts = {};  // behind `prompts`
};

// Prompts of tokens for the small target: the last two begin like the first, and find its pages; one is a
// single token.
Workload token_workload(double temperature, int64_t max_tokens = 40);

// What an engine for the variant is made of.
Result<std::unique_ptr<EngineParts>> open_variant(const Numerics& numerics, const Variant& variant,
                                                  const std::string& target);

// Preempts a request every so many steps, without need; 0: never. Fails the running test when it cannot be
// opened.
std::unique_ptr<Engine> open_engine(EngineOptions options, int preempt_every = 0);

// Output of every prompt. Fails the running test when the engine cannot be opened or a draft failed. The
// other takes an engine as it is.
std::vector<Completion> run_variant(const Numerics& numerics, const Variant& variant,
                                    const Workload& workload);
std::vector<Completion> run_engine(Engine& engine, const Workload& workload, const std::string& what);

// Fails the running test at the first differing token or log-probability.
void expect_same(const std::vector<Completion>& plain, const std::vector<Completion>& other,
                 const std::string& what);

}  // namespace outrider
