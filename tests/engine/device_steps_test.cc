// SPDX-License-Identifier: Apache-2.0
// Steps that a device makes one after the other are the steps that this machine makes. Tokens, counts and
// events are the same in the same steps, for random requests with preemption, cancellation and stops.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <tuple>

#include "draft_heads/recurrent_test_data.h"
#include "models/backend/device/make_backends.h"
#include "tests/lossless/lossless.h"
#include "tests/lossless/test_heads.h"

namespace outrider {
namespace {

#define OUTRIDER_REQUIRE_DEVICE()    \
  if (!select_device_kernels().ok()) \
  GTEST_SKIP() << "this machine has no table with the arithmetic of devices"

struct EngineCase {
  int device_steps = 0;
  int batch = 3;
  int page_size = 16;
  int64_t kv_pages = 0;
  int preempt_every = 0;
  std::string model = small_target();
  SpeculativeOptions speculation = {};
  int longest_prompt = 40;
  int64_t context = 96;
};

#ifdef OUTRIDER_SLOW_TEST
constexpr int kLeastRequests = 1000;  // of a comparison
#else
constexpr int kLeastRequests = 0;
#endif

std::string model_of(const std::string& name) {
  return std::string(OUTRIDER_SOURCE_DIR) + "/tests/data/models/" + name;
}

// A chain of a draft model with the target's vocabulary.
SpeculativeOptions chains_of(const std::string& draft, int levels, double temperature = 1.0) {
  SpeculativeOptions options;
  options.decoding_type = Method::kDraftTarget;
  options.speculative_model = model_of(draft);
  options.max_draft_len = levels;
  options.draft_temperature = temperature;
  return options;
}

std::unique_ptr<Engine> open_case(const EngineCase& one) {
  EngineOptions options;
  options.model = one.model;
  options.device = ComputeDevice::kEmulated;
  options.device_steps = one.device_steps;
  options.threads = 1;
  options.context = one.context;
  options.max_batch = one.batch;
  options.page_size = one.page_size;
  options.kv_pages = one.kv_pages;
  options.speculation = one.speculation;
  return open_engine(options, one.preempt_every);
}

// A message to a sink: step, request, tokens and text.
using Event = std::tuple<int64_t, size_t, std::vector<TokenId>, std::string>;

struct Record {
  std::vector<Event> events = {};
  std::vector<Completion> completions = {};
  EngineStatus status = {};
  int calls = 0;  // of step()
  // In calls that made several steps:
  int64_t steps_on_device = 0, drafts_on_device = 0;
};

struct Plan {
  std::vector<Request> requests;
  std::vector<size_t> cancelled_after;  // tokens, by request; 0: never
};

Record run_plan(Engine& engine, const Plan& plan) {
  Record record;
  record.completions.resize(plan.requests.size());
  std::vector<size_t> received(plan.requests.size());
  for (size_t i = 0; i < plan.requests.size(); ++i) {
    const auto sink = [&, i](RequestId id, const Progress& progress) {
      record.events.emplace_back(engine.status().steps, i,
                                 std::vector<TokenId>(progress.tokens.begin(), progress.tokens.end()),
                                 std::string(progress.text));
      if (progress.completion != nullptr) record.completions[i] = *progress.completion;
      received[i] += progress.tokens.size();
      if (plan.cancelled_after[i] != 0 && received[i] >= plan.cancelled_after[i]) engine.cancel(id);
    };
    const auto id = engine.submit(plan.requests[i], sink);
    EXPECT_TRUE(id.ok()) << id.error().message;
  }
  for (bool goes_on = true; goes_on; ++record.calls) {
    const EngineStatus before = engine.status();
    goes_on = engine.step();
    const EngineStatus after = engine.status();
    if (after.steps <= before.steps + 1) continue;
    record.steps_on_device += after.steps - before.steps;
    record.drafts_on_device += after.speculation.drafts - before.speculation.drafts;
  }
  record.status = engine.status();
  return record;
}

int below(std::mt19937& random, int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); }

SamplingParams random_params(std::mt19937& random) {
  SamplingParams sampling;
  const double temperatures[] = {0.0, 0.0, 0.7, 1.0, 1.5};
  sampling.temperature = temperatures[below(random, 5)];
  sampling.seed = random();
  if (below(random, 3) == 0) sampling.top_k = 1 + below(random, 30);
  if (below(random, 3) == 0) sampling.min_p = 0.02;
  if (below(random, 12) == 0) sampling.top_p = 0.9;  // these two need this machine
  if (below(random, 12) == 0) sampling.repetition_penalty = 1.2;
  return sampling;
}

Request random_request(std::mt19937& random, const Engine& engine, int longest_prompt) {
  Request request;
  const auto vocab = static_cast<int>(engine.info().vocab_size);
  const int length = 1 + below(random, longest_prompt);
  for (int i = 0; i < length; ++i) request.prompt.push_back(below(random, vocab));
  request.max_tokens = below(random, 10) == 0 ? 200 : 1 + below(random, 30);  // 200: the context ends it
  request.sampling = random_params(random);
  request.ignore_eos = below(random, 2) == 0;
  if (below(random, 3) == 0) request.stop_tokens = {below(random, vocab), below(random, vocab)};
  if (below(random, 3) == 0) request.stop = {std::string(1, static_cast<char>('a' + below(random, 26)))};
  if (below(random, 10) == 0) request.logprobs = 2;
  if (below(random, 12) == 0 && length < 30) request.slide = 4;
  request.speculation.enabled = below(random, 8) != 0;
  if (below(random, 5) == 0) request.speculation.max_draft_len = 1 + below(random, 3);
  if (below(random, 8) == 0) request.speculation.max_children = 1 + below(random, 2);
  return request;
}

Plan random_plan(std::mt19937& random, const Engine& engine, int count, int longest_prompt = 40) {
  Plan plan;
  for (int i = 0; i < count; ++i) {
    plan.requests.push_back(random_request(random, engine, longest_prompt));
    plan.cancelled_after.push_back(below(random, 6) == 0 ? 1 + random() % 9 : 0);
  }
  return plan;
}

void expect_same_counts(const SpeculationStats& host, const SpeculationStats& device) {
  EXPECT_EQ(host.steps, device.steps);
  EXPECT_EQ(host.drafts, device.drafts);
  EXPECT_EQ(host.drafted, device.drafted);
  EXPECT_EQ(host.accepted, device.accepted);
  EXPECT_EQ(host.drafted_per_position, device.drafted_per_position);
  EXPECT_EQ(host.accepted_per_position, device.accepted_per_position);
}

void expect_same_records(const Record& host, const Record& device) {
  EXPECT_EQ(host.events, device.events);
  EXPECT_EQ(host.status.steps, device.status.steps);
  EXPECT_EQ(host.status.rows, device.status.rows);
  EXPECT_EQ(host.status.preemptions, device.status.preemptions);
  EXPECT_EQ(host.status.output_tokens, device.status.output_tokens);
  ASSERT_EQ(host.completions.size(), device.completions.size());
  for (size_t i = 0; i < host.completions.size(); ++i) {
    EXPECT_EQ(host.completions[i].tokens, device.completions[i].tokens) << i;
    EXPECT_EQ(host.completions[i].text, device.completions[i].text) << i;
    EXPECT_EQ(host.completions[i].finish_reason, device.completions[i].finish_reason) << i;
    EXPECT_EQ(host.completions[i].origins, device.completions[i].origins) << i;
    expect_same_counts(host.completions[i].speculation, device.completions[i].speculation);
  }
}

// Both engines run the same requests, several times over. Returns how many drafts were accepted.
int64_t expect_same_engines(EngineCase one, int device_steps, int plans, int requests) {
  SCOPED_TRACE(std::to_string(device_steps) + " steps, batch " + std::to_string(one.batch) + ", pages of " +
               std::to_string(one.page_size) + ", preemption every " + std::to_string(one.preempt_every));
  const auto host = open_case(one);
  one.device_steps = device_steps;
  const auto device = open_case(one);
  EXPECT_EQ(device->info().device_steps, device_steps) << device->info().device_steps_reason;
  std::mt19937 random(static_cast<unsigned>(device_steps + one.batch + one.preempt_every));
  int64_t calls = 0, drafts = 0;
  for (int turn = 0; turn < plans || turn * requests < kLeastRequests; ++turn) {
    const Plan plan = random_plan(random, *host, requests, one.longest_prompt);
    const Record expected = run_plan(*host, plan), found = run_plan(*device, plan);
    expect_same_records(expected, found);
    calls += found.calls;
    drafts += found.drafts_on_device;
    if (testing::Test::HasFailure()) return 0;
  }
  EXPECT_LT(calls, device->status().steps);  // some calls made several steps
  EXPECT_EQ(drafts > 0, one.speculation.decoding_type != Method::kNone);
  return device->status().speculation.accepted;
}

// A request, and one that goes on with its text, whose entries the caches of target and draft still have.
// There are pages for all of them. Returns how many drafts were accepted.
int64_t expect_same_continuations(EngineCase one) {
  one.batch = 4;
  one.kv_pages = 2000;
  const auto host = open_case(one);
  one.device_steps = 8;
  const auto device = open_case(one);
  int64_t drafts = 0;
  for (int length = 5; length < 12; ++length) {
    Plan plan{.requests = {Request{.prompt = {length, 3 * length, 7, 9}}}, .cancelled_after = {0}};
    Request& request = plan.requests.front();
    request.max_tokens = length;
    request.ignore_eos = true;
    for (int part = 0; part < 3; ++part) {
      const Record expected = run_plan(*host, plan), found = run_plan(*device, plan);
      expect_same_records(expected, found);
      drafts += found.drafts_on_device;
      const std::vector<TokenId>& text = expected.completions.front().tokens;
      request.prompt.insert(request.prompt.end(), text.begin(), text.end());
    }
  }
  EXPECT_GT(drafts, 0);
  return device->status().speculation.accepted;
}

TEST(DeviceSteps, RandomRequestsOneAfterTheOther) {
  OUTRIDER_REQUIRE_DEVICE();
  expect_same_engines({.batch = 1}, 8, 10, 10);
}

TEST(DeviceSteps, RandomRequestsInBatches) {
  OUTRIDER_REQUIRE_DEVICE();
  expect_same_engines({.batch = 3}, 8, 10, 12);
  expect_same_engines({.batch = 5, .page_size = 1}, 16, 6, 12);
  expect_same_engines({.batch = 2}, 2, 6, 8);
}

TEST(DeviceSteps, PreemptionAndFewPages) {
  OUTRIDER_REQUIRE_DEVICE();
  expect_same_engines({.batch = 3, .preempt_every = 5}, 8, 6, 10);
  expect_same_engines({.batch = 4, .page_size = 4, .kv_pages = 40}, 8, 6, 12);
}

SpeculativeOptions with_tree(SpeculativeOptions options, const std::vector<int>& expansion) {
  options.tree.kind = TreeKind::kStatic;
  options.tree.expansion = expansion;
  return options;
}
SpeculativeOptions with_tree(SpeculativeOptions options, int width, int nodes) {
  options.tree.kind = TreeKind::kDynamic;
  options.tree.dynamic_tree_max_top_k = width;
  options.tree.max_total_draft_tokens = nodes;
  return options;
}

// A model that drafts for itself agrees often, and another one now and then.
TEST(DeviceSteps, ChainsOfADraftModel) {
  OUTRIDER_REQUIRE_DEVICE();
  const auto run = [](EngineCase one, const SpeculativeOptions& speculation, int steps, int plans) {
    one.speculation = speculation;
    EXPECT_GT(expect_same_engines(one, steps, plans, 12), 0);
  };
  run({.batch = 1}, chains_of("llama", 3, 1.5), 8, 5);
  run({.batch = 3}, chains_of("llama_rope_linear", 4), 8, 6);
  run({.batch = 5, .page_size = 1}, chains_of("qwen2", 1), 16, 4);
  run({.batch = 2}, chains_of("llama_tied", 6), 3, 5);
  run({.batch = 3, .preempt_every = 5}, chains_of("llama", 2), 8, 5);
  run({.batch = 4, .page_size = 4, .kv_pages = 40}, chains_of("llama", 4), 8, 6);
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
  run({.batch = 1}, with_tree(chains_of("llama", 3, 1.5), {3, 2, 1}), 8, 3);
  run({.batch = 1}, with_tree(chains_of("llama", 4, 1.5), 4, 12), 8, 4);
  run({.batch = 3}, with_tree(chains_of("llama_rope_linear", 4), 3, 10), 8, 4);
  run({.batch = 2, .page_size = 1}, with_tree(chains_of("qwen2", 2), {2, 2}), 16, 3);
  run({.batch = 3, .preempt_every = 5}, with_tree(chains_of("llama", 3), {2, 2, 1}), 8, 3);
  run({.batch = 4, .page_size = 4, .kv_pages = 48}, with_tree(chains_of("llama", 4), 2, 8), 8, 4);
}

// Children are the likeliest tokens also where requests sample.
TEST(DeviceSteps, TreesOfTheLikeliestTokens) {
  OUTRIDER_REQUIRE_DEVICE();
  int64_t accepted = 0;
  const auto run = [&](EngineCase one, SpeculativeOptions speculation, int steps) {
    speculation.tree.children = ChildrenChoice::kTop;
    one.speculation = speculation;
    accepted += expect_same_engines(one, steps, 3, 12);
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
    accepted += expect_same_engines(one, 8, 4, 12);
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
      EXPECT_GT(expect_same_engines(one, 8, 2, 12), 0);
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
  int64_t accepted = expect_same_engines({.batch = 1, .speculation = listed}, 8, 4, 12);
  accepted += expect_same_engines({.batch = 3, .preempt_every = 5, .speculation = options}, 8, 4, 12);
  accepted +=
      expect_same_engines({.batch = 3, .page_size = 4, .speculation = with_tree(options, 3, 9)}, 8, 4, 12);
  EXPECT_GT(accepted, 0);
}

// The policy decides by what it has observed, and on a device once for a run: drafts differ, and tokens do
// not. Returns the sums of what the device did.
Record expect_same_tokens(EngineCase one) {
  const auto host = open_case(one);
  one.device_steps = 8;
  const auto device = open_case(one);
  EXPECT_EQ(device->info().device_steps, 8) << device->info().device_steps_reason;
  std::mt19937 random(static_cast<unsigned>(one.batch));
  Record sums;
  for (int turn = 0; turn < 3 || turn * 10 < kLeastRequests; ++turn) {
    Plan plan = random_plan(random, *host, 10);
    plan.cancelled_after.assign(plan.requests.size(), 0);
    for (Request& request : plan.requests) request.speculation.enabled = true;
    const Record expected = run_plan(*host, plan), found = run_plan(*device, plan);
    for (size_t i = 0; i < plan.requests.size(); ++i) {
      EXPECT_EQ(expected.completions[i].tokens, found.completions[i].tokens) << i;
      EXPECT_EQ(expected.completions[i].text, found.completions[i].text) << i;
      EXPECT_EQ(expected.completions[i].finish_reason, found.completions[i].finish_reason) << i;
    }
    sums.steps_on_device += found.steps_on_device;
    sums.drafts_on_device += found.drafts_on_device;
  }
  return sums;
}

SpeculativeOptions automatic(SpeculativeOptions options) {
  options.is_auto = true;
  return options;
}
SpeculativeOptions with_schedule(SpeculativeOptions options) {
  options.draft_len_schedule = LengthSchedule::kHeuristic;
  return options;
}

TEST(DeviceSteps, ThePolicyDecidesOnceForARun) {
  OUTRIDER_REQUIRE_DEVICE();
  const SpeculativeOptions chains = chains_of("llama", 4, 1.5);
  const auto run = [](const EngineCase& one) { EXPECT_GT(expect_same_tokens(one).steps_on_device, 0); };
  run({.batch = 1, .speculation = automatic(chains)});
  run({.batch = 3, .speculation = automatic(with_tree(chains, 3, 10))});
  run({.batch = 2, .page_size = 4, .speculation = automatic(with_schedule(chains))});
  run({.batch = 3, .preempt_every = 5, .speculation = automatic(with_tree(chains, {2, 1, 1}))});
}

// Features of sequences that the policy leaves out are kept beside the others' drafts.
TEST(DeviceSteps, ThePolicyDecidesOnceForHeads) {
  OUTRIDER_REQUIRE_DEVICE();
  for (const HeadCase& head : head_cases()) {
    const std::string name = head.name;
    if (name != "eagle" && name != "mtp" && head.method != Method::kMedusa) continue;
    SCOPED_TRACE(name);
    const std::unique_ptr<FakeHead> files = head.make();
    SpeculativeOptions options;
    options.decoding_type = head.method;
    options.speculative_model = files->write();
    options.max_draft_len = 3;
    expect_same_tokens({.batch = 3, .speculation = automatic(options)});
    EXPECT_GT(expect_same_tokens({.batch = 2, .speculation = with_schedule(options)}).drafts_on_device, 0);
    expect_same_tokens({.batch = 2, .page_size = 4, .speculation = automatic(with_tree(options, 3, 9))});
  }
}

TEST(DeviceSteps, AScheduleGivesALengthToARun) {
  OUTRIDER_REQUIRE_DEVICE();
  const auto run = [](const EngineCase& one) { EXPECT_GT(expect_same_tokens(one).drafts_on_device, 0); };
  run({.batch = 1, .speculation = with_schedule(chains_of("llama", 6, 1.5))});
  run({.batch = 3, .speculation = with_schedule(chains_of("llama_rope_linear", 4))});
}

// The size of a batch is the same in all steps of a run.
TEST(DeviceSteps, LengthsByTheSizeOfTheBatch) {
  OUTRIDER_REQUIRE_DEVICE();
  SpeculativeOptions options = chains_of("llama", 4, 1.5);
  options.draft_len_by_batch = {{.sequences = 1, .max_draft_len = 4}, {.sequences = 2, .max_draft_len = 1}};
  EXPECT_GT(expect_same_engines({.batch = 3, .speculation = options}, 8, 4, 12), 0);
  options.draft_len_by_batch.push_back({.sequences = 3, .max_draft_len = 0});
  EXPECT_GT(expect_same_engines({.batch = 3, .speculation = options}, 8, 4, 12), 0);
}

// Requests that draft nothing go on by themselves on the device of an engine that drafts for others.
TEST(DeviceSteps, RequestsWithoutDraftsBesideADrafter) {
  OUTRIDER_REQUIRE_DEVICE();
  SpeculativeOptions lookup;
  lookup.decoding_type = Method::kNGram;
  const auto engine = open_case({.device_steps = 8, .batch = 2, .speculation = lookup});
  const auto plain = open_case({.device_steps = 0, .batch = 2});
  std::mt19937 random(3);
  Plan plan = random_plan(random, *engine, 8);
  for (size_t i = 0; i < plan.requests.size(); ++i) plan.requests[i].speculation.enabled = i % 3 != 0;
  plan.cancelled_after.assign(plan.requests.size(), 0);
  const Record found = run_plan(*engine, plan), expected = run_plan(*plain, plan);
  for (size_t i = 0; i < plan.requests.size(); ++i)
    EXPECT_EQ(found.completions[i].tokens, expected.completions[i].tokens) << i;
}

// The tokens of a call that is interrupted come again.
TEST(DeviceSteps, AnInterruptedCallMakesOneStep) {
  OUTRIDER_REQUIRE_DEVICE();
  const auto engine = open_case({.device_steps = 8, .batch = 1}), plain = open_case({.batch = 1});
  Request request;
  request.prompt = {5, 6, 7};
  request.max_tokens = 20;
  request.ignore_eos = true;
  std::vector<TokenId> tokens;
  const auto id = engine->submit(request, [&](RequestId, const Progress& progress) {
    tokens.insert(tokens.end(), progress.tokens.begin(), progress.tokens.end());
    engine->interrupt();
  });
  ASSERT_TRUE(id.ok());
  bool goes_on = true;
  while (goes_on) {
    const int64_t before = engine->status().steps;
    goes_on = engine->step();
    EXPECT_EQ(engine->status().steps, before + 1);
  }
  EXPECT_EQ(tokens, plain->generate(request)->tokens);
}

// A thread that submits or cancels interrupts before it waits for the engine.
TEST(DeviceSteps, AnInterruptionBeforeACallHolds) {
  OUTRIDER_REQUIRE_DEVICE();
  const auto engine = open_case({.device_steps = 8, .batch = 1});
  Request request;
  request.prompt = {5, 6, 7};
  request.max_tokens = 30;
  request.ignore_eos = true;
  ASSERT_TRUE(engine->submit(request, nullptr).ok());
  const auto steps_of_call = [&] {
    const int64_t before = engine->status().steps;
    engine->step();
    return engine->status().steps - before;
  };
  EXPECT_EQ(steps_of_call(), 1);  // submit() has interrupted
  EXPECT_EQ(steps_of_call(), 8);
  engine->interrupt();
  EXPECT_EQ(steps_of_call(), 1);
  EXPECT_EQ(steps_of_call(), 8);
}

TEST(DeviceSteps, AreOffWhereTheyAreNotPossible) {
  OUTRIDER_REQUIRE_DEVICE();
  EXPECT_EQ(open_case({.device_steps = 0})->info().device_steps_reason, "");
  const auto engine = open_case({.device_steps = 8, .model = model_of("lfm2")});
  EXPECT_EQ(engine->info().device_steps, 0);
  EXPECT_EQ(engine->info().device_steps_reason, "the target has short_convolution layers");
}

}  // namespace
}  // namespace outrider
