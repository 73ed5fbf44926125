// SPDX-License-Identifier: Apache-2.0
// Tokens chosen on a device are the tokens that this machine chooses, for random rows and for ties,
// infinities, NaN and extreme parameters.
#include "models/backend/device/device_chooser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "device/emulated_device.h"
#include "sampling/logits_processor.h"

namespace outrider {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct RandomSource {
  std::mt19937_64 engine;
  int below(int end) { return static_cast<int>(engine() % static_cast<uint64_t>(end)); }
  float normal(double deviation) {
    return static_cast<float>(std::normal_distribution<double>(0.0, deviation)(engine));
  }
};

SamplingParams random_sampling(RandomSource& random, int vocab) {
  const double temperatures[] = {0.0, 1.0, 0.7, 0.1, 1.7, 1e-6, 1e-30, 1e-300, 50.0, 1e6, 1e300};
  const double min_ps[] = {0.0, 0.0, 0.05, 0.5, 1e-5, 1.0, 1e-310};
  const int top_ks[] = {0, 0, 1, 2, 40, 7, vocab - 1, vocab, vocab + 9};
  SamplingParams sampling;
  sampling.temperature = temperatures[random.below(11)];
  sampling.min_p = min_ps[random.below(7)];
  sampling.top_k = top_ks[random.below(9)];
  sampling.seed = random.engine();
  return sampling;
}

// A row of one of many kinds.
std::vector<float> random_row(RandomSource& random, int size) {
  std::vector<float> row(static_cast<size_t>(size));
  const int kind = random.below(12);
  const double deviation = kind == 0 ? 1e38 : kind == 1 ? 1e-40 : kind == 2 ? 0.01 : 3.0;
  for (float& logit : row) {
    logit = random.normal(deviation);
    if (kind == 3) logit = std::round(logit);                      // ties
    if (kind == 4) logit = 2.5F;                                   // all are equal
    if (kind == 5 && random.below(3) == 0) logit = std::nanf("");  // gaps
    if (kind == 6 && random.below(3) != 0) logit = -kInf;          // most are impossible
    if (kind == 7 && random.below(40) == 0) logit = kInf;          // some share all mass
    if (kind == 8) logit = random.below(2) == 0 ? -kInf : std::nanf("");
    if (kind == 9) logit = random.below(2) == 0 ? 0.0F : -0.0F;
    if (kind == 10) logit *= 40.0F;  // one takes all
    if (kind == 11 && random.below(50) == 0) logit = random.below(2) == 0 ? kInf : std::nanf("");
  }
  return row;
}

struct Problem {
  DeviceChooser::Shape shape;
  std::vector<TokenId> unused = {};
  std::vector<float> logits = {};
  std::vector<SamplingParams> sampling = {};
  std::vector<int> places = {};
};

Problem random_problem(RandomSource& random, int rows, int vocab, int row_size) {
  Problem problem{.shape = {.rows = rows, .vocab_size = vocab, .row_size = row_size}};
  for (int i = 0; i < random.below(4); ++i) problem.unused.push_back(random.below(vocab));
  for (int row = 0; row < rows; ++row) {
    const std::vector<float> logits = random_row(random, row_size);
    problem.logits.insert(problem.logits.end(), logits.begin(), logits.end());
    problem.sampling.push_back(random_sampling(random, vocab));
    problem.places.push_back(random.below(1 << 20));
  }
  return problem;
}

TokenId chosen_here(const Problem& problem, size_t row) {
  const auto begin = problem.logits.begin() + static_cast<std::ptrdiff_t>(row) * problem.shape.row_size;
  std::vector<float> logits(begin, begin + problem.shape.vocab_size);
  for (const TokenId token : problem.unused) logits[static_cast<size_t>(token)] = -kInf;
  CounterRandomness randomness(problem.sampling[row].seed, row);
  CoupledChooser chooser;
  return chooser.choose(logits, problem.sampling[row], TokenHistory(), {&randomness, problem.places[row]});
}

std::vector<int> chosen_there(Device& device, const Problem& problem) {
  DeviceChooser chooser(device, problem.shape, problem.unused);
  std::vector<ChoiceRow> rows;
  for (size_t row = 0; row < problem.sampling.size(); ++row) rows.push_back({&problem.sampling[row], row});
  chooser.set_rows(rows);
  DeviceNumbers<float> logits(device, std::ssize(problem.logits));
  DeviceNumbers<int> places(device, std::ssize(problem.places));
  logits.write(problem.logits);
  places.write(problem.places);
  Launcher launcher(device);
  const auto there = rows_at<const int>(places.address(), places.count());
  chooser.choose(launcher, {.numbers = FloatAddress(logits.address()),
                            .places = there,
                            .rows = problem.shape.rows,
                            .period = problem.shape.rows});
  return chooser.chosen().read();
}

void expect_same_tokens(Device& device, const Problem& problem) {
  const std::vector<int> found = chosen_there(device, problem);
  for (size_t row = 0; row < found.size(); ++row) {
    const SamplingParams& sampling = problem.sampling[row];
    ASSERT_EQ(found[row], chosen_here(problem, row))
        << "row " << row << ", temperature " << sampling.temperature << ", top-k " << sampling.top_k
        << ", min-p " << sampling.min_p << ", vocabulary " << problem.shape.vocab_size;
  }
}

TEST(DeviceChooser, RandomRowsHaveTheTokensOfThisMachine) {
  EmulatedDevice device({});
  RandomSource random{.engine = std::mt19937_64(1)};
  const int vocabs[] = {1, 31, 33, 300, 700, 1025};
  for (int turn = 0; turn < 250; ++turn) {
    const int vocab = vocabs[turn % 6];
    expect_same_tokens(device, random_problem(random, 40, vocab, vocab + turn % 3));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(DeviceChooser, LargeVocabularies) {
  EmulatedDevice device({});
  RandomSource random{.engine = std::mt19937_64(2)};
  for (int turn = 0; turn < 4; ++turn)
    expect_same_tokens(device, random_problem(random, 20, 32'000 + turn, 32'064));
}

TEST(DeviceChooser, WarpsOfABlockDoNotRace) {
  EmulatedDevice device({.seed = 3, .checks_races = true});
  RandomSource random{.engine = std::mt19937_64(3)};
  for (int turn = 0; turn < 10; ++turn) expect_same_tokens(device, random_problem(random, 8, 2100, 2100));
}

TEST(DeviceChooserDeathTest, AMissingBarrierIsFound) {
  RandomSource random{.engine = std::mt19937_64(4)};
  Problem problem = random_problem(random, 1, 2100, 2100);
  problem.sampling[0].temperature = 1.0;
  problem.sampling[0].top_k = 40;
  for (int barrier = 1; barrier < 5; ++barrier) {
    EmulatedDevice device({.checks_races = true, .skipped_barrier = barrier});
    EXPECT_DEATH(chosen_there(device, problem), "device kernel FindLargest: race") << barrier;
  }
}

TEST(DeviceChooser, RowsWithoutParametersGetNoToken) {
  EmulatedDevice device({});
  DeviceChooser chooser(device, {.rows = 3, .vocab_size = 2, .row_size = 2}, {});
  const SamplingParams greedy;
  chooser.set_rows(std::vector<ChoiceRow>{{}, {&greedy, 0}});
  DeviceNumbers<float> logits(device, 6);
  DeviceNumbers<int> places(device, 3);
  logits.write(std::vector<float>{1, 2, 3, 4, 5, 6});
  Launcher launcher(device);
  chooser.choose(launcher, {.numbers = FloatAddress(logits.address()),
                            .places = rows_at<const int>(places.address(), 3),
                            .rows = 3,
                            .period = 3});
  EXPECT_EQ(chooser.chosen().read(), (std::vector<int>{-1, 1, -1}));
}

TEST(DeviceChooser, OtherParametersNeedThisMachine) {
  const auto can = [](const std::function<void(SamplingParams&)>& change) {
    SamplingParams sampling;
    sampling.temperature = 0.7;
    sampling.top_k = 5;
    sampling.min_p = 0.1;
    change(sampling);
    return DeviceChooser::can_choose(sampling);
  };
  EXPECT_TRUE(can([](SamplingParams&) {}));
  EXPECT_FALSE(can([](SamplingParams& sampling) { sampling.top_p = 0.9; }));
  EXPECT_FALSE(can([](SamplingParams& sampling) { sampling.typical_p = 0.9; }));
  EXPECT_FALSE(can([](SamplingParams& sampling) { sampling.top_n_sigma = 1.0; }));
  EXPECT_FALSE(can([](SamplingParams& sampling) { sampling.xtc_probability = 0.5; }));
  EXPECT_FALSE(can([](SamplingParams& sampling) { sampling.presence_penalty = 0.5; }));
  EXPECT_FALSE(can([](SamplingParams& sampling) { sampling.logit_bias = {{3, 1.0F}}; }));
  EXPECT_FALSE(can([](SamplingParams& sampling) { sampling.dry.multiplier = 0.8; }));
}

}  // namespace
}  // namespace outrider
