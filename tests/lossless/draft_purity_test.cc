// SPDX-License-Identifier: Apache-2.0
// The trees of a drafter with a network are a function of the text and the seed, to the last bit of their
// probabilities. This holds with and without other sequences, after rejections, after cached pages of others,
// and after preemption. One stale, missing or misplaced entry of its caches changes a tree, though it never
// changes the output.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "config/methods.h"
#include "tests/lossless/lossless.h"
#include "tests/lossless/test_heads.h"
#include "tests/support/drafter_wrapper.h"
#include "tests/support/tree_recorder.h"

namespace outrider {
namespace {

// Gives the drafter wrong features: each token after the first of a step gets the features of the first.
class Confused final : public DrafterWrapper {
 public:
  using DrafterWrapper::DrafterWrapper;

  void absorb(std::span<const CommittedFeatures> committed) override {
    for (CommittedFeatures one : committed) {
      const std::vector<int> rows(one.rows.size(), one.rows.empty() ? 0 : one.rows.front());
      one.rows = rows;
      DrafterWrapper::absorb({&one, 1});
    }
  }
};

// Asks the drafter about few texts, as a policy does that seldom expects drafts to pay.
class Seldom final : public DrafterWrapper {
 public:
  using DrafterWrapper::DrafterWrapper;

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].tokens.size() % 23 != 0) continue;
      OUTRIDER_RETURN_IF_ERROR(DrafterWrapper::draft(requests.subspan(i, 1), trees.subspan(i, 1)));
    }
    return {};
  }
};

struct Recording {
  Trees trees;
  std::vector<Completion> completions;
};

// Null, and a failure of the running test, if they cannot be opened.
std::unique_ptr<EngineParts> open_parts(const Variant& variant, const Workload& workload) {
  auto parts = open_variant({.weights = WeightPrecision::kF32}, variant, workload.target);
  if (parts.ok()) return std::move(*parts);
  ADD_FAILURE() << describe(variant) << ": " << parts.error().message;
  return nullptr;
}

enum class Change { kNone, kConfused, kSeldom };

Recording run_recorded(const Variant& variant, const Workload& workload, Change change = Change::kNone) {
  Recording run;
  auto parts = open_parts(variant, workload);
  if (parts == nullptr) return run;
  if (change == Change::kConfused) parts->drafter = std::make_shared<Confused>(parts->drafter);
  parts->drafter = std::make_shared<TreeRecorder>(parts->drafter, run.trees);
  if (change == Change::kSeldom) parts->drafter = std::make_shared<Seldom>(parts->drafter);
  run.completions = run_engine(*Engine::assemble(std::move(parts)), workload, describe(variant));
  return run;
}

// Runs every request by itself, in an engine that has seen no other.
Recording run_alone(Variant variant, const Workload& workload) {
  Recording all;
  variant.batch = 1;
  variant.threads = 1;
  for (size_t i = 0; i < workload.token_prompts.size(); ++i) {
    Workload one = workload;
    one.token_prompts = {workload.token_prompts[i]};
    one.sampling.seed += i;
    Recording run = run_recorded(variant, one);
    all.trees.merge(run.trees);
    all.completions.push_back(run.completions.at(0));
  }
  return all;
}

struct Agreement {
  int compared = 0, different = 0;
};
Agreement compare(const Trees& expected, const Trees& found) {
  Agreement agreement;
  for (const auto& [question, drafted] : found) {
    const auto same = expected.find(question);
    if (same == expected.end()) continue;
    ++agreement.compared;
    agreement.different += same->second == drafted ? 0 : 1;
  }
  return agreement;
}

// A drafter with trees that depend only on text and seed.
struct Pure {
  std::string name, speculative;
  std::unique_ptr<FakeHead> (*make)() = nullptr;  // null: its files belong to another small model
  std::string target = small_target();
};

std::vector<Pure> pure_drafters() {
  std::vector<Pure> all = {{"draft_target", "draft_target"},
                           {"early_exit", "early_exit,exit_layer=1,assistant_confidence_threshold=1e-300"}};
  std::vector<HeadCase> made = head_cases();
  made.push_back(pard_case());
  for (const HeadCase& one : made) all.push_back({one.name, method_key(one.method), one.make});
  all.push_back({"assistant", "assistant", [] { return make_assistant(false); }, gemma_target()});
  all.push_back({"assistant_clusters", "assistant", [] { return make_assistant(true); }, gemma_target()});
  return all;
}

class DraftPurity : public testing::TestWithParam<Pure> {
 protected:
  DraftPurity() {
    if (GetParam().make == nullptr) return;
    head_ = GetParam().make();
    path_ = head_->write();
  }

  static Workload text_workload() {
    Workload workload = token_workload(1.0);
    workload.target = GetParam().target;
    return workload;
  }

  std::vector<Variant> others(const Variant& alone) const {
    std::vector<Variant> all(6, alone);
    for (Variant& one : all) one.threads = 1;
    all[0].batch = 5;
    all[0].threads = 2;
    all[1].page_size = 1;
    all[2].page_size = 3;
    all[2].batch = 3;
    all[3].prefill_chunk = 5;
    all[3].batch = 2;
    all[4].prefill_chunk = 19;
    all[4].page_size = 4;
    all[5].page_size = 4;
    all[5].batch = 3;
    all[5].prefill_chunk = 5;
    all[5].preempt_every = 5;
    return all;
  }

  std::unique_ptr<FakeHead> head_;
  std::filesystem::path path_ = small_target() + "_tied";
};

TEST_P(DraftPurity, TreesAreThoseOfTheTextAlone) {
  const Workload workload = text_workload();
  for (const char* shape : {",max_draft_len=3", ",expansion=[3,2]",
                            ",max_draft_len=4,dynamic_tree_max_topK=5,max_total_draft_tokens=24"}) {
    for (const AcceptanceRule rule : {AcceptanceRule::kCoupled, AcceptanceRule::kRejection}) {
      const Variant variant{.speculative = GetParam().speculative + shape, .acceptance = rule, .head = path_};
      const Recording alone = run_alone(variant, workload);
      for (const Variant& other : others(variant)) {
        const Recording found = run_recorded(other, workload);
        const Agreement agreement = compare(alone.trees, found.trees);
        ASSERT_EQ(agreement.different, 0)
            << describe(other) << ": of " << agreement.compared << " trees for the same text";
        // A sequence that was preempted or found cached pages drafts in other steps, and takes other paths
        // under the rejection rule.
        const bool returns = other.preempt_every > 0;
        EXPECT_GT(agreement.compared, returns ? 10 : 50) << describe(other);
        if (returns) continue;
        for (size_t i = 0; i < alone.completions.size(); ++i) {
          if (found.completions[i].cached_tokens > 0) continue;
          EXPECT_EQ(alone.completions[i].tokens, found.completions[i].tokens) << describe(other);
        }
      }
    }
  }
}

TEST_P(DraftPurity, AStateOfAnotherTokenIsSeen) {
  const Workload workload = text_workload();
  const Variant variant{.speculative = GetParam().speculative + ",max_draft_len=3", .head = path_};
  const auto parts = open_parts(variant, workload);
  ASSERT_NE(parts, nullptr);
  if (parts->drafter->traits().features.count() == 0) return;  // it gets no features
  const Recording alone = run_alone(variant, workload);
  Variant chunks = variant;
  chunks.prefill_chunk = 5;
  EXPECT_GT(compare(alone.trees, run_recorded(chunks, workload, Change::kConfused).trees).different, 0);
}

TEST_P(DraftPurity, WhatIsReadLaterGivesTheSameTrees) {
  const Workload workload = text_workload();
  const Variant variant{.speculative = GetParam().speculative + ",expansion=[3,2]", .head = path_};
  const Recording alone = run_alone(variant, workload);
  for (const Variant& other : others(variant)) {
    const Recording found = run_recorded(other, workload, Change::kSeldom);
    const Agreement agreement = compare(alone.trees, found.trees);
    EXPECT_EQ(agreement.different, 0) << describe(other) << ": of " << agreement.compared;
    EXPECT_GE(agreement.compared, 3) << describe(other);
    for (size_t i = 0; i < alone.completions.size(); ++i)
      EXPECT_EQ(alone.completions[i].tokens, found.completions[i].tokens) << describe(other);
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, DraftPurity, testing::ValuesIn(pure_drafters()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace outrider
