// SPDX-License-Identifier: Apache-2.0
// Steps that a device makes one after the other are the steps that this machine makes. Tokens, counts and
// events are the same in the same steps, for random requests with preemption, cancellation and stops.
#include "tests/engine/device_steps.h"

#include "tests/lossless/test_heads.h"

namespace outrider::device_steps {
namespace {

TEST(DeviceSteps, RandomRequestsOneAfterTheOther) {
  OUTRIDER_REQUIRE_DEVICE();
  expect_same_engines({.batch = 1}, 8, 6, 10);
}

TEST(DeviceSteps, RandomRequestsInBatches) {
  OUTRIDER_REQUIRE_DEVICE();
  expect_same_engines({.batch = 3}, 8, 6, 12);
  expect_same_engines({.batch = 5, .page_size = 1}, 16, 6, 12);
  expect_same_engines({.batch = 2}, 2, 6, 8);
}

TEST(DeviceSteps, PreemptionAndFewPages) {
  OUTRIDER_REQUIRE_DEVICE();
  expect_same_engines({.batch = 3, .preempt_every = 5}, 8, 6, 10);
  expect_same_engines({.batch = 4, .page_size = 4, .kv_pages = 40}, 8, 6, 12);
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
}  // namespace outrider::device_steps
