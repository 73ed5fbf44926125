// SPDX-License-Identifier: Apache-2.0
// An emulated device gives the texts, the log-probabilities, the drafts and the accepted drafts of this
// machine: with every drafter, in trees and batches, with preemption, and on small pages. So does a device
// that has only a part of the target.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/random_model.h"
#include "models/backend/device/make_backends.h"
#include "tests/lossless/lossless.h"
#include "tests/support/adapter_folder.h"

namespace outrider {
namespace {

// The table of this machine with the arithmetic of devices; empty: there is none.
std::string device_kernels() {
  const auto table = select_device_kernels();
  return table.ok() ? std::string((*table)->name) : "";
}

void expect_same_on_device(Numerics numerics, const Variant& variant, const Workload& workload) {
  SCOPED_TRACE(describe(variant) + ", " + describe(numerics));
  numerics.kernels = device_kernels();
  const auto here = run_variant(numerics, variant, workload);
  numerics.device = ComputeDevice::kEmulated;
  const auto there = run_variant(numerics, variant, workload);
  expect_same(here, there, describe(variant));
  ASSERT_EQ(here.size(), there.size());
  if (variant.speculative.starts_with("auto")) return;  // its drafts depend on measured times
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_EQ(here[i].speculation.drafted, there[i].speculation.drafted) << i;
    EXPECT_EQ(here[i].speculation.accepted, there[i].speculation.accepted) << i;
  }
}

// Drafters, trees, pages and batches take turns, and so do layers of the target on the device; none: all are.
void expect_every_drafter(Workload workload, const std::vector<int>& gpu_layers) {
  size_t turn = 0;
  for (const std::string& drafter : drafters()) {
    workload.sampling.temperature = turn % 2 == 0 ? 0.7F : 0.0F;
    const std::string shape = shapes()[turn % 3 == 0 ? 4 : 0];  // a dynamic tree, or a chain
    Numerics numerics{.weights = WeightPrecision::kQ4};
    if (!gpu_layers.empty()) numerics.gpu_layers = gpu_layers[turn % gpu_layers.size()];
    expect_same_on_device(numerics,
                          {.speculative = drafter + "," + shape,
                           .page_size = turn % 2 == 0 ? 1 : 16,
                           .batch = 1 + static_cast<int>(turn % 3),
                           .prefill_chunk = 7},
                          workload);
    if (testing::Test::HasFailure()) return;
    ++turn;
  }
}

TEST(EmulatedDeviceRuns, EveryDrafter) {
  if (device_kernels().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  expect_every_drafter({.prompts = mixed_prompts(4), .max_tokens = 12, .logprobs = 2}, {});
}

// The built-in model in each type that options name, and random models in each type of files.
TEST(EmulatedDeviceRuns, EveryTypeOfWeights) {
  if (device_kernels().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  const Workload text{.prompts = mixed_prompts(1), .max_tokens = 4, .logprobs = 5};
  for (const WeightPrecision weights :
       {WeightPrecision::kQ8_0, WeightPrecision::kQ8, WeightPrecision::kBF16, WeightPrecision::kF8})
    expect_same_on_device({.weights = weights}, {}, text);
  Workload tokens = token_workload(0.0, 3);
  tokens.token_prompts.resize(2);
  tokens.logprobs = 5;
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    if (block_elements(dtype) == 1) continue;
    tokens.target = shape_path("llama-68m@1", dtype, 512).string();
    expect_same_on_device({}, {.batch = 2}, tokens);
    if (testing::Test::HasFailure()) return;
  }
}

// Tensor cores have bits that this machine does not have. Drafts change nothing there, either.
TEST(EmulatedDeviceRuns, TensorCoresGiveOneText) {
  if (device_kernels().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  const Numerics there{.kernels = std::string(kTensorCoreProfile),
                       .weights = WeightPrecision::kBF16,
                       .device = ComputeDevice::kEmulated};
  const Variant variants[] = {{.speculative = "ngram", .page_size = 1, .batch = 3, .preempt_every = 4},
                              {.speculative = "early_exit,exit_layer=1,expansion=[3,2]",
                               .page_size = 16,
                               .batch = 2,
                               .prefill_chunk = 7}};
  for (const char* target : {"llama", "gemma3", "mixtral", "deepseek_v3", "qwen3_next"}) {
    SCOPED_TRACE(target);
    Workload workload = token_workload(0.8, 10);
    workload.target = std::string(OUTRIDER_SOURCE_DIR "/tests/data/models/") + target;
    workload.token_prompts.resize(4);
    workload.logprobs = 2;
    const auto plain = run_variant(there, {}, workload);
    for (const Variant& variant : variants)
      expect_same(plain, run_variant(there, variant, workload), describe(variant));
    const Numerics here{.kernels = device_kernels(), .weights = WeightPrecision::kBF16};
    EXPECT_NE(plain.front().logprobs.front().logprob,
              run_variant(here, {}, workload).front().logprobs.front().logprob);
    if (testing::Test::HasFailure()) return;
  }
}

// Tensor cores have the numbers of F8 exactly.
TEST(EmulatedDeviceRuns, TensorCoresGiveOneTextForF8) {
  if (device_kernels().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  const Numerics there{.kernels = std::string(kTensorCoreProfile), .device = ComputeDevice::kEmulated};
  Workload workload = token_workload(0.8, 10);
  workload.target = shape_path("llama-68m@1", DType::kF8, 512).string();
  workload.token_prompts.resize(3);
  workload.logprobs = 2;
  const auto plain = run_variant(there, {}, workload);
  for (const int prefill_chunk : {7, 64}) {
    const Variant variant{.speculative = "ngram,max_draft_len=5,tree=dynamic",
                          .batch = 2,
                          .prefill_chunk = prefill_chunk,
                          .preempt_every = 4};
    expect_same(plain, run_variant(there, variant, workload), describe(variant));
  }
}

// Attention has tiles of rows that are in one text, or are not.
TEST(EmulatedDeviceRuns, TensorCoresGiveOneTextForEveryCache) {
  if (device_kernels().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  for (const KvCacheType entries :
       {KvCacheType::kBF16, KvCacheType::kF16, KvCacheType::kE4M3, KvCacheType::kQ8_0}) {
    const Numerics there{.kernels = std::string(kTensorCoreProfile),
                         .weights = WeightPrecision::kQ4,
                         .kv_cache_type = entries,
                         .device = ComputeDevice::kEmulated};
    const Workload workload = token_workload(0.8, 40);
    const auto plain = run_variant(there, {}, workload);
    for (const int prefill_chunk : {7, 64}) {
      const Variant variant{.speculative = "early_exit,exit_layer=1,expansion=[3,2]",
                            .page_size = 16,
                            .batch = 3,
                            .prefill_chunk = prefill_chunk,
                            .preempt_every = 9};
      expect_same(plain, run_variant(there, variant, workload), describe(variant));
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(EmulatedDeviceRuns, PagesPreemptionAndTypes) {
  if (device_kernels().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  const Workload workload = token_workload(0.0, 16);
  for (const WeightPrecision weights : {WeightPrecision::kQ4, WeightPrecision::kQ8, WeightPrecision::kBF16}) {
    for (const KvCacheType entries : {KvCacheType::kBF16, KvCacheType::kE4M3, KvCacheType::kQ8_0}) {
      for (const int page_size : {1, 16}) {
        expect_same_on_device(
            {.weights = weights, .kv_cache_type = entries},
            {.speculative = "ngram", .page_size = page_size, .batch = 3, .preempt_every = 4}, workload);
      }
      if (testing::Test::HasFailure()) return;
    }
  }
}

// A family of each kind of layer: experts by softmax and with biases, latent attention with groups of
// experts, short convolutions, delta nets with experts. Early exit brings layers with states to different
// entries.
TEST(EmulatedDeviceRuns, EveryKindOfLayer) {
  if (device_kernels().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  const Variant variants[] = {{.speculative = "early_exit,exit_layer=1,max_draft_len=3",
                               .page_size = 1,
                               .batch = 3,
                               .preempt_every = 4},
                              {.speculative = "early_exit,exit_layer=1,expansion=[3,2]",
                               .page_size = 16,
                               .batch = 2,
                               .prefill_chunk = 7}};
  for (const char* target : {"mixtral", "gpt_oss", "deepseek_v3", "lfm2", "qwen3_next"}) {
    for (const Variant& variant : variants) {
      Workload workload = token_workload(variant.page_size == 1 ? 0.0 : 0.8, 10);
      workload.target = std::string(OUTRIDER_SOURCE_DIR "/tests/data/models/") + target;
      workload.token_prompts.resize(4);
      SCOPED_TRACE(target);
      expect_same_on_device({.weights = WeightPrecision::kBF16}, variant, workload);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// States and entries that a device has written to disk come back to another engine on the device.
void expect_kept_prompts(const std::string& target, Numerics there) {
  SCOPED_TRACE(target);
  const auto folder = std::filesystem::path(testing::TempDir()) / ("kept_on_device_" + target);
  std::filesystem::remove_all(folder);
  Workload workload = token_workload(0.0, 8);
  workload.target = OUTRIDER_SOURCE_DIR "/tests/data/models/" + target;
  workload.token_prompts.assign(1, {});
  for (TokenId i = 0; i < 90; ++i) workload.token_prompts[0].push_back((i * i + 3 * i) % 280);
  there.kernels = device_kernels();
  const Variant variant{.speculative = "ngram", .page_size = 4, .prompt_cache = folder};
  const auto plain = run_variant({.kernels = device_kernels()}, {}, workload);
  const auto first = run_variant(there, variant, workload), second = run_variant(there, variant, workload);
  expect_same(plain, first, "first");
  expect_same(plain, second, "second");
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(first[0].cached_tokens, 0);
  EXPECT_GT(second[0].cached_tokens, 60);
  std::filesystem::remove_all(folder);
}

TEST(EmulatedDeviceRuns, KeptPrompts) {
  if (device_kernels().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  for (const char* target : {"lfm2", "qwen3_next", "deepseek_v3"})
    expect_kept_prompts(target, {.device = ComputeDevice::kEmulated});
}

// The texts of requests with one adapter, with two and with none, before and after an adapter has changed.
std::vector<Completion> run_with_adapters(const Numerics& numerics) {
  auto parts = open_variant(numerics, {.speculative = "ngram", .batch = 3}, small_target());
  EXPECT_TRUE(parts.ok());
  if (!parts.ok()) return {};
  const ModelConfig config = (*parts)->target->config();
  const auto engine = Engine::assemble(std::move(*parts));
  std::vector<Completion> completions;
  for (const uint32_t seed : {1U, 2U}) {
    const auto folder = std::filesystem::path(testing::TempDir()) / "emulated_adapter";
    for (const char* name : {"a", "b"}) {
      write_adapter(folder, config, seed + static_cast<uint32_t>(name[0]),
                    {.rank = 5, .alpha = 16.0, .size = 0.2});
      EXPECT_TRUE(engine->load_adapter({.name = name, .path = folder}).ok());
    }
    for (int i = 0; i < 4; ++i) {
      Request request{.prompt = token_workload(0.0).token_prompts[static_cast<size_t>(i)]};
      request.max_tokens = 6;
      request.ignore_eos = true;
      request.logprobs = 2;
      request.adapters.emplace();
      if (i != 2) request.adapters->push_back({.name = i == 1 ? "b" : "a"});
      if (i == 3) request.adapters->push_back({.name = "b", .scale = -0.5});
      auto completion = engine->generate(request);
      EXPECT_TRUE(completion.ok());
      if (completion.ok()) completions.push_back(std::move(*completion));
    }
    for (const char* name : {"a", "b"}) EXPECT_TRUE(engine->unload_adapter(name).ok());
  }
  return completions;
}

// The processor has the first layers of the target, and drafters are on the device.
TEST(SplitTargetRuns, EveryDrafter) {
  if (device_kernels().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  expect_every_drafter({.prompts = mixed_prompts(3), .max_tokens = 10, .logprobs = 2}, {1, 2, 3, 4});
}

TEST(SplitTargetRuns, EveryKindOfLayer) {
  if (device_kernels().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  for (const char* target : {"mixtral", "gpt_oss", "deepseek_v3", "lfm2", "qwen3_next"}) {
    Workload workload = token_workload(0.0, 10);
    workload.target = std::string(OUTRIDER_SOURCE_DIR "/tests/data/models/") + target;
    workload.token_prompts.resize(4);
    const bool has_experts = target != std::string_view("lfm2");
    for (const Numerics& numerics : {Numerics{.weights = WeightPrecision::kBF16, .gpu_layers = 2},
                                     Numerics{.weights = WeightPrecision::kBF16,
                                     .cpu_experts = has_experts ? std::optional(1) : std::nullopt}}) {
      SCOPED_TRACE(target);
      expect_same_on_device(numerics,
                            {.speculative = "early_exit,exit_layer=1,max_draft_len=3",
                             .page_size = 1,
                             .batch = 3,
                             .preempt_every = 4},
                            workload);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(SplitTargetRuns, KeptPrompts) {
  if (device_kernels().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  for (const char* target : {"llama", "lfm2", "qwen3_next", "deepseek_v3"})
    expect_kept_prompts(target, {.device = ComputeDevice::kEmulated, .gpu_layers = 2});
}

TEST(EmulatedDeviceRuns, Adapters) {
  if (device_kernels().empty()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  const auto here = run_with_adapters({.kernels = device_kernels()});
  ASSERT_EQ(here.size(), 8U);
  EXPECT_NE(here[0].tokens, here[4].tokens);
  expect_same(here, run_with_adapters({.kernels = device_kernels(), .device = ComputeDevice::kEmulated}),
              "adapters");
}

}  // namespace
}  // namespace outrider
