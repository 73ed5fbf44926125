// SPDX-License-Identifier: Apache-2.0
#include "speculation/policy/speculation_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

namespace outrider::speculation_policy_test {
namespace {

constexpr int kMaxRows = 1000;  // no limit

// A simulated machine and a drafter of chains: a pass of r rows takes pass(r) ms, and a drafted level takes
// level_ms. A drafted token is accepted with a probability that the drafter's confidence states more or less
// well.
struct World {
  double pass_of_one = 1.0;
  double per_row = 0.02;
  double level_ms = 0.15;
  double mean_acceptance = 0.7;
  double spread = 0.25;       // deviation of the true acceptance from its mean, which the drafter knows
  double exaggeration = 0.0;  // added to the drafter's confidence
  double noise = 0.05;        // standard deviation of the logarithm of all times
  double draft_ms = 0.0;      // time of a draft without its levels
  double resume_ms = 0.0;     // additional time of the first draft of a sequence
  double odd_resume_ms = -1;  // resume_ms of every other sequence; -1: the same
  double missed_ms = 0.0;     // additional time of a draft per token missed since the last draft
  double text_spread = 0.0;   // deviation of the mean acceptance of single sequences from mean_acceptance

  double pass(double rows) const { return pass_of_one + per_row * (rows - 1.0); }
};

struct Outcome {
  double tokens = 0.0;
  double ms = 0.0;
  double rate() const { return tokens / ms; }
};

class Simulation {
 public:
  Simulation(const World& world, uint64_t seed) : world_(world), random_(seed) {}

  Outcome run(SpeculationPolicy& policy, int sequences, int tokens_each, int max_draft_len) {
    Outcome outcome;
    for (int s = 0; s < sequences; ++s) {
      const auto id = static_cast<uint64_t>(next_id_++);
      text_acceptance_ = world_.mean_acceptance;
      if (world_.text_spread > 0.0) text_acceptance_ += world_.text_spread * (2.0 * uniform_(random_) - 1.0);
      unread_ms_ = s % 2 == 1 && world_.odd_resume_ms >= 0.0 ? world_.odd_resume_ms : world_.resume_ms;
      // The prompt's length tells how long reading it takes.
      const double prompt = world_.missed_ms > 0.0 ? unread_ms_ / world_.missed_ms : 100.0;
      for (int tokens = 0; tokens < tokens_each;) {
        const int committed =
            step(policy, id, static_cast<int64_t>(prompt) + tokens, max_draft_len, outcome.ms);
        tokens += committed;
        outcome.tokens += committed;
      }
      policy.forget(id);
    }
    return outcome;
  }
  // Steps that drafted.
  int drafts() const { return drafts_; }

 private:
  double noisy(double ms) { return ms * std::exp(world_.noise * normal_(random_)); }

  int step(SpeculationPolicy& policy, uint64_t id, int64_t tokens, int max_draft_len, double& ms) {
    const BatchShape load{.rows = 1.0, .context = 100.0, .sequences = 1.0};
    SpeculationPolicy::Draft draft{.sequence = id, .tokens = tokens, .max_draft_len = max_draft_len};
    policy.plan(load, {&draft, 1}, kMaxRows);
    TokenTree tree(0);
    std::vector<double> truth;
    double draft_ms = draft.max_draft_len > 0 ? noisy(world_.draft_ms + std::exchange(unread_ms_, 0.0)) : 0.0;
    double reached = 1.0;
    for (int level = 0; level < draft.max_draft_len; ++level) {
      if (level > 0 && draft.estimates != nullptr &&
          reached * draft.estimates->continuation(level) <= draft.rate * (world_.level_ms + draft.row_ms)) {
        break;
      }
      draft_ms += noisy(world_.level_ms);
      const double p =
          std::clamp(text_acceptance_ + world_.spread * (2.0 * uniform_(random_) - 1.0), 0.0, 1.0);
      truth.push_back(p);
      const double said = std::clamp(p + world_.exaggeration, 0.01, 0.99);
      tree.add(level, level + 1, said);
      reached *= draft.estimates == nullptr ? said : draft.estimates->estimate(level + 1, said);
    }
    const SpeculationPolicy::Grown grown{.sequence = id, .tree = &tree};
    if (draft.max_draft_len > 0) policy.prune({&grown, 1}, kMaxRows);
    int right = 0;  // nodes that are the target's tokens, also nodes that were cut
    while (right < std::ssize(truth) && uniform_(random_) < truth[static_cast<size_t>(right)]) ++right;
    const int accepted = std::min(right, tree.drafted());
    Verdict verdict;
    for (int i = 0; i <= accepted; ++i) {
      verdict.path.push_back(i);
      verdict.tokens.push_back(i < right ? i + 1 : -1);
    }
    const double pass_ms = noisy(world_.pass(1.0 + tree.drafted()));
    const DraftOutcome outcome{.sequence = id, .verdict = &verdict, .verified = tree.drafted()};
    StepObservation observation{.has_drafted = draft.max_draft_len > 0,
                                .rows = 1.0 + tree.drafted(),
                                .pass_ms = pass_ms,
                                .draft_ms = draft_ms};
    if (draft.max_draft_len > 0) observation.outcomes = {&outcome, 1};
    policy.observe(observation);
    ms += pass_ms + draft_ms;
    if (draft.max_draft_len == 0) unread_ms_ += world_.missed_ms;
    drafts_ += draft.max_draft_len > 0 ? 1 : 0;
    return accepted + 1;
  }

  World world_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> uniform_{0.0, 1.0};
  std::normal_distribution<double> normal_;
  int next_id_ = 1;
  double unread_ms_ = 0.0;
  double text_acceptance_ = 0.0;  // mean of the sequence
  int drafts_ = 0;
};

PassCosts costs_of(const World& world) {
  std::vector<PassCosts::Point> points;
  for (const int rows : {1, 2, 4, 8, 16, 32}) points.push_back({rows, world.pass(rows), 0.0});
  return PassCosts(points);
}

Outcome simulate(const World& world, bool is_auto, int levels, PassCosts costs) {
  SpeculationPolicy policy({.is_auto = is_auto, .max_draft_len = levels}, std::move(costs));
  return Simulation(world, 7).run(policy, 30, 128, levels);
}

Outcome simulate(const World& world, bool is_auto, int levels) {
  return simulate(world, is_auto, levels, costs_of(world));
}

constexpr double kNoSlower = 0.97;
constexpr double kOfBestFixed = 0.93;
constexpr int kMaxLevels = 8;

TEST(SpeculationPolicy, NeverMuchSlowerThanPlain) {
  for (const double acceptance : {0.0, 0.05, 0.15, 0.3, 0.5}) {
    for (const double exaggeration : {0.0, 0.9}) {
      for (const double level_ms : {0.01, 0.15, 0.6}) {
        for (const double per_row : {0.01, 0.1, 0.5}) {
          const World world{.per_row = per_row,
                            .level_ms = level_ms,
                            .mean_acceptance = acceptance,
                            .spread = std::min(0.25, acceptance),
                            .exaggeration = exaggeration};
          const double plain = 1.0 / world.pass(1);
          EXPECT_GE(simulate(world, true, kMaxLevels).rate(), kNoSlower * plain)
              << acceptance << ' ' << exaggeration << ' ' << level_ms << ' ' << per_row;
        }
      }
    }
  }
}

TEST(SpeculationPolicy, AboutAsFastAsTheBestFixedLength) {
  for (const double acceptance : {0.5, 0.7, 0.85, 0.95}) {
    for (const double level_ms : {0.02, 0.1, 0.25}) {
      for (const double per_row : {0.01, 0.05}) {
        const World world{
            .per_row = per_row, .level_ms = level_ms, .mean_acceptance = acceptance, .spread = 0.3};
        double best = 1.0 / world.pass(1);
        for (int levels = 1; levels <= kMaxLevels; ++levels)
          best = std::max(best, simulate(world, false, levels).rate());
        EXPECT_GE(simulate(world, true, kMaxLevels).rate(), kOfBestFixed * best)
            << acceptance << ' ' << level_ms << ' ' << per_row;
      }
    }
  }
}

// Rows that choose experts of no other row cost half a pass each: a level that will not be verified is not
// drafted.
TEST(SpeculationPolicy, LevelsAreWorthTheirRows) {
  constexpr double kOfBest = 0.95;
  for (const double acceptance : {0.3, 0.7, 0.8, 0.9}) {
    const World world{.per_row = 0.47, .level_ms = 0.06, .mean_acceptance = acceptance, .spread = 0.1};
    double best = 1.0 / world.pass(1);
    for (int levels = 1; levels <= kMaxLevels; ++levels)
      best = std::max(best, simulate(world, false, levels).rate());
    EXPECT_GE(simulate(world, true, kMaxLevels).rate(), kOfBest * best) << acceptance;
  }
}

// Texts on which a drafter fails say little about the next one if it was good in training.
TEST(SpeculationPolicy, ADrafterThatPromisesMuchIsTriedWithEveryText) {
  const auto drafts_after_failure = [](double agreement) {
    const World world{.level_ms = 0.6, .mean_acceptance = 0.0, .spread = 0.0};
    SpeculationPolicy policy({.is_auto = true, .max_draft_len = kMaxLevels, .agreement = agreement},
                             costs_of(world));
    Simulation simulation(world, 7);
    simulation.run(policy, 1, 96, kMaxLevels);
    const int before = simulation.drafts();
    simulation.run(policy, 1, 64, kMaxLevels);
    return simulation.drafts() - before;
  };
  EXPECT_EQ(drafts_after_failure(0.0), 0);
  EXPECT_GE(drafts_after_failure(0.6), 1);
  EXPECT_LE(drafts_after_failure(0.6), 6);
}

// The first reading of a text may meet a sleeping thread and take many times the usual time. After a first
// text that accepts little as well, drafting is tried with the next.
TEST(SpeculationPolicy, AStalledFirstReadingDoesNotEndDrafting) {
  World world{
      .pass_of_one = 3.4, .per_row = 0.25, .level_ms = 0.5, .mean_acceptance = 0.3, .resume_ms = 16.0};
  SpeculationPolicy policy({.is_auto = true, .max_draft_len = kMaxLevels, .agreement = 0.6}, costs_of(world));
  Simulation(world, 7).run(policy, 1, 24, kMaxLevels);
  world.mean_acceptance = 0.75;
  world.resume_ms = 0.5;
  const Outcome usual = Simulation(world, 8).run(policy, 4, 64, kMaxLevels);
  EXPECT_GE(usual.rate(), 1.3 / world.pass_of_one);
}

// Where texts differ, a drafter that had bad luck with the first ones is not given up.
TEST(SpeculationPolicy, GoodTextsAreFoundAfterBadOnes) {
  const World world{.pass_of_one = 3.4,
                    .per_row = 0.25,
                    .level_ms = 0.5,
                    .mean_acceptance = 0.4,
                    .spread = 0.3,
                    .noise = 0.3,
                    .resume_ms = 2.0,
                    .missed_ms = 0.03,
                    .text_spread = 0.35};
  const auto rate = [&](double agreement) {
    Outcome all;
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      SpeculationPolicy policy({.is_auto = true, .max_draft_len = kMaxLevels, .agreement = agreement},
                               costs_of(world));
      const Outcome one = Simulation(world, seed).run(policy, 24, 80, kMaxLevels);
      all.tokens += one.tokens;
      all.ms += one.ms;
    }
    return all.rate();
  };
  EXPECT_GE(rate(0.6), 1.015 * rate(0.0));
}

TEST(SpeculationPolicy, APromiseThatIsNotKeptCostsLittle) {
  constexpr double kPromised = 0.98;
  for (const double acceptance : {0.0, 0.05, 0.15}) {
    for (const double exaggeration : {0.0, 0.9}) {
      for (const double level_ms : {0.01, 0.15, 0.6}) {
        const World world{.level_ms = level_ms,
                          .mean_acceptance = acceptance,
                          .spread = acceptance,
                          .exaggeration = exaggeration};
        SpeculationPolicy policy({.is_auto = true, .max_draft_len = kMaxLevels, .agreement = 0.9},
                                 costs_of(world));
        const double rate = Simulation(world, 7).run(policy, 30, 128, kMaxLevels).rate();
        EXPECT_GE(rate, kPromised / world.pass(1)) << acceptance << ' ' << exaggeration << ' ' << level_ms;
      }
    }
  }
}

// The costs were measured when the machine was twice as fast, and their slope is wrong too.
TEST(SpeculationPolicy, CorrectsWrongCosts) {
  const World world{.per_row = 0.3, .level_ms = 0.15, .mean_acceptance = 0.6};
  PassCosts wrong({{1, 0.5, 0.0}, {8, 0.5, 0.0}, {32, 0.6, 0.0}});
  double best = 1.0 / world.pass(1);
  for (int levels = 1; levels <= kMaxLevels; ++levels)
    best = std::max(best, simulate(world, false, levels).rate());
  EXPECT_GE(simulate(world, true, kMaxLevels, wrong).rate(), 0.9 * best);
}

// A small target with a draft model: a draft takes time in addition to its levels, and the drafter must first
// read the prompt and the tokens decoded plainly. Outputs are short, and the costs were measured at another
// pace, with wrong times for passes of several rows.
double rate_of_short_outputs(const World& world, const PassCosts& costs, bool is_auto, int levels) {
  Outcome all;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SpeculationPolicy policy({.is_auto = is_auto, .max_draft_len = levels}, costs);
    const Outcome one = Simulation(world, seed).run(policy, 24, 90, levels);
    all.tokens += one.tokens;
    all.ms += one.ms;
  }
  return all.rate();
}

TEST(SpeculationPolicy, FindsWhatPaysInShortOutputs) {
  for (const double acceptance : {0.0, 0.3, 0.5, 0.6, 0.7, 0.8}) {
    const World world{.per_row = 0.04,
                      .level_ms = 0.25,
                      .mean_acceptance = acceptance,
                      .spread = std::min(0.3, acceptance),
                      .noise = 0.12,
                      .draft_ms = 0.15,
                      .resume_ms = 4.0,
                      .missed_ms = 0.06};
    const PassCosts right = costs_of(world);
    const double plain = rate_of_short_outputs(world, right, false, 0);
    double best = plain;
    for (int levels = 1; levels <= 5; ++levels)
      best = std::max(best, rate_of_short_outputs(world, right, false, levels));
    for (const double pace : {0.7, 1.0, 1.6}) {
      for (const double tilt : {0.9, 1.3}) {
        std::vector<PassCosts::Point> points = right.points();
        for (auto& point : points) point.ms *= point.rows == 1 ? pace : pace * tilt;
        const double rate = rate_of_short_outputs(world, PassCosts(points), true, kMaxLevels);
        EXPECT_GE(rate, kNoSlower * plain) << acceptance << ' ' << pace << ' ' << tilt;
        EXPECT_GE(rate, kOfBestFixed * best) << acceptance << ' ' << pace << ' ' << tilt;
      }
    }
  }
}

// A draft model that reads prompts; every other sequence has a prompt of another length.
World reading_world(double acceptance, double resume_ms, double odd_resume_ms) {
  return {.per_row = 0.1,
          .level_ms = 0.3,
          .mean_acceptance = acceptance,
          .spread = 0.2,
          .noise = 0.12,
          .draft_ms = 0.1,
          .resume_ms = resume_ms,
          .odd_resume_ms = odd_resume_ms,
          .missed_ms = 0.03};
}

double rate_of_answers(const World& world, int tokens, bool is_auto, int levels) {
  Outcome all;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SpeculationPolicy policy({.is_auto = is_auto, .max_draft_len = levels}, costs_of(world));
    const Outcome one = Simulation(world, seed).run(policy, 2400 / tokens, tokens, levels);
    all.tokens += one.tokens;
    all.ms += one.ms;
  }
  return all.rate();
}

// The answers are short compared with the prompt that the draft model reads before its first token, so the
// policy must count the time of reading.
TEST(SpeculationPolicy, LongPromptsOfShortAnswersMustPay) {
  for (const double acceptance : {0.3, 0.6, 0.7, 0.8}) {
    for (const double resume_ms : {2.0, 6.0, 12.0}) {
      for (const int tokens : {15, 30, 60}) {
        const auto rate = [&](bool is_auto, int levels) {
          return rate_of_answers(reading_world(acceptance, resume_ms, resume_ms), tokens, is_auto, levels);
        };
        const double plain = rate(false, 0);
        double best = plain;
        for (int levels = 1; levels <= 6; ++levels) best = std::max(best, rate(false, levels));
        const double chosen = rate(true, kMaxLevels);
        EXPECT_GE(chosen, kNoSlower * plain) << acceptance << ' ' << resume_ms << ' ' << tokens;
        EXPECT_GE(chosen, kOfBestFixed * best) << acceptance << ' ' << resume_ms << ' ' << tokens;
      }
    }
  }
}

// Reading the prompt took longer than the whole budget, but it is over, and every further draft pays.
TEST(SpeculationPolicy, APromptThatIsReadIsNoReasonToStop) {
  const World world{.pass_of_one = 3.4,
                    .per_row = 0.2,
                    .level_ms = 0.3,
                    .mean_acceptance = 0.8,
                    .spread = 0.1,
                    .resume_ms = 150.0};
  SpeculationPolicy policy({.is_auto = true, .max_draft_len = kMaxLevels}, costs_of(world));
  EXPECT_GE(Simulation(world, 7).run(policy, 1, 128, kMaxLevels).rate(), 1.1 / world.pass(1));
}

// Long and short prompts alternate, and the policy must judge each by its length. It is compared with the
// best fixed draft length for each of them.
TEST(SpeculationPolicy, ShortPromptsDoNotPayForLongOnes) {
  for (const double acceptance : {0.6, 0.7, 0.8}) {
    for (const double resume_ms : {4.0, 8.0, 16.0}) {
      for (const int tokens : {15, 30, 60}) {
        const auto rate = [&](double even, double odd, bool is_auto, int levels) {
          return rate_of_answers(reading_world(acceptance, even, odd), tokens, is_auto, levels);
        };
        const auto best = [&](double resume) {
          double best = 0.0;
          for (int levels = 0; levels <= 6; ++levels)
            best = std::max(best, rate(resume, resume, false, levels));
          return best;
        };
        const double plain = rate(0, 0, false, 0);
        const double best_of_each = 2.0 / (1.0 / best(resume_ms) + 1.0 / best(0.3));
        const double chosen = rate(resume_ms, 0.3, true, kMaxLevels);
        EXPECT_GE(chosen, kNoSlower * plain) << acceptance << ' ' << resume_ms << ' ' << tokens;
        EXPECT_GE(chosen, kOfBestFixed * best_of_each) << acceptance << ' ' << resume_ms << ' ' << tokens;
      }
    }
  }
}

TEST(SpeculationPolicy, FixedDraftsWhatTheLimitsAllow) {
  SpeculationPolicy policy({.is_auto = false, .max_draft_len = 5}, {});
  SpeculationPolicy::Draft draft{.sequence = 1, .max_draft_len = 5};
  policy.plan({}, {&draft, 1}, kMaxRows);
  EXPECT_EQ(draft.max_draft_len, 5);
  EXPECT_EQ(draft.estimates, nullptr);
  TokenTree tree(0);
  tree.add(0, 1, 1e-6);
  const SpeculationPolicy::Grown grown{.sequence = 1, .tree = &tree};
  policy.prune({&grown, 1}, kMaxRows);
  EXPECT_EQ(tree.drafted(), 1);
}

// Hugging Face's schedule: two tokens more after a fully accepted draft, else one token less.
TEST(SpeculationPolicy, TheHeuristicScheduleFollowsAcceptance) {
  SpeculationPolicy policy({.schedule = LengthSchedule::kHeuristic, .max_draft_len = 8}, {});
  const auto length = [&] {
    SpeculationPolicy::Draft draft{.sequence = 1, .max_draft_len = 8};
    policy.plan({}, {&draft, 1}, kMaxRows);
    return draft.max_draft_len;
  };
  const auto accept = [&](int nodes) {
    Verdict verdict;
    verdict.path.resize(static_cast<size_t>(nodes) + 1);
    verdict.tokens.resize(static_cast<size_t>(nodes) + 1);
    const DraftOutcome outcome{.sequence = 1, .verdict = &verdict, .verified = 8};
    policy.observe({.has_drafted = true, .outcomes = {&outcome, 1}});
  };
  EXPECT_EQ(length(), 8);
  accept(3);
  EXPECT_EQ(length(), 7);
  for (int i = 0; i < 10; ++i) accept(0);
  EXPECT_EQ(length(), 1);
  accept(1);
  EXPECT_EQ(length(), 3);
  accept(3);
  EXPECT_EQ(length(), 5);
  policy.forget(1);
  EXPECT_EQ(length(), 8);
}

// One request's useless prediction neither ends the drafts of its drafter nor the predictions of others.
TEST(SpeculationPolicy, JudgesPredictionsApartFromTheDrafter) {
  SpeculationPolicy policy({.is_auto = true, .max_draft_len = 8}, costs_of(World{.per_row = 0.05}));
  const auto drafts = [&](uint64_t sequence, bool is_predicted, bool is_right) {
    int drafted = 0;
    for (int step = 0; step < 60; ++step) {
      SpeculationPolicy::Draft draft{
          .sequence = sequence, .is_predicted = is_predicted, .tokens = 100, .max_draft_len = 8};
      policy.plan({}, {&draft, 1}, kMaxRows);
      TokenTree tree(0);
      for (int level = 0; level < draft.max_draft_len; ++level) tree.add(level, level + 1, 0.9);
      const SpeculationPolicy::Grown grown{.sequence = sequence, .is_predicted = is_predicted, .tree = &tree};
      if (draft.max_draft_len > 0) policy.prune({&grown, 1}, kMaxRows);
      Verdict verdict;
      for (int i = 0; i <= (is_right ? tree.drafted() : 0); ++i) {
        verdict.path.push_back(i);
        verdict.tokens.push_back(is_right ? i + 1 : -1);
      }
      const DraftOutcome outcome{.sequence = sequence,
                                 .is_predicted = is_predicted,
                                 .verdict = &verdict,
                                 .verified = tree.drafted()};
      StepObservation observation{.has_drafted = draft.max_draft_len > 0,
                                  .rows = 1.0 + tree.drafted(),
                                  .pass_ms = 1.0 + 0.05 * tree.drafted()};
      if (draft.max_draft_len > 0) observation.outcomes = {&outcome, 1};
      policy.observe(observation);
      drafted += tree.drafted() > 0 ? 1 : 0;
    }
    policy.forget(sequence);
    return drafted;
  };
  for (uint64_t sequence = 1; sequence <= 4; ++sequence) {
    EXPECT_LT(drafts(sequence, true, false), 30);
    EXPECT_GT(drafts(10 + sequence, false, true), 50);
  }
  EXPECT_GT(drafts(20, true, true), 50);
}

TEST(SpeculationPolicy, KeepsTheNodesThatAreWorthTheirRows) {
  const auto kept_with = [](double per_row) {
    const World world{.per_row = per_row};
    SpeculationPolicy policy({.is_auto = true, .max_draft_len = 8}, costs_of(world));
    SpeculationPolicy::Draft draft{.sequence = 1, .max_draft_len = 8};
    policy.plan({}, {&draft, 1}, kMaxRows);
    TokenTree tree(0);
    tree.add(0, 1, 0.9);
    tree.add(0, 2, 0.05);
    tree.add(1, 3, 0.8);
    const SpeculationPolicy::Grown grown{.sequence = 1, .tree = &tree};
    policy.prune({&grown, 1}, kMaxRows);
    return tree.drafted();
  };
  EXPECT_EQ(kept_with(0.001), 3);
  EXPECT_EQ(kept_with(0.2), 2);  // 0.05 of a token is not worth a fifth of a pass
  EXPECT_EQ(kept_with(2.0), 0);
}

// Levels are accepted with 0.7, 0.49, 0.343 and so on, as nothing is known yet. A millisecond brings a token.
TEST(SpeculationPolicy, ASizeThatHoldsForSeveralSteps) {
  SpeculationPolicy policy({.is_auto = true, .max_draft_len = 4, .max_nodes = 8},
                           PassCosts({{1, 1.0, 0.0}, {101, 1.0, 0.0}}));
  SpeculationPolicy::Draft draft{.sequence = 1, .tokens = 10, .max_draft_len = 4};
  policy.plan({.rows = 1.0, .context = 10.0, .sequences = 1.0}, {&draft, 1}, kMaxRows);
  EXPECT_GT(draft.rate, 0.0);
  const auto size = [&](int nodes, double row_ms) {
    const SpeculationPolicy::TreeSize of = policy.size_until_next_plan(1, {4, nodes}, row_ms);
    return std::pair(of.levels, of.nodes);
  };
  EXPECT_EQ(size(4, 0.0), std::pair(4, 4));
  EXPECT_EQ(size(4, 0.3), std::pair(3, 3));
  EXPECT_EQ(size(8, 0.3), std::pair(1, 2));
  EXPECT_EQ(size(7, 0.2), std::pair(2, 4));
  EXPECT_EQ(size(4, 5.0), std::pair(1, 1));
}

// Steps after one plan, each with an empty tree of one sequence.
void make_steps(SpeculationPolicy& policy, int64_t tokens, int count, size_t accepted,
                std::optional<double> draft_ms) {
  const BatchShape load{.rows = 1.0, .context = 10.0, .sequences = 1.0};
  SpeculationPolicy::Draft draft{.sequence = 1, .tokens = tokens, .max_draft_len = 5};
  for (int step = 0; step < count; ++step) {
    draft.tokens = tokens + step;
    step == 0 ? policy.plan(load, {&draft, 1}, kMaxRows) : policy.repeat(load, {&draft, 1});
    TokenTree tree(0);
    const SpeculationPolicy::Grown grown{.sequence = 1, .tree = &tree};
    policy.prune({&grown, 1}, kMaxRows);
    Verdict verdict;
    verdict.path.resize(accepted + 1);
    verdict.tokens.resize(accepted + 1);
    const DraftOutcome outcome{.sequence = 1, .verdict = &verdict};
    policy.observe(
        {.is_decoding = false, .has_drafted = true, .draft_ms = draft_ms, .outcomes = {&outcome, 1}});
  }
}

// Levels that the device drafts within the target's pass cost what they cost before.
TEST(SpeculationPolicy, AnUnknownTimeChangesNoTime) {
  SpeculationPolicy policy({.is_auto = true, .max_draft_len = 5, .max_nodes = 5},
                           PassCosts({{1, 1.0, 0.0}, {101, 1.0, 0.0}}));
  make_steps(policy, 10, 8, 5, 3.0);
  const int levels = policy.size_until_next_plan(1, {5, 5}, 0.0).levels;
  EXPECT_LT(levels, 5);
  make_steps(policy, 20, 40, 5, std::nullopt);
  EXPECT_EQ(policy.size_until_next_plan(1, {5, 5}, 0.0).levels, levels);
}

TEST(SpeculationPolicy, AScheduleComparesWithTheLengthOfTheLastPlan) {
  SpeculationPolicy policy({.schedule = LengthSchedule::kHeuristic, .max_draft_len = 5, .max_nodes = 5},
                           PassCosts());
  const auto next_len = [&] {
    SpeculationPolicy::Draft draft{.sequence = 1, .tokens = 10, .max_draft_len = 5};
    policy.plan({.rows = 1.0, .context = 10.0, .sequences = 1.0}, {&draft, 1}, kMaxRows);
    return draft.max_draft_len;
  };
  make_steps(policy, 10, 4, 0, 1.0);
  EXPECT_EQ(next_len(), 1);
  make_steps(policy, 20, 2, 1, 1.0);  // accepted whole, twice
  EXPECT_EQ(next_len(), 5);
  make_steps(policy, 30, 2, 2, 1.0);
  EXPECT_EQ(next_len(), 3);
  make_steps(policy, 40, 3, 3, std::nullopt);
  EXPECT_EQ(next_len(), 5);
}

}  // namespace
}  // namespace outrider::speculation_policy_test
