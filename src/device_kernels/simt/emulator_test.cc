// SPDX-License-Identifier: Apache-2.0
// Small kernels with and without mistakes, and what the emulation says of them.
#include "device_kernels/simt/emulator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "device_kernels/simt/simt.h"

namespace outrider::simt {
namespace {

struct TestArgs {
  Weights<int> weights;
  Rows<int> x;
  Rows<int> y;
  int step;
};

template <void (*kKernel)(const Block&, const TestArgs&)>
void run_test_kernel(const Block& block, const void* args) {
  kKernel(block, *static_cast<const TestArgs*>(args));
}

// A kernel on 1,024 numbers that are their own places.
class EmulatorTest : public testing::Test {
 protected:
  template <void (*kKernel)(const Block&, const TestArgs&)>
  EmulationReport run(LaunchShape shape, EmulationOptions options = {}, int step = 0) {
    const TestArgs args{.weights = {x_.data(), std::ssize(x_)},
                        .x = {x_.data(), std::ssize(x_)},
                        .y = {y_.data(), std::ssize(y_)},
                        .step = step};
    options.checks_races = true;
    return emulate(run_test_kernel<kKernel>, &args, shape, options);
  }
  void SetUp() override { std::iota(x_.begin(), x_.end(), 0); }

  std::vector<int> x_ = std::vector<int>(1024);
  std::vector<int> y_ = std::vector<int>(1024, -7);
};

// Every warp gives its numbers to the next one.
void pass_on(const Block& block, const TestArgs& args) {
  const Shared<int> shared(block, 0, block.warps() * kWarp);
  const Ints lane = lane_id();
  block.wait_for_previous();
  for (int round = 0; round < 2; ++round) {
    shared.put(lane + Ints(block.warp() * kWarp),
               args.x.load(lane + Ints(block.warp() * kWarp)) + Ints(round));
    block.sync();
    const int next = (block.warp() + 1) % block.warps();
    args.y.store(lane + Ints(block.warp() * kWarp), shared.get(lane + Ints(next * kWarp)));
    block.sync();
  }
}

constexpr LaunchShape kFourWarps{.blocks = 1, .warps = 4, .shared_bytes = 4 * kWarp * 4};

TEST_F(EmulatorTest, WarpsMeetAtBarriers) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto report = run<pass_on>(kFourWarps, {.seed = seed});
    EXPECT_TRUE(report.is_clean()) << report.first;
    for (int i = 0; i < 128; ++i) EXPECT_EQ(y_[static_cast<size_t>(i)], (i + 32) % 128 + 1);
  }
}

TEST_F(EmulatorTest, AMissingBarrierIsARace) {
  for (const int barrier : {0, 1, 2}) {
    const auto report = run<pass_on>(kFourWarps, {.skipped_barrier = barrier});
    EXPECT_GT(report.count(Fault::kRace), 0) << barrier;
    EXPECT_NE(report.first.find("race: shared memory, in warp"), std::string::npos) << report.first;
  }
}

TEST_F(EmulatorTest, RowsAreReadAfterTheWait) {
  const auto report = run<pass_on>(kFourWarps, {.skips_wait_for_previous = true});
  EXPECT_GT(report.count(Fault::kEarlyAccess), 0);
  EXPECT_EQ(y_[0], kPoison + 1);
}

void read_weights_early(const Block& block, const TestArgs& args) {
  const Ints early = args.weights.load(lane_id());
  block.wait_for_previous();
  args.y.store(lane_id(), early);
}

TEST_F(EmulatorTest, WeightsAreReadAtAnyTime) {
  EXPECT_TRUE(run<read_weights_early>({}).is_clean());
  EXPECT_EQ(y_[5], 5);
}

// Copies 128 words in each of three groups, two of them ahead.
void copy_ahead(const Block& block, const TestArgs& args) {
  const Shared<int> shared(block, 0, 384);
  const Ints word = lane_id() * Ints(4);
  for (int group = 0; group < 3; ++group) {
    copy_async(Bools(true), shared, word + Ints(group * 128), args.weights, word + Ints(group * 128));
    group_copies(block);
  }
  block.wait_for_previous();
  wait_copies<1>(block);
  Ints words[4];
  for (int group = 0; group < args.step; ++group) {
    shared.get4(word + Ints(group * 128), words);
    for (int i = 0; i < 4; ++i) args.y.store(word + Ints(group * 128 + i), words[i]);
  }
}

constexpr LaunchShape kOneWarp{.blocks = 1, .warps = 1, .shared_bytes = 384 * 4};

TEST_F(EmulatorTest, CopiesArriveGroupByGroup) {
  const auto report = run<copy_ahead>(kOneWarp, {}, 2);
  EXPECT_TRUE(report.is_clean()) << report.first;
  EXPECT_EQ(y_[255], 255);
}

TEST_F(EmulatorTest, ACopyThatWasNotAwaitedIsPoison) {
  const auto report = run<copy_ahead>(kOneWarp, {}, 3);
  EXPECT_GT(report.count(Fault::kPendingCopy), 0);
  EXPECT_EQ(y_[255], 255);
  EXPECT_EQ(y_[256], kPoison);
}

TEST_F(EmulatorTest, ASkippedWaitForCopiesIsFound) {
  const auto report = run<copy_ahead>(kOneWarp, {.skips_copy_waits = true}, 1);
  EXPECT_GT(report.count(Fault::kPendingCopy), 0);
  EXPECT_EQ(y_[0], kPoison);
}

// A lane reads what its neighbour wrote; step 1 has a barrier of the warp in between.
void exchange_in_warp(const Block& block, const TestArgs& args) {
  const Shared<int> shared(block, 0, kWarp);
  block.wait_for_previous();
  shared.put(lane_id(), lane_id());
  if (args.step == 1) block.sync_warp();
  args.y.store(lane_id(), shared.get(lane_id() ^ Ints(1)));
}

TEST_F(EmulatorTest, LanesOfAWarpNeedABarrierToo) {
  constexpr LaunchShape kShape{.shared_bytes = kWarp * 4};
  EXPECT_EQ(run<exchange_in_warp>(kShape, {}, 0).count(Fault::kRace), 32);
  EXPECT_TRUE(run<exchange_in_warp>(kShape, {}, 1).is_clean());
}

// A barrier of the warp is between its own lanes only: warp 1 reads what warp 0 wrote.
void exchange_between_warps(const Block& block, const TestArgs&) {
  const Shared<int> shared(block, 0, kWarp);
  block.wait_for_previous();
  if (block.warp() == 0) shared.put(lane_id(), lane_id());
  block.sync_warp();
  if (block.warp() == 1) shared.get(lane_id());
}

TEST_F(EmulatorTest, ABarrierOfAWarpIsNoneForOthers) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const auto report = run<exchange_between_warps>({.warps = 2, .shared_bytes = kWarp * 4}, {.seed = seed});
    EXPECT_GT(report.count(Fault::kRace), 0) << seed;
  }
}

void write_one_word(const Block& block, const TestArgs&) {
  const Shared<int> shared(block, 0, kWarp);
  shared.put(Ints(3), lane_id());
}

TEST_F(EmulatorTest, TwoLanesMayNotWriteOneWord) {
  EXPECT_GT(run<write_one_word>({.shared_bytes = kWarp * 4}).count(Fault::kRace), 0);
}

// The last lane is `step` numbers too far.
void go_too_far(const Block& block, const TestArgs& args) {
  block.wait_for_previous();
  const Ints i = lane_id() + Ints(1024 - kWarp + args.step);
  args.y.store(i, args.x.load(i));
}

TEST_F(EmulatorTest, ViewsAreNotLeft) {
  EXPECT_TRUE(run<go_too_far>({}, {}, 0).is_clean());
  EXPECT_EQ(y_[1023], 1023);
  const auto report = run<go_too_far>({}, {}, 1);
  EXPECT_EQ(report.count(Fault::kBounds), 2);
  EXPECT_EQ(report.first, "out of bounds: numbers of lanes, in warp 0 of block 0");
  EXPECT_EQ(run<go_too_far>({}, {}, -1024).count(Fault::kBounds), 2);
}

void leave_shared_memory(const Block& block, const TestArgs&) {
  const Shared<int> shared(block, 0, kWarp);
  shared.put(lane_id() + Ints(1), lane_id());
  const Shared<int> too_large(block, 4, kWarp);
  too_large.get(lane_id());
}

// Accesses side by side from number args.step on; the first ten lanes of the first one.
void read_side_by_side(const Block& block, const TestArgs& args) {
  block.wait_for_previous();
  Ints pairs[2];
  args.x.load_pairs(args.step - 62, pairs);
  args.y.store(lane_id(), args.x.load_some(args.step - 8, 10, -5));
  args.y.store(lane_id() + Ints(32), args.x.load_halves(args.step));
  args.y.store(lane_id() + Ints(64), args.x.load_twice(args.step - 14));
  args.y.store(lane_id() + Ints(96), pairs[1]);
}

TEST_F(EmulatorTest, NumbersSideBySide) {
  EXPECT_TRUE(run<read_side_by_side>({}, {}, 1022).is_clean());
  for (const auto& [place, number] : {std::pair(0, 1014),
                                      {9, 1023},
                                      {10, -5},
                                      {31, -5},
                                      {32, 1022},
                                      {47, 1022},
                                      {48, 1023},
                                      {63, 1023},
                                      {64, 1008},
                                      {79, 1023},
                                      {80, 1008},
                                      {95, 1023},
                                      {96, 961},
                                      {127, 1023}})
    EXPECT_EQ(y_[static_cast<size_t>(place)], number) << place;
  const auto report = run<read_side_by_side>({}, {}, 1023);
  EXPECT_EQ(report.count(Fault::kBounds), 4);
  for (const size_t place : {0, 32, 64, 96}) EXPECT_EQ(y_[place], kPoison) << place;
}

TEST_F(EmulatorTest, SharedMemoryIsNotLeft) {
  EXPECT_EQ(run<leave_shared_memory>({.shared_bytes = kWarp * 4}).count(Fault::kBounds), 3);
}

void end_early(const Block& block, const TestArgs&) {
  if (block.warp() == 0) return;
  block.sync();
}

TEST_F(EmulatorTest, AllWarpsComeToABarrier) {
  for (int i = 0; i < 3; ++i)  // the team works on after the fault
    EXPECT_EQ(run<end_early>(kFourWarps).count(Fault::kUnevenBarrier), 1);
  EXPECT_TRUE(run<pass_on>(kFourWarps).is_clean());
}

void read_shared(const Block& block, const TestArgs& args) {
  const Shared<int> shared(block, 0, kWarp);
  block.wait_for_previous();
  args.y.store(lane_id(), shared.get(lane_id()));
  shared.put(lane_id(), Ints(5));
}

TEST_F(EmulatorTest, SharedMemoryIsPoisonInEveryBlock) {
  EXPECT_TRUE(run<read_shared>({.blocks = 3, .shared_bytes = kWarp * 4}).is_clean());
  EXPECT_EQ(y_[0], kPoison);
}

// Each warp writes when it came, so the result is the order.
void take_turns(const Block& block, const TestArgs& args) {
  block.wait_for_previous();
  const int turn = args.y.load_one(0) + 1;
  args.y.store(Ints(0), Ints(turn));
  args.y.store(Ints(1 + block.index() * block.warps() + block.warp()), Ints(turn));
}

TEST_F(EmulatorTest, ASeedDecidesTheOrderOfBlocksAndWarps) {
  std::set<std::vector<int>> orders;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (int i = 0; i < 2; ++i) {
      std::ranges::fill(y_, 0);
      run<take_turns>({.blocks = 3, .warps = 4}, {.seed = seed});
      orders.insert(y_);
    }
  }
  EXPECT_EQ(orders.size(), 10U);
}

TEST_F(EmulatorTest, ThreadsEmulateBesideOneAnother) {
  std::vector<std::thread> threads;
  std::vector<int> faults(4, -1);
  for (size_t t = 0; t < faults.size(); ++t) {
    threads.emplace_back([&faults, t] {
      std::vector<int> x(128), y(128);
      const TestArgs args{.weights = {}, .x = {x.data(), 128}, .y = {y.data(), 128}, .step = 0};
      int count = 0;
      for (uint64_t seed = 0; seed < 50; ++seed) {
        const auto report =
            emulate(run_test_kernel<pass_on>, &args, kFourWarps, {.seed = seed, .checks_races = true});
        count += static_cast<int>(!report.is_clean());
      }
      faults[t] = count;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(faults, std::vector<int>(4, 0));
}

}  // namespace
}  // namespace outrider::simt
