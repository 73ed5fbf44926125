// SPDX-License-Identifier: Apache-2.0
// A device drafts in its steps what this machine would draft, with every kind of draft model and head.
#include <algorithm>
#include <set>

#include "draft_heads/recurrent_test_data.h"
#include "tests/engine/device_steps.h"
#include "tests/lossless/test_heads.h"

namespace outrider::device_steps {
namespace {

// A model that drafts for itself agrees often, and another one now and then.
TEST(DeviceSteps, ChainsOfADraftModel) {
  OUTRIDER_REQUIRE_DEVICE();
  const auto run = [](EngineCase one, const SpeculativeOptions& speculation, int steps, int plans) {
    one.speculation = speculation;
    EXPECT_GT(expect_same_engines(one, steps, plans, 12), 0);
  };
  run({.batch = 1}, chains_of("llama", 3, 1.5), 8, 3);
  run({.batch = 3}, chains_of("llama_rope_linear", 4), 8, 3);
  run({.batch = 5, .page_size = 1}, chains_of("qwen2", 1), 16, 2);
  run({.batch = 2}, chains_of("llama_tied", 6), 3, 2);
  run({.batch = 3, .preempt_every = 5}, chains_of("llama", 2), 8, 3);
  run({.batch = 4, .page_size = 4, .kv_pages = 40}, chains_of("llama", 4), 8, 6);
  run({.batch = 2, .page_size = 1, .longest_prompt = 94}, chains_of("llama", 3), 8, 1);
}

// Experts, latent attention, learned positions, temperatures of queries and inputs of layers, in targets and
// in draft models.
TEST(DeviceSteps, TargetsOfOtherKinds) {
  OUTRIDER_REQUIRE_DEVICE();
  const auto run = [](EngineCase one, const std::string& model, const SpeculativeOptions& speculation) {
    SCOPED_TRACE(model);
    one.model = model_of(model);
    one.speculation = speculation;
    EXPECT_GT(expect_same_engines(one, 8, 1, 12), 0);
  };
  run({.batch = 1}, "mixtral", chains_of("mixtral", 3, 1.5));
  run({.batch = 3}, "qwen3_moe", with_tree(chains_of("qwen3_moe", 3), 3, 10));
  run({.batch = 2, .page_size = 4}, "gpt_oss", chains_of("llama", 4));
  run({.batch = 3, .preempt_every = 5}, "deepseek_v3", with_tree(chains_of("deepseek_v3", 3), {3, 2, 1}));
  run({.batch = 4, .page_size = 4, .kv_pages = 48}, "deepseek_v2", with_tree(chains_of("llama", 4), 2, 8));
  run({.batch = 2}, "glm4_moe_lite", chains_of("glm4_moe_lite", 2));
  run({.batch = 3}, "gpt2", with_tree(chains_of("gpt2", 3), 3, 10));
  run({.batch = 2, .page_size = 4}, "llama4", chains_of("llama4", 3));
  run({.batch = 1}, "ministral3", chains_of("ministral3", 4));
  run({.batch = 3, .preempt_every = 5}, "gemma4", with_tree(chains_of("gemma4", 3), {2, 2}));
}

TEST(DeviceSteps, TextsGoOn) {
  OUTRIDER_REQUIRE_DEVICE();
  const std::set<std::string> heads = {"eagle3", "mtp_chained", "dflash"};
  for (const int page_size : {1, 4}) {
    for (const int levels : {1, 3}) {
      EXPECT_GT(
          expect_same_continuations({.page_size = page_size, .speculation = chains_of("llama", levels)}), 0);
    }
    for (const HeadCase& head : head_cases()) {
      if (!heads.contains(head.name)) continue;
      SCOPED_TRACE(head.name);
      const std::unique_ptr<FakeHead> files = head.make();
      SpeculativeOptions options;
      options.decoding_type = head.method;
      options.speculative_model = files->write();
      options.max_draft_len = 2;
      expect_same_continuations({.page_size = page_size, .speculation = options});
    }
  }
}

TEST(DeviceSteps, TreesOfADraftModel) {
  OUTRIDER_REQUIRE_DEVICE();
  const auto run = [](EngineCase one, const SpeculativeOptions& speculation, int steps, int plans) {
    one.speculation = speculation;
    EXPECT_GT(expect_same_engines(one, steps, plans, 12), 0);
  };
  run({.batch = 1}, with_tree(chains_of("llama", 3, 1.5), {3, 2, 1}), 8, 2);
  run({.batch = 1}, with_tree(chains_of("llama", 4, 1.5), 4, 12), 8, 2);
  run({.batch = 3}, with_tree(chains_of("llama_rope_linear", 4), 3, 10), 8, 2);
  run({.batch = 2, .page_size = 1}, with_tree(chains_of("qwen2", 2), {2, 2}), 16, 2);
  run({.batch = 3, .preempt_every = 5}, with_tree(chains_of("llama", 3), {2, 2, 1}), 8, 2);
  run({.batch = 4, .page_size = 4, .kv_pages = 48}, with_tree(chains_of("llama", 4), 2, 8), 8, 2);
  run({.batch = 2, .page_size = 1, .longest_prompt = 94}, with_tree(chains_of("llama", 3), 3, 9), 8, 1);
}

// Children are the likeliest tokens also where requests sample.
TEST(DeviceSteps, TreesOfTheLikeliestTokens) {
  OUTRIDER_REQUIRE_DEVICE();
  int64_t accepted = 0;
  const auto run = [&](EngineCase one, SpeculativeOptions speculation, int steps) {
    speculation.tree.children = ChildrenChoice::kTop;
    one.speculation = speculation;
    accepted += expect_same_engines(one, steps, 2, 12);
  };
  run({.batch = 1}, chains_of("llama", 3, 1.5), 8);
  run({.batch = 3}, with_tree(chains_of("llama_rope_linear", 4), 3, 10), 8);
  run({.batch = 2, .page_size = 1}, with_tree(chains_of("qwen2", 2), {2, 2}), 16);
  run({.batch = 3, .preempt_every = 5}, with_tree(chains_of("llama", 3, 1.5), {3, 1}), 8);
  EXPECT_GT(accepted, 0);
}

// Heads read features that stay on the device.
TEST(DeviceSteps, DraftsOfHeads) {
  OUTRIDER_REQUIRE_DEVICE();
  const std::set<std::string> with_device_form = {"eagle",          "eagle_two_layers",       "eagle3",
                                                  "eagle3_one_tap", "eagle3_speculators",     "mtp",
                                                  "mtp_qwen",       "mtp_half_of_the_tokens", "mtp_chained"};
  size_t found = 0;
  int64_t accepted = 0;
  for (const HeadCase& head : head_cases()) {
    if (!with_device_form.contains(head.name)) continue;
    SCOPED_TRACE(head.name);
    const std::unique_ptr<FakeHead> files = head.make();
    SpeculativeOptions options;
    options.decoding_type = head.method;
    options.speculative_model = files->write();
    options.max_draft_len = 1 + static_cast<int>(found % 4);
    if (found % 3 == 1) options = with_tree(options, 3, 9);
    if (found % 3 == 2) options = with_tree(options, {2, 2});
    EngineCase one{.batch = 1 + static_cast<int>(found % 3), .speculation = options};
    if (++found % 4 == 0) one.preempt_every = 5;
    if (found % 4 == 1) one.page_size = 4;
    accepted += expect_same_engines(one, 8, 2, 12);
    one.page_size = 1;
    one.longest_prompt = 94;  // texts that reach the end of the context
    accepted += expect_same_engines(one, 8, 1, 12);
  }
  EXPECT_EQ(found, with_device_form.size());
  EXPECT_GT(accepted, 20);
}

// Each level has a module, whose rows go on from the states of the entries before.
TEST(DeviceSteps, DraftsOfSeveralModules) {
  OUTRIDER_REQUIRE_DEVICE();
  for (const int modules : {2, 3}) {
    SCOPED_TRACE(modules);
    const std::unique_ptr<FakeHead> files = make_mtp(kSmallTarget, modules);
    files->scale = 0.1f;  // hardly more than the residual stream, so that a draft is right now and then
    SpeculativeOptions options;
    options.decoding_type = Method::kMtp;
    options.speculative_model = files->write();
    options.max_draft_len = modules;
    const auto run = [](EngineCase one, const SpeculativeOptions& speculation) {
      one.speculation = speculation;
      EXPECT_GT(expect_same_engines(one, 8, 1, 12), 0);
    };
    run({.batch = 1}, options);
    run({.batch = 3, .page_size = 4, .longest_prompt = 4}, with_tree(options, 3, 9));
    run({.batch = 2, .page_size = 1, .preempt_every = 5, .longest_prompt = 4}, with_tree(options, {2, 2}));
    run({.batch = 4, .page_size = 4, .kv_pages = 48}, options);
    options.max_draft_len = 5;  // more than there are modules
    run({.batch = 3, .preempt_every = 5}, options);
    run({.batch = 2, .longest_prompt = 200, .context = 256}, with_tree(options, {2, 1}));
  }
}

// Modules with the layers of their targets' families, which have a backend of their own.
TEST(DeviceSteps, DraftsOfModulesOfFamilies) {
  OUTRIDER_REQUIRE_DEVICE();
  int64_t accepted = 0;
  int found = 0;
  for (const char* name :
       {"deepseek_v3", "glm4_moe_lite", "glm4_moe", "deepseek_v3_chained", "glm4_moe_chained"}) {
    SCOPED_TRACE(name);
    const nlohmann::json golden = family_module_golden(name);
    FakeHead head;
    fill_head(head, golden);
    SpeculativeOptions options;
    options.decoding_type = Method::kMtp;
    options.speculative_model = head.write();
    options.max_draft_len = 2;
    const auto run = [&](EngineCase one, const SpeculativeOptions& speculation) {
      one.model = model_of(golden.value("target", name));
      one.speculation = speculation;
      accepted += expect_same_engines(one, 8, 1, 12);
    };
    run({.batch = 1}, options);
    if (++found % 2 == 0) run({.batch = 3, .page_size = 4}, with_tree(options, 3, 6));
    if (found % 2 == 1) run({.batch = 2, .page_size = 1, .preempt_every = 5}, with_tree(options, {3, 2}));
  }
  EXPECT_GT(accepted, 10);
}

// The rows of a target that is divided lie at two places, and its modules read them.
TEST(DeviceSteps, ModulesOfADividedTarget) {
  OUTRIDER_REQUIRE_DEVICE();
  for (const char* name : {"deepseek_v3", "glm4_moe_chained"}) {
    SCOPED_TRACE(name);
    const nlohmann::json golden = family_module_golden(name);
    FakeHead head;
    fill_head(head, golden);
    EngineCase one{.model = model_of(golden.value("target", name))};
    one.speculation.decoding_type = Method::kMtp;
    one.speculation.speculative_model = head.write();
    one.speculation.max_draft_len = 2;
    const auto whole = open_case(one);
    one.gpu_layers = 2;
    const auto divided = open_case(one);
    std::mt19937 random(1);
    const Plan plan = random_plan(random, *whole, 12);
    const Record expected = run_plan(*whole, plan);
    expect_same_records(expected, run_plan(*divided, plan));
    EXPECT_GT(expected.status.speculation.drafts, 0);
  }
}

// A pass over a block gives all levels, which DSpark changes by the tokens before.
TEST(DeviceSteps, DraftsOfBlocks) {
  OUTRIDER_REQUIRE_DEVICE();
  const std::set<std::string> with_device_form = {
      "dflash", "dflash_sliding", "dspark", "dspark_masks_only", "dspark_gated", "dspark_recurrent"};
  size_t found = 0;
  for (const HeadCase& head : head_cases()) {
    if (!with_device_form.contains(head.name)) continue;
    SCOPED_TRACE(head.name);
    ++found;
    const std::unique_ptr<FakeHead> files = head.make();
    SpeculativeOptions options;
    options.decoding_type = head.method;
    options.speculative_model = files->write();
    options.max_draft_len = 4;
    const auto run = [](EngineCase one, const SpeculativeOptions& speculation) {
      one.speculation = speculation;
      EXPECT_GT(expect_same_engines(one, 8, 1, 12), 0);
    };
    run({.batch = 1}, options);
    run({.batch = 3, .page_size = 4}, with_tree(options, 3, 9));
    run({.batch = 2, .page_size = 1, .preempt_every = 5}, with_tree(options, {2, 2, 1}));
    // A block has more places than a tree, and fewer levels than are asked for.
    options.max_draft_len = 1;
    run({.batch = 1, .page_size = 1}, options);
    run({.batch = 2, .page_size = 1, .longest_prompt = 94}, options);  // blocks beyond the context's end
    options.max_draft_len = 9;
    run({.batch = 1}, options);
  }
  EXPECT_EQ(found, with_device_form.size());
}

// All levels come from the state of one token.
TEST(DeviceSteps, TreesOfMedusaHeads) {
  OUTRIDER_REQUIRE_DEVICE();
  const std::vector<HeadCase> heads = head_cases();
  const auto medusa = std::ranges::find(heads, Method::kMedusa, &HeadCase::method);
  ASSERT_NE(medusa, heads.end());
  const std::unique_ptr<FakeHead> files = medusa->make();
  SpeculativeOptions options;
  options.decoding_type = Method::kMedusa;
  options.speculative_model = files->write();
  options.max_draft_len = 3;
  SpeculativeOptions listed = options;
  listed.tree.kind = TreeKind::kChoices;
  listed.tree.choices = {{0}, {1}, {2}, {0, 0}, {0, 1}, {1, 0}, {0, 0, 0}, {0, 1, 0}};
  int64_t accepted = expect_same_engines({.batch = 1, .speculation = listed}, 8, 2, 12);
  accepted += expect_same_engines({.batch = 3, .preempt_every = 5, .speculation = options}, 8, 2, 12);
  accepted +=
      expect_same_engines({.batch = 3, .page_size = 4, .speculation = with_tree(options, 3, 9)}, 8, 2, 12);
  accepted += expect_same_engines(
      {.batch = 2, .page_size = 1, .speculation = with_tree(options, 3, 9), .longest_prompt = 94}, 8, 1, 12);
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace outrider::device_steps
