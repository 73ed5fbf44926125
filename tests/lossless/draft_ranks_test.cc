// SPDX-License-Identifier: Apache-2.0
// Draft models that draft on separate ranks, here threads. For every rule and number of ranks the text equals
// the text of drafts made with the target, and a draft rank that ends changes nothing but speed.
#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/sanitized.h"
#include "config/methods.h"
#include "drafters/ranked/draft_worker.h"
#include "models/backend/device/make_backends.h"
#include "models/team/rank_worker.h"
#include "models/team/ranked_model.h"
#include "outrider/engine.h"
#include "ranks/mortal_rank.h"
#include "ranks/thread_ranks.h"
#include "tests/support/toy_constraint.h"

namespace outrider::draft_ranks_test {
namespace {

const std::string kFolder = std::string(OUTRIDER_SOURCE_DIR) + "/models/";

struct Case {
  std::string method = "draft_target";
  int shards = 1;
  int stages = 1;
  int draft_ranks = 0;
  DraftAhead ahead = DraftAhead::kAuto;
};

EngineOptions options_for(const Case& what) {
  EngineOptions options;
  options.model = kFolder + "outrider-small";
  options.threads = what.shards * what.stages + what.draft_ranks;
  options.tensor_parallel = what.shards;
  options.pipeline_parallel = what.stages;
  options.draft_ranks = what.draft_ranks;
  options.draft_ahead = what.ahead;
  options.context = 192;
  options.max_batch = 8;
  options.page_size = 4;
  SpeculativeOptions& speculation = options.speculation;
  speculation.decoding_type = *find_method(what.method);
  speculation.speculative_model = kFolder + "outrider-draft";
  speculation.speculative_models = {kFolder + "outrider-draft-a", kFolder + "outrider-draft-b"};
  speculation.combine = {Method::kNGram, Method::kDraftTarget};
  speculation.tree.kind = TreeKind::kDynamic;
  speculation.tree.max_total_draft_tokens = 10;
  return options;
}

struct Work {
  size_t batch = 8;
  double temperature = 1;
  AcceptanceRule rule = AcceptanceRule::kCoupled;
  bool is_constrained = false;
  int64_t tokens = 24;
};

const char* const kPrompts[] = {"Once upon a time, Lily found a red ball. Lily and the red ball",
                                "The cat sat on the",
                                "Tom and Sue went to the park. Tom and Sue",
                                "One day a bird",
                                "The little dog was very happy because the little dog",
                                "Ben has a toy. Ben has",
                                "It was dark",
                                "Mom said to Tim that Mom"};

using Texts = std::vector<std::vector<TokenId>>;

Texts decode(Engine& engine, const Work& work) {
  Texts texts(work.batch);
  for (size_t i = 0; i < work.batch; ++i) {
    Request request;
    request.prompt = engine.tokenize(kPrompts[i]);
    request.max_tokens = work.tokens + static_cast<int64_t>(i);
    request.ignore_eos = true;
    request.sampling.temperature = work.temperature;
    request.sampling.seed = 5 + i;
    request.speculation.acceptance = work.rule;
    if (work.is_constrained) {
      request.constraint = ToyConstraint::make({.language = ToyLanguage::kAutomaton,
                                                .seed = i,
                                                .vocabulary = static_cast<TokenId>(engine.info().vocab_size),
                                                .eos = 0});
    }
    const auto submitted = engine.submit(request, [&, i](RequestId, const Progress& progress) {
      if (progress.completion != nullptr) texts[i] = progress.completion->tokens;
    });
    EXPECT_TRUE(submitted.ok()) << submitted.error().message;
  }
  while (engine.step()) {
  }
  return texts;
}

const Work kAllWork[] = {{.batch = 1, .temperature = 0},
                         {},
                         {.rule = AcceptanceRule::kRejection, .is_constrained = true},
                         {.batch = 1},
                         {.temperature = 0},
                         {.rule = AcceptanceRule::kRejection},
                         {.rule = AcceptanceRule::kBlock},
                         {.is_constrained = true}};
// Ranks wait for each other much longer under a sanitizer, where the first three take all roads.
const std::span<const Work> kWork = std::span(kAllWork).first(kIsSanitized ? 3 : std::size(kAllWork));

struct Outcome {
  std::vector<Texts> texts;
  int64_t steps = 0;
  int64_t foreseen = 0;
  double acceptance = 0;  // accepted drafts
};

Outcome run(const Case& what) {
  Outcome result;
  const auto engine = Engine::open(options_for(what));
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  if (!engine.ok()) return result;
  for (const Work& work : kWork) result.texts.push_back(decode(**engine, work));
  result.steps = (*engine)->status().steps;
  result.foreseen = (*engine)->status().foreseen_drafts;
  result.acceptance = static_cast<double>((*engine)->status().speculation.accepted);
  return result;
}

TEST(DraftRanks, TheTextIsThatOfDraftsMadeWithTheTarget) {
  const char* const methods[] = {"spec_infer", "draft_target", "combined"};
  for (const char* method : std::span(methods).first(kIsSanitized ? 1 : std::size(methods))) {
    const Outcome here = run({.method = method});
    ASSERT_EQ(here.texts.size(), std::size(kWork));
    EXPECT_GT(here.acceptance, 0);
    for (const Case& other : {Case{method, 1, 1, 1, DraftAhead::kOn}, Case{method, 1, 1, 3, DraftAhead::kOff},
                              Case{method, 2, 1, 2, DraftAhead::kOn}, Case{method, 2, 2, 1},
                              Case{method, 1, 2, 2, DraftAhead::kOn}}) {
      SCOPED_TRACE(other.method + ", " + std::to_string(other.shards) + " shards, " +
                   std::to_string(other.stages) + " stages, " + std::to_string(other.draft_ranks) +
                   " draft ranks");
      const Outcome there = run(other);
      EXPECT_EQ(there.texts, here.texts);
      // Trees are the same, but for steps that verify a part of the batch.
      EXPECT_EQ(there.acceptance, here.acceptance);
      EXPECT_TRUE(other.ahead != DraftAhead::kOn || there.foreseen >= std::ssize(kWork) - 2)
          << there.foreseen;
      EXPECT_TRUE(other.ahead != DraftAhead::kOff || there.foreseen == 0) << there.foreseen;
    }
  }
}

// Where time has a price, estimates of what drafts are worth go along with the orders.
TEST(DraftRanks, ThePolicyAutoKeepsTheText) {
  const auto texts = [](const Case& what) {
    EngineOptions options = options_for(what);
    options.speculation.is_auto = what.method == "auto";
    const auto engine = Engine::open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    std::vector<Texts> all;
    for (const double temperature : {0.0, 1.0}) all.push_back(decode(**engine, {.temperature = temperature}));
    return all;
  };
  const std::vector<Texts> expected = texts({.method = "none"});
  EXPECT_EQ(texts({.method = "auto", .draft_ranks = 2}), expected);
  EXPECT_EQ(texts({.method = "auto", .shards = 2, .draft_ranks = 1}), expected);
}

// A device for each rank of the target and for each rank that drafts.
TEST(DraftRanks, EachHasADevice) {
  const auto kernels = select_device_kernels();
  if (!kernels.ok()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  const auto texts = [&](const Case& what, ComputeDevice device) {
    EngineOptions options = options_for(what);
    options.weights = WeightPrecision::kQ4;
    options.kernels = std::string((*kernels)->name);
    options.device = device;
    const auto engine = Engine::open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return engine.ok() ? decode(**engine, {.batch = 3, .tokens = 8}) : Texts();
  };
  const Texts expected = texts({.method = "none"}, ComputeDevice::kCpu);
  EXPECT_EQ(texts({.draft_ranks = 2}, ComputeDevice::kEmulated), expected);
  EXPECT_EQ(texts({.shards = 2, .draft_ranks = 1}, ComputeDevice::kEmulated), expected);
}

// After some steps in which all sequences are verified, they take turns, so that steps become more.
TEST(DraftRanks, SequencesTakeTurns) {
  const auto steps = [](int draft_ranks) {
    const auto engine = Engine::open(options_for({.draft_ranks = draft_ranks, .ahead = DraftAhead::kOff}));
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    decode(**engine, {.tokens = 90});
    return (*engine)->status().steps;
  };
  EXPECT_GT(steps(2), steps(0) + 5);
}

// A job of threads with draft ranks that may end before an exchange.
class MortalJob {
 public:
  // end: the exchange before which rank `victim` ends
  MortalJob(const Case& what, int victim, int64_t end)
      : first_(what.shards * what.stages), job_(first_ + what.draft_ranks, what.draft_ranks) {
    for (int rank = 1; rank < first_ + what.draft_ranks; ++rank) {
      threads_.emplace_back([this, rank, end = rank == victim ? end : 0] {
        MortalRank own(job_.of(rank), end);
        try {
          rank < first_ ? serve_rank(own) : serve_drafts(own);
        } catch (const RankFailure&) {
        }
      });
    }
  }
  ~MortalJob() {
    end_job(job_.of(0));
    for (std::thread& thread : threads_) thread.join();
  }

  std::shared_ptr<Communicator> root() {
    return {&job_.of(0), [](Communicator*) {}};
  }

 private:
  int first_;
  ThreadRanks job_;
  std::vector<std::thread> threads_;
};

TEST(DraftRanks, OneThatEndsCostsSpeedAlone) {
  const Work work{.batch = 4, .tokens = 40};
  const auto plain = Engine::open(options_for({.method = "none"}));
  ASSERT_TRUE(plain.ok());
  const Texts expected = decode(**plain, work);
  std::mt19937 random(11);
#ifdef OUTRIDER_SLOW_TEST
  constexpr int kEnds = 300;
#else
  constexpr int kEnds = 12;
#endif
  for (int kill = 0; kill < kEnds; ++kill) {
    const Case what{kill % 3 == 0 ? "spec_infer" : "draft_target", 1 + kill % 2, 1, 1 + kill % 3,
                    kill % 4 < 2 ? DraftAhead::kOn : DraftAhead::kOff};
    const int victim = what.shards + static_cast<int>(random() % static_cast<uint32_t>(what.draft_ranks));
    // Opening a drafter takes four exchanges, and a rank may have two.
    MortalJob job(what, victim, static_cast<int64_t>(9 + random() % 60));
    EngineOptions options = options_for(what);
    options.ranks = job.root();
    options.threads = 1;
    const auto engine = Engine::open(options);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    EXPECT_EQ(decode(**engine, work), expected) << "kill " << kill;
  }
}

TEST(DraftRanks, OneThatEndsBeforeItDraftsIsAnError) {
  const Case what{.draft_ranks = 2};
  MortalJob job(what, 2, 3);
  EngineOptions options = options_for(what);
  options.ranks = job.root();
  const auto engine = Engine::open(options);
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.error().message.find("it has ended"), std::string::npos) << engine.error().message;
}

TEST(DraftRanks, WhatCannotDraftThereIsRefused) {
  EngineOptions ngram = options_for({.method = "ngram", .draft_ranks = 1});
  EngineOptions missing = options_for({.draft_ranks = 1});
  missing.speculation.speculative_model = kFolder + "nothing";
  for (const auto& [options, reason] :
       {std::pair{ngram, "draft model"}, std::pair{missing, "no such model"}}) {
    const auto engine = Engine::open(options);
    ASSERT_FALSE(engine.ok());
    EXPECT_NE(engine.error().message.find(reason), std::string::npos) << engine.error().message;
  }
}

}  // namespace
}  // namespace outrider::draft_ranks_test
