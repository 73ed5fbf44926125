// SPDX-License-Identifier: Apache-2.0
#include "tests/lossless/lossless.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>

#include "config/speculative_config.h"
#include "kernels/kernel_table.h"
#include "models/backend/device/make_backends.h"
#include "open/parts.h"
#include "open/resolved.h"
#include "tests/lossless/test_heads.h"

namespace outrider {

std::string default_target() { return OUTRIDER_SOURCE_DIR "/models/outrider-small"; }
std::string default_draft() { return OUTRIDER_SOURCE_DIR "/models/outrider-draft"; }
std::string small_target() { return OUTRIDER_SOURCE_DIR "/tests/data/models/llama"; }

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
        // Repetition gives n-gram drafters matches; the text is long enough for several pages and chunks.
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
  return variant.speculative + " page " + std::to_string(variant.page_size) + " batch " +
         std::to_string(variant.batch) + " chunk " + std::to_string(variant.prefill_chunk) +
         (variant.acceptance == AcceptanceRule::kCoupled ? " coupled" : " rejection") +
         (variant.preempt_every == 0 ? "" : " preempts every " + std::to_string(variant.preempt_every));
}

std::string describe(const Numerics& numerics) {
  static const std::map<WeightPrecision, std::string> kNames = {
      {WeightPrecision::kAuto, "auto"}, {WeightPrecision::kF32, "f32"},   {WeightPrecision::kBF16, "bf16"},
      {WeightPrecision::kF8, "f8"},     {WeightPrecision::kQ8_0, "q8_0"}, {WeightPrecision::kQ8, "q8"},
      {WeightPrecision::kQ4, "q4"}};
  static const std::map<KvCacheType, std::string> kKvNames = {
      {KvCacheType::kAuto, "auto"}, {KvCacheType::kF32, "f32"},   {KvCacheType::kBF16, "bf16"},
      {KvCacheType::kF16, "f16"},   {KvCacheType::kE4M3, "e4m3"}, {KvCacheType::kQ8_0, "q8_0"}};
  const std::string where = numerics.device == ComputeDevice::kEmulated ? "emulated" : numerics.kernels;
  return where + " " + kNames.at(numerics.weights) + " kv " + kKvNames.at(numerics.kv_cache_type);
}

std::vector<std::string> drafters() {
  return {"ngram",
          "suffix",
          "lookahead",
          "draft_target",
          "spec_infer,speculative_models=[draft]",
          "spec_infer,speculative_models=[draft,target,draft]",
          "early_exit,exit_layer=2",
          "early_exit,skip_attention_layers=[1,3],skip_mlp_layers=[4]",
          "combine=[ngram,draft_target]",
          "combine=[suffix,draft_target,lookahead]",
          "combine=[ngram,early_exit]",
          "auto",
          "eagle3,speculative_model=eagle3",
          "mtp,speculative_model=mtp",
          "mtp,speculative_model=mtp_chained",
          "medusa,speculative_model=medusa",
          "moa,speculative_model=moa",
          "moa,speculative_model=moa_tli_2",
          "moa,speculative_model=moa_tli_3",
          "dflash,speculative_model=dflash",
          "dflash,speculative_model=dflash2",
          "dspark,speculative_model=dspark",
          "combine=[suffix,mtp],speculative_model=mtp",
          "combine=[early_exit,moa],speculative_model=moa_tli_3",
          "moa,speculative_model=moa_half_of_the_tokens"};
}

std::vector<std::string> shapes() {
  return {"max_draft_len=4",
          "expansion=[2,2]",
          "expansion=[4,2,1]",
          "expansion=[1,1,3,1,1,1,1,1]",
          "max_draft_len=4,dynamic_tree_max_topK=2,max_total_draft_tokens=8",
          "max_draft_len=6,dynamic_tree_max_topK=3,max_total_draft_tokens=24",
          "max_draft_len=8,dynamic_tree_max_topK=8,max_total_draft_tokens=64"};
}

std::vector<std::string> stops() {
  return {"policy=fixed", "policy=auto", "draft_len_schedule=heuristic", "assistant_confidence_threshold=0.4",
          "entropy_threshold=0.4"};
}

std::vector<std::string> children_choices() {
  return {"children=sampled", "children=top", "children=independent"};
}

std::vector<SamplingParams> warps() {
  std::vector<SamplingParams> all(4);
  all[1].top_k = 20;
  all[2].top_p = 0.9;
  all[3].min_p = 0.05;
  return all;
}

SamplingParams warped(SamplingParams sampling, const SamplingParams& warp) {
  sampling.top_n_sigma = warp.top_n_sigma;
  sampling.top_k = warp.top_k;
  sampling.typical_p = warp.typical_p;
  sampling.top_p = warp.top_p;
  sampling.min_p = warp.min_p;
  sampling.xtc_probability = warp.xtc_probability;
  return sampling;
}

std::vector<SamplingParams> penalties() {
  std::vector<SamplingParams> all(3);
  all[1].repetition_penalty = 1.2;
  all[2].presence_penalty = 0.3;
  all[2].frequency_penalty = 0.2;
  return all;
}

std::vector<SamplingParams> rare_samplings() {
  std::vector<SamplingParams> all(4);
  all[0].top_n_sigma = 1.0;
  all[1].typical_p = 0.9;
  all[2].xtc_probability = 0.5;
  all[3].dry.multiplier = 0.8;
  return all;
}

// Every weight type comes with the default cache type, every other cache type with the weights as stored.
std::vector<Numerics> all_numerics() {
  std::vector<Numerics> all;
  for (const std::string_view name : available_kernels()) {
    const std::string kernels(name);
    for (const WeightPrecision weights :
         {WeightPrecision::kF32, WeightPrecision::kBF16, WeightPrecision::kF8, WeightPrecision::kQ8_0,
          WeightPrecision::kQ8, WeightPrecision::kQ4}) {
      // Products of other types come from avx512 and i8mm.
      if ((kernels == "avx512_bf16" || kernels == "bf16") && weights != WeightPrecision::kBF16) continue;
      all.push_back({kernels, weights, KvCacheType::kBF16});
    }
    for (const KvCacheType type :
         {KvCacheType::kF32, KvCacheType::kF16, KvCacheType::kE4M3, KvCacheType::kQ8_0}) {
      all.push_back({kernels, WeightPrecision::kBF16, type});
    }
  }
  return all;
}

std::vector<Numerics> emulated_numerics() {
  if (!select_device_kernels().ok()) return {};
  std::vector<Numerics> all;
  for (const WeightPrecision weights :
       {WeightPrecision::kF8, WeightPrecision::kQ4, WeightPrecision::kQ8_0, WeightPrecision::kQ8})
    all.push_back({.weights = weights, .device = ComputeDevice::kEmulated});
  all.push_back({.weights = WeightPrecision::kBF16,
                 .kv_cache_type = KvCacheType::kQ8_0,
                 .device = ComputeDevice::kEmulated});
  return all;
}

namespace {

// The folder in which the engines of this program keep measured costs; measuring them for each engine would
// take long.
const std::filesystem::path& cost_directory() {
  static const struct Directory {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("outrider_lossless_" + std::to_string(getpid()));
    ~Directory() { std::filesystem::remove_all(path); }
  } kDirectory;
  return kDirectory.path;
}

Result<SpeculativeOptions> parsed(const Variant& variant) {
  const bool names_policy =
      variant.speculative.starts_with("auto") || variant.speculative.find("policy=") != std::string::npos;
  OUTRIDER_TRY(const SpeculativeConfig config,
               parse_speculative(variant.speculative + (names_policy ? "" : ",policy=fixed")));
  SpeculativeOptions options = config.options;
  const std::filesystem::path head =
      variant.head.empty() ? default_head(options.speculative_model.string()) : variant.head;
  options.speculative_model = head.empty() ? std::filesystem::path(default_draft()) : head;
  for (auto& model : options.speculative_models)
    model = model == "target" ? default_target() : default_draft();
  return options;
}

// -1 for random models of a known shape: their texts have no end.
TokenId end_of_text(const Engine& engine) {
  const auto& stop_tokens = engine.parts().target->config().stop_tokens;
  return stop_tokens.empty() ? -1 : stop_tokens.front();
}

}  // namespace

Workload token_workload(double temperature, int64_t max_tokens) {
  Workload workload{.prompts = {}, .max_tokens = max_tokens, .ignore_eos = true, .target = small_target()};
  workload.sampling.temperature = temperature;
  workload.sampling.seed = 7;
  for (size_t i = 0; i < 5; ++i) {
    const size_t length = i == 1 ? 1 : 9 + 25 * (i % 3);
    std::vector<TokenId>& prompt = workload.token_prompts.emplace_back();
    for (size_t j = 0; j < length; ++j)
      prompt.push_back(static_cast<TokenId>((j * j + 3 * j + (i < 3 ? i : 0)) % 280));
  }
  return workload;
}

Result<SpeculativeOptions> resolved_by_files(const SpeculativeOptions& options) {
  OUTRIDER_TRY(const DraftFiles files, open_draft_files(options));
  return resolve_speculation(options, files);
}

Result<std::unique_ptr<EngineParts>> open_variant(const Numerics& numerics, const Variant& variant,
                                                  const std::string& target) {
  EngineOptions options;
  options.model = target;
  options.device = numerics.device;
  options.gpu_layers = numerics.gpu_layers;
  options.cpu_experts = numerics.cpu_experts;
  options.kernels = numerics.kernels;
  options.weights = numerics.weights;
  options.kv_cache_type = numerics.kv_cache_type;
  options.threads = variant.threads;
  options.context = variant.context;
  options.page_size = variant.page_size;
  options.max_batch = variant.batch;
  options.prefill_chunk = variant.prefill_chunk;
  options.acceptance = variant.acceptance;
  OUTRIDER_TRY(options.speculation, parsed(variant));
  options.cache_dir = cost_directory();
  options.prompt_cache = variant.prompt_cache;
  if (!variant.corpus.empty()) options.corpus = {variant.corpus};
  options.corpus_cache = options.cache_dir / "corpus";
  OUTRIDER_TRY(auto parts, open_parts(std::move(options)));
  parts->preempt_every = variant.preempt_every;
  return parts;
}

std::unique_ptr<Engine> open_engine(EngineOptions options, int preempt_every) {
  auto parts = open_parts(std::move(options));
  EXPECT_TRUE(parts.ok()) << parts.error().message;
  (*parts)->preempt_every = preempt_every;
  return Engine::assemble(std::move(parts).value());
}

std::vector<Completion> run_variant(const Numerics& numerics, const Variant& variant,
                                    const Workload& workload) {
  auto parts = open_variant(numerics, variant, workload.target);
  if (!parts.ok()) {
    ADD_FAILURE() << describe(variant) << ": " << parts.error().message;
    return {};
  }
  return run_engine(*Engine::assemble(std::move(*parts)), workload, describe(variant));
}

std::vector<Completion> run_engine(Engine& engine, const Workload& workload, const std::string& what) {
  std::vector<std::vector<TokenId>> prompts;
  for (const std::string& prompt : workload.prompts) prompts.push_back(engine.tokenize(prompt));
  prompts.insert(prompts.end(), workload.token_prompts.begin(), workload.token_prompts.end());
  std::vector<Completion> completions(prompts.size());
  std::map<RequestId, size_t> places;
  for (size_t i = 0; i < prompts.size(); ++i) {
    Request request;
    request.prompt = prompts[i];
    request.max_tokens = workload.max_tokens;
    request.ignore_eos = workload.ignore_eos;
    request.slide = workload.slide;
    request.sampling = workload.sampling;
    request.logits_function = workload.logits_function;
    request.sampling.seed += i;
    request.logprobs = workload.logprobs;
    if (!workload.predictions.empty()) request.prediction = workload.predictions[i];
    // Ids of the prompt are likely in the output.
    if (workload.has_rules) {
      const auto id = [&](size_t i) { return request.prompt[i % request.prompt.size()]; };
      request.rules = {.min_tokens = request.max_tokens / 2,
                       .forbidden = {{id(1)}, {id(2), id(3)}, {id(3), id(4), id(5)}, {id(6), id(6)}}};
    }
    request.constraint = ToyConstraint::make({.language = workload.language,
                                              .seed = request.sampling.seed,
                                              .vocabulary = static_cast<TokenId>(engine.info().vocab_size),
                                              .eos = end_of_text(engine)});
    const auto id = engine.submit(request, [&](RequestId from, const Progress& progress) {
      if (progress.completion == nullptr) return;
      EXPECT_EQ(progress.completion->speculation.draft_failures, 0) << what;
      completions[places.at(from)] = *progress.completion;
    });
    if (!id.ok()) {
      ADD_FAILURE() << id.error().message;
      return {};
    }
    places[*id] = i;
  }
  while (engine.step()) {
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
    ASSERT_EQ(plain[i].logprobs.size(), other[i].logprobs.size()) << what;
    for (size_t j = 0; j < plain[i].logprobs.size(); ++j) {
      ASSERT_EQ(plain[i].logprobs[j].logprob, other[i].logprobs[j].logprob) << what << ", token " << j;
      ASSERT_EQ(plain[i].logprobs[j].top, other[i].logprobs[j].top) << what << ", token " << j;
    }
  }
}

}  // namespace outrider
