// SPDX-License-Identifier: Apache-2.0
// Mistakes that are made in kernels of devices, each of which the emulation or the comparison with a CPU's
// table must find:
// - a missing barrier: PlantedProduct.MissingBarrier
// - a read before a copy has arrived: PlantedProduct.ReadBeforeArrival
// - a read before the wait for previous launches: PlantedProduct.ReadBeforeTheWait
// - a wrong order of groups: PlantedProduct.WrongOrderOfGroups
// - a stale padded row: PlantedProduct.StalePaddedRow
// - codes of inputs that have changed since: PlantedProduct.StaleCodes
// - the same in a norm that packs: PlantedNorm.MissingBarrier, ReadBeforeTheWait, UnpackedPaddedRows
// - a wrong mask of a tree: PlantedAttention.WrongMaskOfATree
// - a page of a neighbour: PlantedAttention.PageOfANeighbour
// - a wrong order of chunks: PlantedAttention.WrongOrderOfChunks
// - a chunk of an earlier launch: PlantedAttention.StaleChunk
// - an arrival that is counted too early: PlantedAttention.StaleChunk,
// ActivatedProducts.AnEarlyArrivalIsFound
// - a position off by one: PlantedRope.PositionOffByOne, PlantedAttention.LengthOffByOne
// - a sibling for a parent: PlantedStates.SiblingForAParent
// - the matrix of a neighbour: PlantedStack.MatrixOfANeighbour
// - an atomic sum of floats, a contraction: check_device_code refuses cuda/planted_mistakes.cu
#include <gtest/gtest.h>

#include <numeric>

#include "device_kernels/attention/attention_test_lists.h"
#include "device_kernels/products/product_test_data.h"
#include "device_kernels/states/state_test_nodes.h"

namespace outrider {
namespace {

// Counts numbers with other bits; NaN differs from a number.
int64_t differing(const Floats& a, const Floats& b) {
  int64_t count = 0;
  for (size_t i = 0; i < a.size(); ++i)
    count += std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i]);
  return count;
}

// A product of 9 rows with weights [40, 1536] of Q4_0: three stages of few_rows(), and padded rows.
class PlantedProduct : public testing::Test {
 protected:
  static constexpr int kFeatures = 40, kInputs = 1536, kRowCount = 9;

  void SetUp() override {
    OUTRIDER_REQUIRE_TABLES();
    const KernelTable& table = *compared_tables().front();
    auto packed = pack_matrix(table, random_matrix(DType::kQ4_0, kFeatures, kInputs, 1).view());
    ASSERT_TRUE(packed.ok());
    x_ = random_floats(kRowCount * kInputs, 2);
    expected_ = product(table, *packed, x_, kRowCount, 1);
    auto matrix = device_matrix(*packed);
    ASSERT_TRUE(matrix.ok());
    matrix_ = std::move(*matrix);
  }
  simt::EmulationReport run(EmulationOptions options) {
    return run(options, PackedInputs(x_, kRowCount, kInputs, 1));
  }
  simt::EmulationReport run(EmulationOptions options, const PackedInputs& x) {
    y_.assign(expected_.size(), std::nanf(""));
    options.checks_races = true;
    const simt::GroupedProductArgs args{
        .weights = matrix_.grouped(), .x = x.inputs(), .y = rows_of(y_), .y_stride = kFeatures};
    return emulate(KernelName::kFewRowsCentredNibbles, args,
                   {.blocks = 3 * 2, .warps = 8, .shared_bytes = simt::FewRowsMemory::kBytes}, options);
  }

  Floats x_, expected_, y_;
  DeviceMatrix matrix_;
};

TEST_F(PlantedProduct, NoMistakeIsSilent) {
  EXPECT_TRUE(run({}).is_clean());
  EXPECT_EQ(differing(expected_, y_), 0);
}

TEST_F(PlantedProduct, MissingBarrier) {
  for (int barrier = 0; barrier < 5; ++barrier) {
    for (uint64_t seed = 1; seed < 4; ++seed)
      EXPECT_GT(run({.seed = seed, .skipped_barrier = barrier}).count(simt::Fault::kRace), 0) << barrier;
  }
}

TEST_F(PlantedProduct, ReadBeforeArrival) {
  EXPECT_GT(run({.skips_copy_waits = true}).count(simt::Fault::kPendingCopy), 0);
  EXPECT_GT(differing(expected_, y_), 0);
}

TEST_F(PlantedProduct, ReadBeforeTheWait) {
  EXPECT_GT(run({.skips_wait_for_previous = true}).count(simt::Fault::kEarlyAccess), 0);
  EXPECT_GT(differing(expected_, y_), 0);
}

// The sum is over the same groups, two of which change places.
TEST_F(PlantedProduct, WrongOrderOfGroups) {
  PackedInputs x(x_, kRowCount, kInputs, 1);
  const auto words = static_cast<size_t>(x.padded) * 32, rows = static_cast<size_t>(x.padded);
  std::swap_ranges(x.codes.begin(), x.codes.begin() + words, x.codes.begin() + words);
  std::swap_ranges(x.scales.begin(), x.scales.begin() + rows, x.scales.begin() + rows);
  std::swap_ranges(x.sums.begin(), x.sums.begin() + 2 * rows, x.sums.begin() + 2 * rows);
  for (size_t panel = 0; panel < 3; ++panel) {
    const size_t tile = panel * kInputs / 64 * simt::kTileWords, scales = panel * kInputs / 32 * 16;
    for (size_t lane = 0; lane < 32; ++lane)
      std::swap_ranges(&matrix_.codes[tile + lane * 4], &matrix_.codes[tile + lane * 4 + 2],
                       &matrix_.codes[tile + lane * 4 + 2]);
    std::swap_ranges(&matrix_.scales[scales], &matrix_.scales[scales + 16], &matrix_.scales[scales + 16]);
  }
  EXPECT_TRUE(run({}, x).is_clean());
  EXPECT_GT(differing(expected_, y_), 0);
  for (size_t i = 0; i < y_.size(); ++i) EXPECT_NEAR(y_[i], expected_[i], 1e-3);
}

// A kernel that takes padded rows for rows leaves the view of the outputs.
TEST_F(PlantedProduct, StalePaddedRow) {
  PackedInputs x(x_, kRowCount, kInputs, 1);
  x.rows = x.padded;
  EXPECT_GT(run({}, x).count(simt::Fault::kBounds), 0);
}

// The inputs are packed, and then one of them changes.
TEST_F(PlantedProduct, StaleCodes) {
  const PackedInputs stale(x_, kRowCount, kInputs, 1);
  x_[3 * kInputs + 5] += 1;
  const Floats y = (run({}), y_);
  EXPECT_TRUE(run({}, stale).is_clean());
  EXPECT_EQ(differing(y, y_), kFeatures);
}

// A weight of a neighbour is no better: the last panel reads beyond the matrix.
TEST_F(PlantedProduct, PanelBeyondTheMatrix) {
  matrix_.n += 16;
  EXPECT_GT(run({}).count(simt::Fault::kBounds) +
                emulate(KernelName::kFewRowsCentredNibbles,
                        simt::GroupedProductArgs{.weights = matrix_.grouped(),
                                                 .x = PackedInputs(x_, kRowCount, kInputs, 1).inputs(),
                                                 .y = rows_of(y_),
                                                 .y_stride = kFeatures},
                        {.blocks = 4 * 2, .warps = 8, .shared_bytes = simt::FewRowsMemory::kBytes})
                    .count(simt::Fault::kBounds),
            0);
}

// Norms of three rows, which are packed into codes of stale rows.
class PlantedNorm : public testing::Test {
 protected:
  static constexpr int kRowCount = 3, kDim = 320;

  simt::EmulationReport run(EmulationOptions options, int blocks = 8) {
    packed_ = PackedInputs(kRowCount, kDim);
    y_.assign(x_.size(), std::nanf(""));
    options.checks_races = true;
    return emulate(KernelName::kNormRows,
                   simt::NormRowsArgs{.x = rows_of(x_),
                                      .delta = {},
                                      .weight = weights_of_test(weight_),
                                      .y = rows_of(y_),
                                      .packed = packed_.to(),
                                      .rows = kRowCount,
                                      .dim = kDim,
                                      .epsilon = 1e-5F},
                   {.blocks = blocks, .warps = 4, .shared_bytes = simt::NormRowMemory::bytes(kDim)}, options);
  }

  Floats x_ = random_floats(kRowCount * kDim, 1), weight_ = random_floats(kDim, 2), y_;
  PackedInputs packed_{kRowCount, kDim};
};

TEST_F(PlantedNorm, MissingBarrier) {
  EXPECT_TRUE(run({}).is_clean());
  for (int barrier = 0; barrier < 2; ++barrier) {
    for (uint64_t seed = 1; seed < 4; ++seed)
      EXPECT_GT(run({.seed = seed, .skipped_barrier = barrier}).count(simt::Fault::kRace), 0) << barrier;
  }
}

TEST_F(PlantedNorm, ReadBeforeTheWait) {
  EXPECT_GT(run({.skips_wait_for_previous = true}).count(simt::Fault::kEarlyAccess), 0);
}

// Without blocks for padding rows a product would read stale codes.
TEST_F(PlantedNorm, UnpackedPaddedRows) {
  run({});
  const std::vector<int8_t> codes = packed_.codes;
  EXPECT_TRUE(run({}, kRowCount).is_clean());
  EXPECT_NE(packed_.codes, codes);
  EXPECT_TRUE(std::isnan(packed_.scales[kRowCount]));
}

// A tree of nine nodes on 600 entries, three chunks, in pages of 16 that lie among pages of NaN.
class PlantedAttention : public testing::Test {
 protected:
  static constexpr int kLength = 600, kTreeNodes = 9;

  PlantedAttention()
      : shape_{.head_count = 4, .kv_head_count = 2, .head_dim = 64, .type = DType::kBF16},
        cache_(shape_, numbers(1), numbers(2)),
        tree_(cache_, kLength, kTreeNodes, 3),
        lists_(tree_.rows, cache_.pages),
        q_(random_floats(tree_.rows.size() * static_cast<size_t>(shape_.query_size()), 4)) {}
  void SetUp() override {
    OUTRIDER_REQUIRE_TABLES();
    expected_ = attend(compared_tables().front()->attention, shape_, cache_, q_, tree_.rows, 1);
  }
  Floats numbers(uint64_t seed) const {
    return random_floats(static_cast<size_t>((kLength + kTreeNodes) * shape_.entry_size()), seed);
  }
  simt::EmulationReport run(const EmulationOptions& options = {}) {
    y_.assign(q_.size(), std::nanf(""));
    return launches_.attend({.kernel = KernelName::kAttentionBf16, .options = options}, q_, y_);
  }

  AttentionTestShape shape_;
  PagedCache cache_;
  TreeRows tree_;
  RowLists lists_;
  AttentionLaunches<simt::CachedBf16> launches_{shape_, cache_, lists_};
  Floats q_, expected_, y_;
};

TEST_F(PlantedAttention, NoMistakeIsSilent) {
  EXPECT_TRUE(run().is_clean());
  EXPECT_EQ(differing(expected_, y_), 0);
}

// The last node of the tree sees a node that is not its ancestor.
TEST_F(PlantedAttention, WrongMaskOfATree) {
  const auto row = static_cast<size_t>((kTreeNodes - 1) * simt::RowEntries::kNumbers);
  lists_.tails[static_cast<size_t>(lists_.entries[row + 2])] += 1;
  EXPECT_TRUE(run().is_clean());
  EXPECT_GT(differing(expected_, y_), 0);
}

TEST_F(PlantedAttention, PageOfANeighbour) {
  lists_.pages[2] = 0;  // of no sequence
  EXPECT_TRUE(run().is_clean());
  EXPECT_GT(differing(expected_, y_), 0);
  EXPECT_TRUE(std::isnan(y_[0]));
}

TEST_F(PlantedAttention, PageBeyondTheCache) {
  lists_.pages[2] = 1000;
  EXPECT_GT(run().count(simt::Fault::kBounds), 0);
}

// One entry too few is seen: texts would stay coherent.
TEST_F(PlantedAttention, LengthOffByOne) {
  lists_.entries[1] -= 1;
  EXPECT_TRUE(run().is_clean());
  EXPECT_GT(differing(expected_, y_), 0);
}

// The entries of chunks 0 and 1 change places.
TEST_F(PlantedAttention, WrongOrderOfChunks) {
  constexpr size_t kPages = simt::kChunkEntries / 16;
  std::swap_ranges(lists_.pages.begin(), lists_.pages.begin() + kPages, lists_.pages.begin() + kPages);
  EXPECT_TRUE(run().is_clean());
  EXPECT_GT(differing(expected_, y_), 0);
  for (size_t i = 0; i < kTreeNodes * static_cast<size_t>(shape_.query_size()); ++i)
    EXPECT_NEAR(y_[i], expected_[i], 1e-4);
}

// A launch for other queries has left its chunks there, and an arrival is counted too early: chunks are
// merged before the last one is complete.
TEST_F(PlantedAttention, StaleChunk) {
  const Floats q = std::exchange(q_, random_floats(q_.size(), 6));
  EXPECT_TRUE(run().is_clean());
  q_ = q;
  std::ranges::fill(launches_.arrivals, 1);
  EXPECT_TRUE(run().is_clean());
  EXPECT_GT(differing(expected_, y_), 0);
}

TEST_F(PlantedAttention, ChunksReadBeforeTheWait) {
  EXPECT_GT(run({.skips_wait_for_previous = true}).count(simt::Fault::kEarlyAccess), 0);
  EXPECT_GT(differing(expected_, y_), 0);
}

TEST(PlantedRope, PositionOffByOne) {
  OUTRIDER_REQUIRE_TABLES();
  constexpr int kDim = 64;
  Floats frequencies(kDim / 2);
  for (size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = std::pow(1e-4F, static_cast<float>(i) / 32);
  Floats right(kDim), wrong(kDim), x = random_floats(kDim, 5), expected = x;
  fill_rotations(1000, frequencies, 1.0F, right.data());
  fill_rotations(1001, frequencies, 1.0F, wrong.data());
  compared_tables().front()->rope({.x = expected.data(),
                                   .rotations = right.data(),
                                   .rows = 1,
                                   .heads = 1,
                                   .head_dim = kDim,
                                   .rotated = kDim},
                                  Worker{});
  run_kernel(KernelName::kRope,
             simt::RopeArgs{.x = rows_of(x),
                            .rotations = {wrong.data(), kDim},
                            .rows = 1,
                            .heads = 1,
                            .head_dim = kDim,
                            .rotated = kDim,
                            .x_stride = kDim},
             {});
  EXPECT_GT(differing(expected, x), kDim / 2);
}

// The last node of a tree follows a node that is not its parent.
TEST(PlantedStates, SiblingForAParent) {
  constexpr int kDim = 40, kStride = 3 * kDim;
  StateTestNodes nodes(5);
  const TestUpdates updates(nodes, 1);
  const Floats states = random_floats(StateTestNodes::kStates * kStride, 2),
               taps = random_floats(4 * kDim, 3);
  const auto run = [&] {
    Floats y(static_cast<size_t>(nodes.count * kDim));
    run_kernel(KernelName::kConvolve,
               simt::ConvolveArgs{.inputs = updates.view(nodes),
                                  .states = rows_of(states),
                                  .taps = weights_of_test(taps),
                                  .bias = {},
                                  .y = rows_of(y),
                                  .nodes = nodes.count,
                                  .dim = kDim,
                                  .tap_count = 4,
                                  .state_stride = kStride},
               {.blocks = nodes.count, .warps = 2});
    return y;
  };
  const Floats expected = run();
  const int last = nodes.sequences[1] - 1;
  int& parent = nodes.nodes[static_cast<size_t>(last * simt::StateNodes::kNumbers)];
  parent = parent + 1 < last ? parent + 1 : parent - 1;
  EXPECT_GT(differing(expected, run()), 0);
}

// Tiles of eight rows have the matrices 0 and 1.
TEST(PlantedStack, MatrixOfANeighbour) {
  OUTRIDER_REQUIRE_TABLES();
  constexpr int kN = 16, kK = 64, kPlaces = 16;
  const auto packed =
      pack_matrix(*compared_tables().front(), random_matrix(DType::kF32, 2 * kN, kK, 1).view());
  ASSERT_TRUE(packed.ok());
  const auto both = device_matrix(*packed);
  ASSERT_TRUE(both.ok());
  const Floats x = random_floats(kPlaces * kK, 2);
  const auto run = [&](const std::vector<int>& tiles, simt::EmulationReport& report) {
    Floats y(kPlaces * kN);
    report = emulate(KernelName::kStackedF32Rows,
                     simt::StackedF32Args{.product = {.weights = both->plain<float>(),
                                                      .x = rows_of(x),
                                                      .y = rows_of(y),
                                                      .rows = kPlaces,
                                                      .n = kN,
                                                      .k = kK,
                                                      .y_stride = kN},
                                          .tiles = rows_of(tiles),
                                          .matrices = 2},
                     {.blocks = 2, .warps = 8, .shared_bytes = simt::FloatMemory::kBytes});
    return y;
  };
  simt::EmulationReport report;
  const Floats expected = run({0, 1}, report);
  EXPECT_TRUE(report.is_clean());
  EXPECT_EQ(differing(expected, run({1, 1}, report)), 8 * kN);
}

}  // namespace
}  // namespace outrider
