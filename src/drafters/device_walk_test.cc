// SPDX-License-Identifier: Apache-2.0
// Walks of a device through random trees have the verdicts of this machine.
#include "device_kernels/choice/next_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "device_kernels/kernel_names.h"
#include "speculation/acceptance/verifier.h"

namespace outrider {
namespace {

constexpr int kCases = 10'000;

struct RandomSource {
  std::mt19937 engine;
  int below(int end) { return static_cast<int>(engine() % static_cast<unsigned>(end)); }
};

simt::Rows<int> rows_of(std::vector<int>& numbers) { return {numbers.data(), std::ssize(numbers)}; }

// The state of a loop in this machine's memory, before the walk of a step. Node i of sequence s is number
// i * sequences + s.
struct Step {
  int sequences, levels, nodes;
  std::vector<int> pending, positions, remaining, limits, accepted, drafted, tokens, parents, path, chosen,
      stops, words, ring;

  Step(RandomSource& random, int of_sequences, int of_levels, int of_nodes)
      : sequences(of_sequences), levels(of_levels), nodes(of_nodes) {
    const auto count = static_cast<size_t>((nodes + 1) * sequences);
    tokens.assign(count, -5);
    parents.assign(count, -5);
    limits.assign(static_cast<size_t>(simt::kTreeLimits * sequences), 0);
    accepted.assign(static_cast<size_t>(sequences), 77);
    path.assign(static_cast<size_t>((levels + 1) * sequences), 77);
    for (int i = 0; i < sequences; ++i) {
      pending.push_back(random.below(3));
      positions.push_back(random.below(100));
      remaining.push_back(random.below(8) == 0 ? 0 : 1 + random.below(9));
      drafted.push_back(grow(random, i, std::min(levels, remaining.back() - 1)));
    }
    for (size_t i = 0; i < count; ++i) chosen.push_back(random.below(200) == 0 ? -1 : random.below(3));
    const int stop_count = random.below(4) == 0 ? random.below(3) : 0;
    for (int i = 0; i < stop_count; ++i)
      stops.insert(stops.end(), {random.below(sequences), random.below(3)});
    words = {1, random.below(3), 1 + random.below(4), stop_count};
    words[simt::kStepLimit] += words[simt::kSteps];
    ring.assign(static_cast<size_t>(simt::kRingWords + 8 * simt::step_words(levels, nodes) * sequences), -7);
    ring[simt::kStepsDone] = words[simt::kSteps];
    ring[simt::kHasEnded] = 0;
    ring[simt::kShallStop] = random.below(10) == 0 ? 1 : 0;
  }
  // A random tree of a sequence, at most `deepest` levels deep. Returns its number of nodes.
  int grow(RandomSource& random, int sequence, int deepest) {
    std::vector<int> depths = {0};
    const int wanted = deepest <= 0 ? 0 : random.below(nodes + 1);
    for (int i = 0; i < 4 * wanted && std::ssize(depths) <= wanted; ++i) {
      const int parent = random.below(static_cast<int>(depths.size())), token = random.below(3);
      bool is_there = depths[static_cast<size_t>(parent)] >= deepest;
      for (int node = 1; node < std::ssize(depths); ++node)
        is_there |= at(parents, node, sequence) == parent && at(tokens, node, sequence) == token;
      if (is_there) continue;
      const auto place = depths.size() * static_cast<size_t>(sequences) + static_cast<size_t>(sequence);
      parents[place] = parent;
      tokens[place] = token;
      depths.push_back(depths[static_cast<size_t>(parent)] + 1);
    }
    return static_cast<int>(depths.size()) - 1;
  }
  simt::Trees trees() {
    return {.pending = rows_of(pending),
            .positions = rows_of(positions),
            .remaining = rows_of(remaining),
            .limits = rows_of(limits),
            .accepted = rows_of(accepted),
            .drafted = rows_of(drafted),
            .tokens = rows_of(tokens),
            .parents = rows_of(parents),
            .path = rows_of(path),
            .sequences = sequences,
            .levels = levels,
            .nodes = nodes};
  }
  void run() {
    const simt::Rows<const int> there{chosen.data(), std::ssize(chosen)};
    constexpr int kWarps = 4;
    const simt::EmulationReport walk =
        emulate(KernelName::kWalkTrees, simt::WalkTreesArgs{trees(), there},
                {.blocks = (sequences + kWarps - 1) / kWarps, .warps = kWarps}, {.checks_races = true});
    EXPECT_EQ(walk.first, "");
    const simt::NextStepArgs args{.chosen = there,
                                  .of = trees(),
                                  .stops = {stops.data(), std::ssize(stops)},
                                  .words = rows_of(words),
                                  .ring = rows_of(ring)};
    const simt::EmulationReport report = emulate(KernelName::kNextStep, args, {}, {.checks_races = true});
    EXPECT_EQ(report.first, "");
  }
  bool uses(int sequence) const { return remaining[static_cast<size_t>(sequence)] > 0; }
  int at(const std::vector<int>& numbers, int row, int sequence) const {
    return numbers[static_cast<size_t>(row * sequences + sequence)];
  }
  // As the engine has it.
  Verdict verdict(int sequence) const {
    TokenTree tree(at(pending, 0, sequence));
    for (int node = 1; node <= at(drafted, 0, sequence); ++node)
      EXPECT_EQ(tree.add(at(parents, node, sequence), at(tokens, node, sequence)), node);
    Verdict verdict;
    verify({.tree = &tree,
            .target_distribution = {},
            .position = at(positions, 0, sequence) + 1,
            .target_token = [&](int node) { return at(chosen, node, sequence); }},
           verdict);
    return verdict;
  }
  int ring_word(int step, int word, int sequence) const {
    const int begin = simt::kRingWords + step * simt::step_words(levels, nodes) * sequences;
    return ring[static_cast<size_t>(begin + word * sequences + sequence)];
  }
};

void expect_sequence(const Step& before, const Step& after, int sequence) {
  const Verdict verdict = before.verdict(sequence);
  const auto gained = static_cast<int>(verdict.tokens.size());
  const int step = before.words[simt::kSteps], drafted = before.at(before.drafted, 0, sequence);
  EXPECT_EQ(after.ring_word(step, simt::kDrafted, sequence), drafted);
  EXPECT_EQ(after.ring_word(step, simt::kAccepted, sequence), gained - 1);
  EXPECT_EQ(after.ring_word(step, simt::kOwnToken, sequence), verdict.tokens.back());
  for (int depth = 1; depth < gained; ++depth) {
    const int node = verdict.path[static_cast<size_t>(depth)];
    EXPECT_EQ(after.ring_word(step, simt::kStepWords + depth - 1, sequence), node);
    EXPECT_EQ(after.at(after.path, depth, sequence), node);
  }
  for (int node = 1; node <= drafted; ++node) {
    const int word = simt::kStepWords + before.levels + node - 1;
    EXPECT_EQ(after.ring_word(step, word, sequence), before.at(before.tokens, node, sequence));
    EXPECT_EQ(after.ring_word(step, word + before.nodes, sequence),
              before.at(before.parents, node, sequence));
  }
  EXPECT_EQ(after.at(after.pending, 0, sequence), verdict.tokens.back());
  EXPECT_EQ(after.at(after.positions, 0, sequence), before.at(before.positions, 0, sequence) + gained);
  EXPECT_EQ(after.at(after.remaining, 0, sequence), before.at(before.remaining, 0, sequence) - gained);
  EXPECT_EQ(after.at(after.accepted, 0, sequence), gained - 1);
}

// Whether the loop ends after the step.
bool is_last(const Step& before, const Step& after) {
  bool ends =
      before.words[simt::kSteps] + 1 >= before.words[simt::kStepLimit] || before.ring[simt::kShallStop] != 0;
  for (size_t i = 0; i < before.stops.size(); i += 2) {
    const std::vector<TokenId> tokens = before.verdict(before.stops[i]).tokens;
    ends |= std::ranges::find(tokens, before.stops[i + 1]) != tokens.end();
  }
  for (int i = 0; i < before.sequences; ++i) ends |= before.uses(i) && !after.uses(i);
  return ends;
}

TEST(NextStep, HasTheVerdictsOfTheVerifier) {
  RandomSource random{std::mt19937(7)};
  int accepted = 0, missing = 0;
  for (int i = 0; i < kCases; ++i) {
    const int levels = random.below(7), nodes = levels == 0 ? 0 : levels + random.below(i % 9 == 0 ? 60 : 9);
    const Step before(random, 1 + random.below(i % 50 == 0 ? 70 : 5), levels, nodes);
    Step after = before;
    after.run();
    bool has_all = true;
    for (int sequence = 0; sequence < before.sequences; ++sequence)
      has_all &= !before.uses(sequence) ||
                 before.at(before.chosen, before.verdict(sequence).path.back(), sequence) >= 0;
    if (!has_all) {
      ++missing;
      EXPECT_EQ(after.ring[simt::kStepsDone], before.ring[simt::kStepsDone]);
      EXPECT_EQ(after.ring[simt::kHasEnded], 1);
      EXPECT_EQ(after.words[simt::kGoing], 0);
      continue;
    }
    for (int sequence = 0; sequence < before.sequences; ++sequence) {
      if (!before.uses(sequence)) continue;
      expect_sequence(before, after, sequence);
      accepted +=
          before.at(before.positions, 0, sequence) + 1 < after.at(after.positions, 0, sequence) ? 1 : 0;
    }
    EXPECT_EQ(after.ring[simt::kStepsDone], before.words[simt::kSteps] + 1);
    EXPECT_EQ(after.ring[simt::kHasEnded], is_last(before, after) ? 1 : 0);
    EXPECT_EQ(after.words[simt::kGoing], is_last(before, after) ? 0 : 1);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(accepted, kCases / 4);
  EXPECT_GT(missing, kCases / 1000);
}

}  // namespace
}  // namespace outrider
