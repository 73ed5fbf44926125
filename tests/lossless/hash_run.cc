// SPDX-License-Identifier: Apache-2.0
#include "tests/lossless/hash_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace outrider {
namespace {

std::shared_ptr<const Tokenizer> letters() {
  TokenizerSpec spec;
  for (int i = 0; i < kLetters; ++i) {
    spec.pieces.emplace_back(1, static_cast<char>('a' + i));
    spec.attributes.push_back(TokenAttribute::kNormal);
  }
  spec.pieces.emplace_back("<eos>");
  spec.attributes.push_back(TokenAttribute::kControl);
  spec.eos = kEos;
  spec.split_patterns.push_back({.pattern = "[a-z]+"});
  auto made = Tokenizer::create(std::move(spec));
  EXPECT_TRUE(made.ok()) << made.error().message;
  return *made;
}

struct Run {
  std::vector<RequestId> ids;
  std::vector<Expected> expected;
  std::map<RequestId, Completion> completions;
  std::map<RequestId, std::string> streamed;
  std::map<RequestId, size_t> streamed_logprobs, streamed_prompt_logprobs;
  bool is_traced = false;  // a sink follows every step
  std::map<RequestId, std::vector<TokenId>> traced;
};

void expect_same(const std::vector<TokenLogprobs>& got, const std::vector<TokenLogprobs>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].logprob, expected[i].logprob);
    ASSERT_EQ(got[i].top, expected[i].top);
    ASSERT_EQ(got[i].rank, expected[i].rank);
  }
}

void compare(const Run& run, const std::vector<Request>& requests) {
  for (size_t i = 0; i < run.ids.size(); ++i) {
    ASSERT_TRUE(run.completions.contains(run.ids[i]));
    const Completion& got = run.completions.at(run.ids[i]);
    ASSERT_EQ(got.tokens, run.expected[i].tokens) << "request " << i;
    ASSERT_EQ(got.text, run.expected[i].text);
    ASSERT_EQ(run.streamed.at(run.ids[i]), run.expected[i].text);
    ASSERT_EQ(got.finish_reason, run.expected[i].reason);
    ASSERT_EQ(got.prompt_tokens, static_cast<int64_t>(requests[i].prompt.size()));
    ASSERT_EQ(got.speculation.committed, static_cast<int64_t>(got.tokens.size()));
    ASSERT_EQ(got.origins.size(), got.tokens.size());
    ASSERT_LE(got.speculation.accepted, got.speculation.drafted);
    ASSERT_GE(got.rejected_prediction_tokens, 0);
    ASSERT_EQ(got.accepted_prediction_tokens + got.rejected_prediction_tokens,
              static_cast<int64_t>(requests[i].prediction.size()));
    expect_same(got.logprobs, run.expected[i].logprobs);
    expect_same(got.prompt_logprobs, run.expected[i].prompt_logprobs);
    ASSERT_EQ(run.streamed_prompt_logprobs.at(run.ids[i]), got.prompt_logprobs.size());
    ASSERT_EQ(run.streamed_logprobs.contains(run.ids[i]) ? run.streamed_logprobs.at(run.ids[i]) : 0,
              got.logprobs.size());
    ASSERT_EQ(got.speculation.accepted,
              std::count(got.origins.begin(), got.origins.end(), TokenOrigin::kAccepted));
    if (run.is_traced && !got.tokens.empty()) {
      ASSERT_EQ(run.traced.at(run.ids[i]), got.tokens);
    }
  }
}

}  // namespace

std::unique_ptr<EngineParts> hash_parts(const EngineSetup& setup, std::shared_ptr<Drafter> drafter) {
  auto parts = std::make_unique<EngineParts>();
  parts->options.max_batch = setup.max_batch;
  parts->options.prefill_chunk = setup.prefill_chunk;
  parts->options.max_batch_rows = setup.max_batch_rows;
  parts->preempt_every = setup.preempt_every;
  parts->max_preemptions = setup.max_preemptions;
  parts->options.context = setup.context;
  parts->options.acceptance = setup.acceptance;
  parts->options.speculation = setup.speculation;
  parts->costs = setup.costs;
  parts->tokenizer = letters();
  auto model = std::make_unique<HashModel>(0.0, 0, setup.has_state);
  KvShape shape = model->kv_shape();
  shape.page_size = setup.page_size;
  shape.states.checkpoint_count = setup.checkpoints;
  const int64_t min = (setup.context + 1 + setup.page_size - 1) / setup.page_size;
  shape.page_count = setup.kv_pages == 0 ? min * setup.max_batch * 2 : std::max(min, setup.kv_pages);
  parts->cache = std::make_unique<KvCache>(shape);
  parts->target = std::move(model);
  parts->drafter = std::move(drafter);
  parts->vocab_size = kLetters + 1;
  return parts;
}

bool model_has_state(uint32_t seed) { return seed % 7 < 2; }

void run_on_hash_model(const HashConfiguration& configuration, uint32_t seed) {
  RunTotals totals;
  run_on_hash_model(configuration, seed, totals);
}

namespace {

// The setup of the configuration and the seed.
EngineSetup seeded_setup(const HashConfiguration& configuration, uint32_t seed) {
  EngineSetup setup = setup_of(configuration);
  // Some runs have few rows, and some preempt sequences without need.
  setup.max_batch_rows = seed % 5 < 2 ? setup.max_batch + static_cast<int>(seed % 9) : 0;
  setup.preempt_every = seed % 4 == 0 ? 1 + static_cast<int>(seed % 3) : 0;
  setup.max_preemptions = seed % 8 == 0 ? 1000 : 8;
  setup.has_state = model_has_state(seed);
  setup.checkpoints = static_cast<int64_t>(seed % 3) * setup.max_batch;
  return setup;
}

// Lets the request's text slide, and cuts its prompt to what the context holds.
void let_slide(int64_t context, std::mt19937& random, Request& request) {
  if (std::ssize(request.prompt) >= context) request.prompt.resize(static_cast<size_t>(context) - 1);
  request.slide = static_cast<int64_t>(random() % static_cast<unsigned>(context - 1));
  if (random() % 2 == 0) request.slide %= 4;
}

}  // namespace

void run_sliding_texts(const HashConfiguration& configuration, uint32_t seed, RunTotals& totals) {
  EngineSetup setup = seeded_setup(configuration, seed);
  setup.slides = true;
  setup.context = 12 + seed % 30;
  run_on_hash_model(configuration, seed, setup, drafter_of(configuration, setup, seed, totals.drafts),
                    totals);
}

void run_on_hash_model(const HashConfiguration& configuration, uint32_t seed, RunTotals& totals) {
  const EngineSetup setup = seeded_setup(configuration, seed);
  run_on_hash_model(configuration, seed, setup, drafter_of(configuration, setup, seed, totals.drafts),
                    totals);
  ASSERT_EQ(totals.drafts.differing, 0)
      << "a draft model saw other entries than those of its text: " << describe(configuration, seed);
}

void run_on_hash_model(const HashConfiguration& configuration, uint32_t seed, const EngineSetup& setup,
                       const std::shared_ptr<Drafter>& drafter, RunTotals& totals) {
  SCOPED_TRACE(describe(configuration, seed));
  std::mt19937 random(seed);
  auto* oracle = dynamic_cast<OracleDrafter*>(drafter.get());
  auto parts = hash_parts(setup, drafter);
  KvCache* cache = parts->cache.get();
  const auto engine = Engine::assemble(std::move(parts));
  const int64_t all_pages = engine->free_pages();
  const HashModel model(0.0, 0, setup.has_state);
  Run run;
  run.is_traced = seed % 3 == 0;
  if (run.is_traced) {
    engine->set_trace_sink([&](const StepTrace& trace) {
      auto& tokens = run.traced[trace.request];
      tokens.insert(tokens.end(), trace.tokens.begin(), trace.tokens.end());
    });
  }
  std::vector<Request> requests;
  for (int i = 0; i < requests_in(configuration); ++i) {
    requests.push_back(request_of(configuration, random));
    if (setup.slides) let_slide(setup.context, random, requests.back());
    requests.back().cache_scope = seed % 2 == 0 ? static_cast<uint64_t>(i % 2) : 0;
    run.expected.push_back(plain_output(model, requests.back(), setup.context));
    const auto length = requests.back().prompt.size() + run.expected.back().tokens.size();
    totals.slid += static_cast<int64_t>(length) > setup.context ? 1 : 0;
    requests.back().prediction =
        prediction_of(configuration, run.expected.back().tokens, seed + static_cast<uint32_t>(i));
    if (oracle != nullptr) oracle->know(requests.back().prompt, run.expected.back().tokens);
    const auto id = engine->submit(requests.back(), [&](RequestId from, const Progress& progress) {
      run.streamed[from] += progress.text;
      run.streamed_logprobs[from] += progress.logprobs.size();
      run.streamed_prompt_logprobs[from] += progress.prompt_logprobs.size();
      if (progress.completion != nullptr) run.completions[from] = *progress.completion;
    });
    ASSERT_TRUE(id.ok()) << id.error().message;
    run.ids.push_back(*id);
    const unsigned steps = arrive_late(configuration) ? random() % 6 : 0;
    for (unsigned step = 0; step < steps; ++step) engine->step();
  }
  while (engine->step()) {
    const Status status = cache->check_invariants();
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  ASSERT_NO_FATAL_FAILURE(compare(run, requests));
  for (const auto& [id, completion] : run.completions) {
    totals.steps += completion.speculation.steps;
    totals.committed += completion.speculation.committed;
    totals.drafted += completion.speculation.drafted;
    totals.accepted += completion.speculation.accepted;
  }
  ASSERT_EQ(engine->free_pages(), all_pages);
}

}  // namespace outrider
