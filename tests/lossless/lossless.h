// SPDX-License-Identifier: Apache-2.0
// Prompts, engines and the comparison token by token for the quick and the slow losslessness suites.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine_parts.h"
#include "outrider/engine.h"
#include "tests/support/toy_constraint.h"

namespace outrider {

// Directories of the built-in models.
std::string default_target();
std::string default_draft();
// A target of two layers with random weights, which fake drafters fit.
std::string small_target();

// `count` different prompts of mixed length and kind, the same on every machine.
std::vector<std::string> mixed_prompts(int count);

// One of the ways to produce the same output.
struct Variant {
  // As in --speculative, but with policy fixed unless it names one. The draft model is the default one unless
  // speculative_model is one of the drafters that default_head() names; speculative_models may name `draft`
  // and `target`.
  std::string speculative = "none";
  int page_size = 16;
  int batch = 1;
  AcceptanceRule acceptance = AcceptanceRule::kCoupled;
  int prefill_chunk = 256;
  int preempt_every = 0;
  int threads = 0;                  // 0: one per core
  std::filesystem::path head = {};  // replaces speculative_model
  std::filesystem::path prompt_cache = {};
  int64_t context = 0;                // 0: what the model was made for
  std::filesystem::path corpus = {};  // a text or a folder of texts; empty: none
};
std::string describe(const Variant& variant);

struct Numerics {
  std::string kernels = "";
  WeightPrecision weights = WeightPrecision::kAuto;
  KvCacheType kv_cache_type = KvCacheType::kAuto;
  ComputeDevice device = ComputeDevice::kCpu;
  std::optional<int> gpu_layers = {};
  std::optional<int> cpu_experts = {};
};
std::string describe(const Numerics& numerics);

// Every kernel table of this machine with f32, bf16, 8 and 4 bit weights, and with each type of the KV cache.
std::vector<Numerics> all_numerics();
// An emulated device with several types; empty: no table of this machine has the arithmetic of devices.
std::vector<Numerics> emulated_numerics();

// The parts of a variant and of its sampling. The text of a variant is one of drafters(), followed by a comma
// and one of shapes(), of stops() and of children_choices().
std::vector<std::string> drafters();  // all drafters, single and combined
std::vector<std::string> shapes();
std::vector<std::string> stops();  // thresholds that end a draft early
std::vector<std::string> children_choices();
std::vector<SamplingParams> warps();  // truncations, without temperature
// `sampling` with the cuts of `warp`.
SamplingParams warped(SamplingParams sampling, const SamplingParams& warp);
std::vector<SamplingParams> penalties();       // penalties and nothing else
std::vector<SamplingParams> rare_samplings();  // the cuts and the penalty that few requests have

struct Workload {
  std::vector<std::string> prompts;
  int64_t max_tokens = 32;
  SamplingParams sampling = {};              // the seed of a prompt is this seed + its index
  ToyLanguage language = ToyLanguage::kAny;  // seeded in that way, too
  int logprobs = -1;
  bool has_rules = false;  // requests have TokenRules made of their prompts
  bool ignore_eos = false;
  int64_t slide = -1;
  std::string target = default_target();
  std::vector<std::vector<TokenId>> token_prompts = {};  // come after `prompts`
  std::vector<std::vector<TokenId>> predictions = {};    // by prompt; empty: none
  LogitsFunction logits_function = {};
};

// Token prompts for the small target. The last two begin like the first and find its pages; one is a single
// token.
Workload token_workload(double temperature, int64_t max_tokens = 40);

// The options with everything that the files they name decide.
Result<SpeculativeOptions> resolved_by_files(const SpeculativeOptions& options);

// The parts of an engine for the variant.
Result<std::unique_ptr<EngineParts>> open_variant(const Numerics& numerics, const Variant& variant,
                                                  const std::string& target);

// Opens an engine that preempts a request without need every `preempt_every` steps; 0: never. Fails the
// running test if it cannot be opened.
std::unique_ptr<Engine> open_engine(EngineOptions options, int preempt_every = 0);

// The output of every prompt. Fails the running test if the engine cannot be opened or a draft fails.
// run_engine() takes an engine that is open.
std::vector<Completion> run_variant(const Numerics& numerics, const Variant& variant,
                                    const Workload& workload);
std::vector<Completion> run_engine(Engine& engine, const Workload& workload, const std::string& what);

// Fails the running test at the first differing token or log-probability.
void expect_same(const std::vector<Completion>& plain, const std::vector<Completion>& other,
                 const std::string& what);

}  // namespace outrider
