// SPDX-License-Identifier: Apache-2.0
// Tests the policy on a simulated machine that decodes many sequences together. Rows cost little until a
// batch is large, so a draft that pays for one sequence may not pay for many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "speculation/policy/speculation_policy.h"

namespace outrider {
namespace {

constexpr int kMaxLevels = 6;
constexpr int kTokensEach = 96;

struct World {
  int batch = 1;
  double acceptance = 0.6;  // mean over nodes
  double spread = 0.3;      // deviation from the mean, which the drafter knows
  double level_ms = 0.05;   // time of a drafted level, independent of the number of sequences
  double level_row_ms = 0.006;
  double noise = 0.05;
  int max_rows = 1000;  // limit of drafted rows

  static double pass(double rows) {
    static const std::vector<std::pair<double, double>> kMeasured = {
        {1, 0.5}, {2, 0.5}, {4, 0.52}, {8, 0.6}, {16, 0.69}, {32, 1.01}, {64, 1.78}, {128, 3.58}, {256, 7.5}};
    size_t right = 1;
    while (right + 1 < kMeasured.size() && rows > kMeasured[right].first) ++right;
    const auto [r0, ms0] = kMeasured[right - 1];
    const auto [r1, ms1] = kMeasured[right];
    return ms0 + (rows - r0) / (r1 - r0) * (ms1 - ms0);
  }
  double level(double sequences) const { return level_ms + level_row_ms * sequences; }
  double rest(double sequences, double nodes) const { return 0.05 + 0.012 * sequences + 0.002 * nodes; }
};

PassCosts costs() {
  std::vector<PassCosts::Point> points;
  for (const int rows : {1, 2, 4, 8, 16, 32, 64, 128}) points.push_back({rows, World::pass(rows), 0.0});
  return PassCosts(points);
}

struct Grown {
  TokenTree tree{0};
  std::vector<double> truth;  // by node - 1
  double reached = 1.0;
};

class BatchSimulation {
 public:
  BatchSimulation(const World& world, int levels, bool is_auto)
      : world_(world),
        is_auto_(is_auto),
        levels_(levels),
        policy_({.is_auto = is_auto, .max_draft_len = levels}, costs()),
        left_(static_cast<size_t>(world.batch), kTokensEach) {
    for (int i = 0; i < world.batch; ++i) {
      ids_.push_back(static_cast<uint64_t>(i + 1));
      // The first requests have different lengths, so that later ones do not start all at once.
      left_[static_cast<size_t>(i)] = kTokensEach * (i + 1) / world.batch;
    }
    next_ = ids_.size() + 1;
  }

  // Decodes until `requests` requests are done; returns tokens per ms.
  double run(int requests) {
    double tokens = 0.0, ms = 0.0;
    for (int done = 0; done < requests;) {
      const std::vector<int> committed = step(ms);
      for (size_t i = 0; i < ids_.size(); ++i) {
        tokens += committed[i];
        left_[i] -= committed[i];
        if (left_[i] > 0) continue;
        policy_.forget(ids_[i]);
        ids_[i] = next_++;
        left_[i] = kTokensEach;
        ++done;
      }
    }
    return tokens / ms;
  }

  double speedup() const { return policy_.speedup(); }

 private:
  double noisy(double ms) { return ms * std::exp(world_.noise * normal_(random_)); }

  std::vector<int> step(double& ms) {
    const double sequences = world_.batch;
    const BatchShape load{.rows = sequences, .context = 100.0, .sequences = sequences};
    std::vector<SpeculationPolicy::Draft> drafts;
    for (size_t i = 0; i < ids_.size(); ++i)
      drafts.push_back({.sequence = ids_[i], .tokens = 1 + kTokensEach - left_[i], .max_draft_len = levels_});
    policy_.plan(load, drafts, world_.max_rows);
    std::vector<Grown> grown(drafts.size());
    const double draft_ms = grow(drafts, grown);
    std::vector<SpeculationPolicy::Grown> trees;
    for (size_t i = 0; i < drafts.size(); ++i) {
      if (drafts[i].max_draft_len > 0)
        trees.push_back({.sequence = drafts[i].sequence, .tree = &grown[i].tree});
    }
    if (!trees.empty()) policy_.prune(trees, world_.max_rows);
    double rows = 0.0;
    for (const Grown& one : grown) rows += one.tree.drafted();
    if (is_auto_) {
      EXPECT_LE(rows, world_.max_rows);
    }
    const double pass_ms = noisy(World::pass(sequences + rows));
    std::vector<int> committed;
    std::vector<Verdict> verdicts;
    for (const Grown& one : grown) {
      verdicts.push_back(verify(one));
      committed.push_back(static_cast<int>(verdicts.back().tokens.size()));
    }
    const double rest_ms = noisy(world_.rest(sequences, rows));
    StepObservation observation{.has_drafted = !trees.empty(),
                                .rows = sequences + rows,
                                .pass_ms = pass_ms,
                                .rest_ms = rest_ms,
                                .step_ms = pass_ms + draft_ms + rest_ms};
    if (!trees.empty()) observation.draft_ms = draft_ms / static_cast<double>(trees.size());
    std::vector<DraftOutcome> outcomes;
    for (size_t i = 0; i < drafts.size(); ++i) {
      observation.tokens += committed[i];
      if (drafts[i].max_draft_len > 0)
        outcomes.push_back(
            {.sequence = drafts[i].sequence, .verdict = &verdicts[i], .verified = grown[i].tree.drafted()});
    }
    observation.outcomes = outcomes;
    policy_.observe(observation);
    ms += pass_ms + draft_ms + rest_ms;
    return committed;
  }

  double grow(const std::vector<SpeculationPolicy::Draft>& drafts, std::vector<Grown>& grown) {
    double ms = 0.0;
    const auto drafting =
        static_cast<double>(std::ranges::count_if(drafts, [](auto& d) { return d.max_draft_len > 0; }));
    for (int level = 0; level < levels_; ++level) {
      double active = 0.0;
      for (size_t i = 0; i < drafts.size(); ++i) {
        Grown& one = grown[i];
        if (level >= drafts[i].max_draft_len || one.tree.drafted() < level) continue;
        if (level > 0 && drafts[i].estimates != nullptr &&
            one.reached * drafts[i].estimates->continuation(level) <=
                drafts[i].rate * (world_.level(drafting) / drafting + drafts[i].row_ms)) {
          continue;
        }
        const double p =
            std::clamp(world_.acceptance + world_.spread * (2.0 * uniform_(random_) - 1.0), 0.0, 1.0);
        one.truth.push_back(p);
        const double said = std::clamp(p, 0.01, 0.99);
        one.tree.add(level, level + 1, said);
        one.reached *= drafts[i].estimates == nullptr ? said : drafts[i].estimates->estimate(level + 1, said);
        active += 1.0;
      }
      if (active > 0.0) ms += noisy(world_.level(active));
    }
    return ms;
  }

  Verdict verify(const Grown& grown) {
    int right = 0;  // nodes that are the target's tokens, also nodes that were cut
    while (right < std::ssize(grown.truth) && uniform_(random_) < grown.truth[static_cast<size_t>(right)])
      ++right;
    const int accepted = std::min(right, grown.tree.drafted());
    Verdict verdict;
    for (int i = 0; i <= accepted; ++i) {
      verdict.path.push_back(i);
      verdict.tokens.push_back(i < right ? i + 1 : -1);
    }
    return verdict;
  }

  World world_;
  bool is_auto_;
  int levels_;
  SpeculationPolicy policy_;
  std::vector<int> left_;
  std::vector<uint64_t> ids_;
  uint64_t next_ = 1;
  std::mt19937_64 random_{7};
  std::uniform_real_distribution<double> uniform_{0.0, 1.0};
  std::normal_distribution<double> normal_;
};

double plain_rate(const World& world) {
  return world.batch / (World::pass(world.batch) + world.rest(world.batch, 0));
}

TEST(SpeculationPolicyBatch, NeverMuchSlowerThanPlainNorThanTheBestFixedLength) {
  constexpr double kNoSlower = 0.97;
  constexpr double kOfBestFixed = 0.90;
  for (const int batch : {1, 2, 4, 8, 16, 32}) {
    for (const double acceptance : {0.0, 0.3, 0.6, 0.8, 0.95}) {
      const World world{
          .batch = batch, .acceptance = acceptance, .spread = std::min({0.3, acceptance, 1.0 - acceptance})};
      const int requests = std::max(40, 4 * batch);
      const double plain = plain_rate(world);
      double best = plain;
      for (int levels = 1; levels <= kMaxLevels; ++levels)
        best = std::max(best, BatchSimulation(world, levels, false).run(requests));
      BatchSimulation simulation(world, kMaxLevels, true);
      const double rate = simulation.run(requests);
      EXPECT_GE(rate, kNoSlower * plain) << batch << ' ' << acceptance;
      EXPECT_GE(rate, kOfBestFixed * best) << batch << ' ' << acceptance;
      EXPECT_NEAR(simulation.speedup(), rate / plain, 0.1 * rate / plain) << batch << ' ' << acceptance;
    }
  }
}

// Experiments with a drafter are rare if its levels cost as much as passes.
TEST(SpeculationPolicyBatch, ADrafterThatNeverPaysCostsLittle) {
  constexpr double kNoSlower = 0.99;
  for (const int batch : {1, 4, 8, 16, 32}) {
    for (const double acceptance : {0.0, 0.3, 0.6}) {
      const World world{.batch = batch,
                        .acceptance = acceptance,
                        .spread = std::min(0.2, acceptance),
                        .level_ms = 0.5,
                        .level_row_ms = 0.05};
      const double rate = BatchSimulation(world, kMaxLevels, true).run(std::max(200, 16 * batch));
      EXPECT_GE(rate, kNoSlower * plain_rate(world)) << batch << ' ' << acceptance;
    }
  }
}

// If rows are limited, the nodes most likely to be accepted get them, whichever sequence they belong to.
TEST(SpeculationPolicyBatch, RowsGoWhereTheyCommitMost) {
  SpeculationPolicy policy({.is_auto = true, .max_draft_len = 4},
                           PassCosts({{1, 1.0, 0.0}, {64, 1.001, 0.0}}));
  std::vector<SpeculationPolicy::Draft> drafts = {{.sequence = 1, .tokens = 1, .max_draft_len = 4},
                                                  {.sequence = 2, .tokens = 1, .max_draft_len = 4}};
  policy.plan({.rows = 2.0, .context = 0.0, .sequences = 2.0}, drafts, 1000);
  TokenTree sure(0), unsure(0);
  for (int level = 0; level < 3; ++level) {
    sure.add(level, level + 1, 0.95);
    unsure.add(level, level + 1, 0.4);
  }
  const std::vector<SpeculationPolicy::Grown> trees = {{.sequence = 1, .tree = &unsure},
                                                       {.sequence = 2, .tree = &sure}};
  policy.prune(trees, 4);
  EXPECT_EQ(sure.drafted(), 3);
  EXPECT_EQ(unsure.drafted(), 1);
}

// Levels with nodes that would get no row are not drafted.
TEST(SpeculationPolicyBatch, RowsAreLimited) {
  const World world{.batch = 8, .acceptance = 0.9, .spread = 0.1, .max_rows = 5};
  EXPECT_GT(BatchSimulation(world, kMaxLevels, true).run(40), 1.2 * plain_rate(world));
}

}  // namespace
}  // namespace outrider
