// SPDX-License-Identifier: Apache-2.0
#include "lossless.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "kernels/kernel_table.h"

namespace outrider {

std::string default_target() { return OUTRIDER_SOURCE_DIR "/models/outrider-small"; }
std::string default_draft() { return OUTRIDER_SOURCE_DIR "/models/outrider-draft"; }

std::vector<std::string> mixed_prompts(int count) {
  constexpr std::array kNames = {"Lily", "Tom", "Anna", "Ben", "Mia", "Sam", "Sue", "Max", "Tim", "Amy"};
  constexpr std::array kThings = {"a red ball",  "an old box", "a small dog", "a big tree", "a blue hat",
                                  "a long road", "a lost key", "a kind bird", "a new book", "a green hill"};
  constexpr std::array kVerbs = {"add",  "remove", "count", "find", "sort",
                                 "join", "split",  "print", "copy", "merge"};
  std::vector<std::string> prompts;
  for (int i = 0; static_cast<int>(prompts.size()) < count; ++i) {
    const std::string name = kNames[static_cast<size_t>(i * 7 % 10)];
    const std::string thing = kThings[static_cast<size_t>((i * 3 + i / 10) % 10)];
    const std::string verb = kVerbs[static_cast<size_t>((i + i / 7) % 10)];
    const std::string number = std::to_string(3 + i * 11 % 97);
    switch (i % 6) {
      case 0:
        prompts.push_back("Once upon a time, " + name + " found " + thing + ". " + name +
                          " wanted to show it to a friend.");
        break;
      case 1:
        prompts.push_back("def " + verb + "_items(items, n=" + number + "):\n    \"\"\"");
        break;
      case 2:
        prompts.push_back(name + " has " + number + " apples and buys " + std::to_string(i % 9 + 2) +
                          " more. How many apples does " + name + " have?");
        break;
      case 3:
        prompts.push_back("The " + thing.substr(thing.find(' ') + 1));
        break;
      case 4: {
        // Repetition: what n-gram drafting lives on; long enough for several pages and chunks.
        std::string text;
        for (int line = 0; line < 4 + i % 13; ++line)
          text += name + " and " + thing + " went home, line " + number + ".\n";
        prompts.push_back(text);
        break;
      }
      default:
        prompts.push_back(name.substr(0, 1 + static_cast<size_t>(i) % name.size()));
    }
  }
  return prompts;
}

std::string describe(const Variant& variant) {
  const std::string shape = variant.tree == TreeKind::kChain    ? ""
                            : variant.tree == TreeKind::kStatic ? " static tree"
                                                                : " dynamic tree";
  const std::string part = variant.exit_layer > 0 ? " exit " + std::to_string(variant.exit_layer) : "";
  const bool skips = !variant.skip_attention_layers.empty() || !variant.skip_mlp_layers.empty();
  return variant.drafter + shape + part + (skips ? " with skips" : "") + " length " +
         std::to_string(variant.draft_len) + " page " + std::to_string(variant.page_size) + " batch " +
         std::to_string(variant.batch) + " chunk " + std::to_string(variant.prefill_chunk) +
         (variant.acceptance == AcceptanceRule::kCoupled ? " coupled" : " rejection");
}

std::string describe(const Numerics& numerics) {
  static const std::map<WeightPrecision, std::string> kNames = {
      {WeightPrecision::kAuto, "auto"}, {WeightPrecision::kF32, "f32"}, {WeightPrecision::kBF16, "bf16"},
      {WeightPrecision::kQ8_0, "q8_0"}, {WeightPrecision::kQ8, "q8"},   {WeightPrecision::kQ4, "q4"}};
  static const std::map<KvCacheType, std::string> kKvNames = {{KvCacheType::kAuto, "auto"},
                                                              {KvCacheType::kF32, "f32"},
                                                              {KvCacheType::kBF16, "bf16"},
                                                              {KvCacheType::kF16, "f16"},
                                                              {KvCacheType::kQ8_0, "q8_0"}};
  return numerics.kernels + " " + kNames.at(numerics.weights) + " kv " + kKvNames.at(numerics.kv_cache_type);
}

std::vector<Variant> early_exit_variants() {
  const Variant chain{.drafter = "EarlyExit"};
  std::vector<Variant> all(7, chain);
  all[0].exit_layer = 2;
  all[0].batch = 8;
  all[1].exit_layer = 5;
  all[1].draft_len = 7;
  all[1].least_probability = 0.01;
  all[1].page_size = 1;
  all[2].exit_layer = 1;
  all[2].tree = TreeKind::kStatic;
  all[2].batch = 8;
  all[2].page_size = 64;
  all[3].exit_layer = 3;
  all[3].tree = TreeKind::kDynamic;
  all[3].batch = 8;
  all[3].prefill_chunk = 7;
  all[4].skip_attention_layers = {1, 3};
  all[4].skip_mlp_layers = {4};
  all[4].batch = 8;
  all[4].page_size = 1;
  all[5].skip_attention_layers = {5};
  all[5].tree = TreeKind::kDynamic;
  all[6].exit_layer = 4;
  all[6].tree = TreeKind::kStatic;
  all[6].draft_len = 3;
  all[6].page_size = 1;
  return all;
}

// Every weight type with the default cache, every other cache with the default models' own weights.
std::vector<Numerics> all_numerics() {
  std::vector<Numerics> all;
  for (const std::string_view name : available_kernels()) {
    const std::string kernels(name);
    for (const WeightPrecision weights :
         {WeightPrecision::kF32, WeightPrecision::kBF16, WeightPrecision::kQ8_0, WeightPrecision::kQ8,
          WeightPrecision::kQ4}) {
      all.push_back({kernels, weights, KvCacheType::kBF16});
    }
    for (const KvCacheType type : {KvCacheType::kF32, KvCacheType::kF16, KvCacheType::kQ8_0}) {
      all.push_back({kernels, WeightPrecision::kBF16, type});
    }
  }
  return all;
}

std::vector<Completion> run_variant(const Numerics& numerics, const Variant& variant,
                                    const Workload& workload) {
  EngineOptions options;
  options.model = default_target();
  options.kernels = numerics.kernels;
  options.weights = numerics.weights;
  options.kv_cache_type = numerics.kv_cache_type;
  options.page_size = variant.page_size;
  options.max_batch = variant.batch;
  options.prefill_chunk = variant.prefill_chunk;
  options.acceptance = variant.acceptance;
  options.speculation.decoding_type = variant.drafter;
  options.speculation.max_draft_len = variant.draft_len;
  options.speculation.tree = variant.tree;
  options.speculation.expansion.assign(static_cast<size_t>(variant.draft_len), 1);
  std::fill_n(options.speculation.expansion.begin(), std::min(2, variant.draft_len), 2);
  options.speculation.assistant_confidence_threshold = variant.least_probability;
  options.speculation.exit_layer = variant.exit_layer;
  options.speculation.skip_attention_layers = variant.skip_attention_layers;
  options.speculation.skip_mlp_layers = variant.skip_mlp_layers;
  if (variant.drafter == "DraftTarget") options.speculation.speculative_model = default_draft();
  auto engine = Engine::open(options);
  if (!engine.ok()) {
    ADD_FAILURE() << engine.error().message;
    return {};
  }
  std::vector<Completion> completions(workload.prompts.size());
  std::map<RequestId, size_t> places;
  for (size_t i = 0; i < workload.prompts.size(); ++i) {
    Request request;
    request.prompt = (*engine)->tokenize(workload.prompts[i]);
    request.max_tokens = workload.max_tokens;
    request.sampling = workload.sampling;
    request.sampling.seed += i;
    const auto id = (*engine)->submit(request, [&](RequestId from, const Progress& progress) {
      if (progress.completion != nullptr) completions[places.at(from)] = *progress.completion;
    });
    if (!id.ok()) {
      ADD_FAILURE() << id.error().message;
      return {};
    }
    places[*id] = i;
  }
  while ((*engine)->step()) {
  }
  return completions;
}

void expect_same(const std::vector<Completion>& plain, const std::vector<Completion>& other,
                 const std::string& what) {
  ASSERT_EQ(plain.size(), other.size()) << what;
  for (size_t i = 0; i < plain.size(); ++i) {
    const auto [a, b] = std::mismatch(plain[i].tokens.begin(), plain[i].tokens.end(), other[i].tokens.begin(),
                                      other[i].tokens.end());
    ASSERT_TRUE(a == plain[i].tokens.end() && b == other[i].tokens.end())
        << what << ": prompt " << i << " differs at output token " << a - plain[i].tokens.begin();
    ASSERT_EQ(plain[i].text, other[i].text) << what;
    ASSERT_EQ(plain[i].finish_reason, other[i].finish_reason) << what;
  }
}

}  // namespace outrider
