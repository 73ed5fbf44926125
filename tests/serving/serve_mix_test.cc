// SPDX-License-Identifier: Apache-2.0
// 32 requests of every kind at once with too few pages. Each must get the tokens, log-probabilities and
// finish reason that it gets without others and without speculation.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_parts.h"
#include "tests/serving/serve_mix.h"

namespace outrider {
namespace {

#ifdef OUTRIDER_SLOW_TEST
constexpr uint32_t kSeeds = 30;
#else
constexpr uint32_t kSeeds = 2;
#endif

// The requests of a seed. They are made anew for every use, since a constraint serves one sequence.
class Mix {
 public:
  Mix(const Engine& engine, uint32_t seed) : engine_(engine), seed_(seed) {}

  Request request(int index) const {
    std::mt19937 random(seed_ * 1000 + static_cast<uint32_t>(index));
    const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
    Request request;
    request.prompt = prompt(random);
    request.max_tokens = 1 + below(40);
    request.ignore_eos = below(2) == 0;
    SamplingParams& sampling = request.sampling;
    const double temperatures[] = {0.0, 0.7, 1.0};
    sampling.temperature = temperatures[below(3)];
    sampling.seed = random();
    if (below(3) == 0) sampling.top_p = 0.9;
    if (below(4) == 0) sampling.top_k = 20;
    if (below(4) == 0) sampling.min_p = 0.05;
    if (below(4) == 0) sampling.repetition_penalty = 1.2;
    if (below(4) == 0) sampling.frequency_penalty = 0.3;
    if (below(6) == 0) sampling.logit_bias = {{263, 3.0f}, {15, -100.0f}};
    if (below(4) == 0) request.stop = {below(2) == 0 ? " the" : ".", "\n\n"};
    if (below(6) == 0) request.stop_tokens = {263, 15};
    request.sample_index = random() % 4;
    if (below(2) == 0) request.logprobs = below(6);
    if (below(4) == 0) request.prompt_logprobs = below(4);
    request.constraint = constraint(random);
    speculate(random, request);
    return request;
  }

 private:
  // Some share a beginning; some are longer than a prefill chunk.
  std::vector<TokenId> prompt(std::mt19937& random) const {
    const std::vector<std::string> prompts = mixed_prompts(12);
    std::vector<TokenId> tokens = engine_.tokenize(prompts[random() % prompts.size()]);
    if (random() % 3 == 0) {
      const std::vector<TokenId> shared = engine_.tokenize(prompts[4] + prompts[10] + prompts[4]);
      tokens.insert(tokens.begin(), shared.begin(), shared.end());
    }
    tokens.resize(std::min<size_t>(tokens.size(), 200));
    return tokens;
  }

  std::shared_ptr<TokenConstraint> constraint(std::mt19937& random) const {
    const ToyLanguage languages[] = {ToyLanguage::kAny, ToyLanguage::kAny, ToyLanguage::kEven,
                                     ToyLanguage::kAutomaton, ToyLanguage::kPhrases};
    return ToyConstraint::make({.language = languages[random() % 5],
                                .seed = random(),
                                .vocabulary = static_cast<TokenId>(engine_.info().vocab_size),
                                .eos = engine_.parts().target->config().stop_tokens.front()});
  }

  void speculate(std::mt19937& random, Request& request) const {
    RequestSpeculation& speculation = request.speculation;
    speculation.enabled = random() % 4 != 0;
    if (random() % 3 == 0) speculation.max_draft_tokens = 1 + static_cast<int>(random() % 5);
    if (random() % 4 == 0) speculation.max_draft_len = 1 + static_cast<int>(random() % 4);
    if (random() % 4 == 0) speculation.max_children = 1 + static_cast<int>(random() % 2);
    if (random() % 4 == 0) speculation.methods = {engine_.info().sources.front()};
    if (random() % 4 == 0) speculation.is_auto = !engine_.parts().costs.empty() && random() % 2 == 0;
    if (request.sampling.temperature == 0.0 && random() % 2 == 0)
      speculation.acceptance = AcceptanceRule::kRejection;
  }

  const Engine& engine_;
  uint32_t seed_;
};

int64_t pages_of_demand(const Engine& engine, const Mix& mix) {
  int64_t pages = 0;
  for (int i = 0; i < kConcurrent; ++i) {
    const Request request = mix.request(i);
    const int64_t entries =
        static_cast<int64_t>(request.prompt.size()) + request.max_tokens + max_nodes(engine.parts());
    pages += (entries + kPageSize - 1) / kPageSize;
  }
  return pages;
}

// The streamed parts of an answer, which must equal its completion in the end.
struct Streamed {
  std::string text;
  std::vector<TokenId> tokens;
  std::vector<TokenLogprobs> logprobs, prompt_logprobs;
  Completion completion;
  int completions = 0;

  void add(const Progress& progress) {
    text += progress.text;
    tokens.insert(tokens.end(), progress.tokens.begin(), progress.tokens.end());
    logprobs.insert(logprobs.end(), progress.logprobs.begin(), progress.logprobs.end());
    prompt_logprobs.insert(prompt_logprobs.end(), progress.prompt_logprobs.begin(),
                           progress.prompt_logprobs.end());
    if (progress.completion == nullptr) return;
    completion = *progress.completion;
    ++completions;
  }
};

std::vector<Streamed> run_together(Engine& engine, const Mix& mix, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Streamed> all(kConcurrent);
  for (int i = 0; i < kConcurrent; ++i) {
    const auto id = engine.submit(mix.request(i), [&all, i](RequestId, const Progress& progress) {
      all[static_cast<size_t>(i)].add(progress);
    });
    EXPECT_TRUE(id.ok()) << id.error().message;
    for (unsigned steps = random() % 3 == 0 ? random() % 4 : 0; steps > 0; --steps) engine.step();
  }
  while (engine.step()) {
    const Status status = engine.parts().cache->check_invariants();
    EXPECT_TRUE(status.ok()) << status.error().message;
    if (!status.ok()) break;
  }
  return all;
}

void expect_same(const std::vector<TokenLogprobs>& found, const std::vector<TokenLogprobs>& alone,
                 const std::string& what) {
  ASSERT_EQ(found.size(), alone.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].logprob, alone[i].logprob) << what;
    ASSERT_EQ(found[i].top, alone[i].top) << what;
    ASSERT_EQ(found[i].rank, alone[i].rank) << what;
  }
}

void expect_same(const Completion& alone, const Streamed& served, const std::string& what) {
  ASSERT_EQ(served.completions, 1) << what;
  const Completion& completion = served.completion;
  ASSERT_EQ(completion.tokens, alone.tokens) << what;
  ASSERT_EQ(served.tokens, alone.tokens) << what;
  ASSERT_EQ(completion.text, alone.text) << what;
  ASSERT_EQ(served.text, alone.text) << what;
  ASSERT_EQ(completion.finish_reason, alone.finish_reason) << what;
  expect_same(completion.logprobs, alone.logprobs, what);
  expect_same(served.logprobs, alone.logprobs, what);
  expect_same(completion.prompt_logprobs, alone.prompt_logprobs, what);
  expect_same(served.prompt_logprobs, alone.prompt_logprobs, what);
}

class ServeMix : public testing::TestWithParam<const char*> {};

TEST_P(ServeMix, EveryRequestGetsWhatItGetsAlone) {
  const std::string drafter = GetParam();
  const auto plain = open_engine(mix_options("None"));
  int64_t accepted = 0, preemptions = 0, cached = 0;
  // How much the policy drafts depends on time: it gets further seeds until it has drafted enough.
  const uint32_t max_seeds = drafter == "auto" ? 5 * kSeeds : kSeeds;
  for (uint32_t seed = 1; seed <= kSeeds || (accepted <= 50 && seed <= max_seeds); ++seed) {
    EngineOptions options = mix_options(drafter);
    options.kv_pages = static_cast<int64_t>(kShareOfDemand *
                                            static_cast<double>(pages_of_demand(*plain, Mix(*plain, seed))));
    const auto engine = open_engine(std::move(options), /*preempt_every=*/1);
    const Mix mix(*engine, seed);
    const std::vector<Streamed> served = run_together(*engine, mix, seed);
    for (int i = 0; i < kConcurrent; ++i) {
      Request request = mix.request(i);
      request.speculation = RequestSpeculation();
      request.speculation.enabled = false;
      const auto alone = plain->generate(request);
      ASSERT_TRUE(alone.ok()) << alone.error().message;
      const Streamed& one = served[static_cast<size_t>(i)];
      expect_same(*alone, one, drafter + ", seed " + std::to_string(seed) + ", request " + std::to_string(i));
      if (HasFatalFailure()) return;
      accepted += one.completion.speculation.accepted;
      cached += one.completion.cached_tokens;
    }
    preemptions += engine->status().preemptions;
    EXPECT_EQ(engine->free_pages(), engine->parts().cache->shape().page_count);
  }
  EXPECT_GT(accepted, 50);
  EXPECT_GT(cached, 0);
  EXPECT_GT(preemptions, kConcurrent);
}

INSTANTIATE_TEST_SUITE_P(Drafters, ServeMix, testing::Values("DraftTarget", "NGram", "EarlyExit", "auto"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace outrider
