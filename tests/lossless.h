// SPDX-License-Identifier: Apache-2.0
// What the quick and the slow losslessness suites share: prompts, engines, and the comparison token by token.
#pragma once

#include <string>
#include <vector>

#include "outrider/engine.h"

namespace outrider {

// Directories of the default models.
std::string default_target();
std::string default_draft();

// `count` different prompts of mixed length and kind, the same on every machine.
std::vector<std::string> mixed_prompts(int count);

// One way to produce the same output.
struct Variant {
  std::string drafter = "None";
  int draft_len = 4;
  int page_size = 16;
  int batch = 1;
  AcceptanceRule acceptance = AcceptanceRule::kCoupled;
  int prefill_chunk = 256;
  TreeKind tree = TreeKind::kChain;  // static: two children per node, one below the second level
  double least_probability = 0.0;    // assistant_confidence_threshold
  int exit_layer = 0;
  std::vector<int> skip_attention_layers = {};
  std::vector<int> skip_mlp_layers = {};
};
std::string describe(const Variant& variant);

struct Numerics {
  std::string kernels;
  WeightPrecision weights = WeightPrecision::kAuto;
  KvCacheType kv_cache_type = KvCacheType::kAuto;
};
std::string describe(const Numerics& numerics);

// The kernel tables of this machine times f32, bf16, 8 and 4 bit weights; with every table each type of the
// KV cache takes its turn.
std::vector<Numerics> all_numerics();

// Both ways of EarlyExit with trees of every shape.
std::vector<Variant> early_exit_variants();

struct Workload {
  std::vector<std::string> prompts;
  int64_t max_tokens = 32;
  SamplingParams sampling = {};  // seeds are seed + index of the prompt
};

// Output of every prompt. Fails the running test when the engine cannot be opened.
std::vector<Completion> run_variant(const Numerics& numerics, const Variant& variant,
                                    const Workload& workload);

// Fails the running test at the first differing token.
void expect_same(const std::vector<Completion>& plain, const std::vector<Completion>& other,
                 const std::string& what);

}  // namespace outrider
