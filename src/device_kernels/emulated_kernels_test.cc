// SPDX-License-Identifier: Apache-2.0
// Emulated kernels have the same bits for every instruction set of this machine. On another processor the
// emulation is another program, whose bits have to be these, too.
#include "device_kernels/emulated_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "device_kernels/products/product_test_data.h"
#include "device_kernels/states/state_test_nodes.h"

namespace outrider {
namespace {

// Runs a kernel for each instruction set; `y` is what it writes.
template <typename Args, typename Number>
void expect_same_bits(KernelName name, const Args& args, const LaunchShape& shape, std::vector<Number>& y) {
  std::vector<Number> first;
  for (const EmulatedKernels& set : all_emulated_kernels()) {
    std::ranges::fill(y, Number(99));
    const auto report = simt::emulate(kernel_of(set, name), &args, shape, {.seed = 3});
    EXPECT_TRUE(report.is_clean()) << report.first;
    if (first.empty()) first = y;
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(first)), std::as_bytes(std::span(y))))
        << device_kernel(name).name;
  }
}

constexpr int kFeatures = 33, kRowCount = 9;

TEST(EmulatedKernelsTest, GroupedProducts) {
  OUTRIDER_REQUIRE_TABLES();
  for (const DType type : kAllDTypes) {
    if (!has_codes(type) || type == DType::kI8) continue;
    const int k = static_cast<int>(3 * std::max<int64_t>(32, block_elements(type)));
    const auto packed = pack_matrix(*compared_tables().front(), random_matrix(type, kFeatures, k, 1).view());
    ASSERT_TRUE(packed.ok());
    const auto matrix = device_matrix(*packed);
    ASSERT_TRUE(matrix.ok());
    const PackedInputs x(adversarial_floats(static_cast<size_t>(kRowCount) * k, 2), kRowCount, k, 1);
    Floats y(kRowCount * kFeatures);
    const simt::GroupedProductArgs args{
        .weights = matrix->grouped(), .x = x.inputs(), .y = rows_of(y), .y_stride = kFeatures};
    expect_same_bits(few_rows_of(matrix->form), args,
                     {.blocks = 3 * 2, .warps = 8, .shared_bytes = simt::FewRowsMemory::kBytes}, y);
    expect_same_bits(many_rows_of(matrix->form), args, {.blocks = 1, .warps = 4}, y);
  }
}

TEST(EmulatedKernelsTest, PlainProducts) {
  OUTRIDER_REQUIRE_TABLES();
  constexpr int kInputs = 301;
  const Floats x = adversarial_floats(kRowCount * kInputs, 3);
  const auto run = [&]<typename Numbers>(DType type, KernelName name, Numbers) {
    const auto packed =
        pack_matrix(*compared_tables().front(), random_matrix(type, kFeatures, kInputs, 1).view());
    ASSERT_TRUE(packed.ok());
    const auto matrix = device_matrix(*packed);
    ASSERT_TRUE(matrix.ok());
    Floats y(kRowCount * kFeatures);
    const simt::FloatProductArgs<Numbers> args{.weights = matrix->plain<typename Numbers::Stored>(),
                                               .x = rows_of(x),
                                               .y = rows_of(y),
                                               .rows = kRowCount,
                                               .n = kFeatures,
                                               .k = kInputs,
                                               .y_stride = kFeatures};
    expect_same_bits(name, args, {.blocks = 3 * 2, .warps = 2, .shared_bytes = simt::FloatMemory::kBytes}, y);
  };
  run(DType::kF32, KernelName::kF32Rows, simt::F32Weights{});
  run(DType::kF16, KernelName::kF16Rows, simt::F16Weights{});
  run(DType::kBF16, KernelName::kBf16Rows, simt::Bf16Weights{});
}

TEST(EmulatedKernelsTest, Functions) {
  constexpr int kCount = 4000;
  const Floats x = adversarial_floats(kCount, 4);
  Floats y(kCount);
  const simt::ActivationArgs args{
      .x = rows_of(x), .y = rows_of(y), .rows = 1, .dim = kCount, .is_gated = 0, .packed = {}};
  for (const KernelName name : {KernelName::kSilu, KernelName::kGelu, KernelName::kGeluTanh,
                                KernelName::kRelu, KernelName::kClampedSwiglu})
    expect_same_bits(name, args, {.blocks = 32, .warps = 4}, y);
}

TEST(EmulatedKernelsTest, NormsThatPack) {
  constexpr int kDim = 352;
  Floats x = adversarial_floats(kRowCount * kDim, 5);
  const Floats weight = adversarial_floats(kDim, 6);
  Floats y(kRowCount * kDim);
  PackedInputs packed(kRowCount, kDim);
  const simt::NormRowsArgs args{.x = rows_of(x),
                                .delta = {},
                                .weight = weights_of_test(weight),
                                .y = rows_of(y),
                                .packed = packed.to(),
                                .rows = kRowCount,
                                .dim = kDim,
                                .epsilon = 1e-5F};
  const LaunchShape shape{
      .blocks = packed.padded, .warps = 3, .shared_bytes = simt::NormRowMemory::bytes(kDim)};
  expect_same_bits(KernelName::kNormRows, args, shape, y);
  expect_same_bits(KernelName::kNormRows, args, shape, packed.codes);
}

// Functions that compute in f64.
TEST(EmulatedKernelsTest, PortableFunctions) {
  constexpr int kHeads = 70;
  const StateTestNodes nodes(1);
  const TestUpdates updates(nodes, 2);
  const Floats bias = adversarial_floats(kHeads, 3), decay = adversarial_floats(kHeads, 4);
  Floats rates(static_cast<size_t>(nodes.count * 2 * kHeads));
  expect_same_bits(KernelName::kDeltaRates,
                   simt::DeltaRatesArgs{.updates = updates.view(nodes),
                                        .time_bias = weights_of_test(bias),
                                        .decay = weights_of_test(decay),
                                        .rates = rows_of(rates),
                                        .nodes = nodes.count,
                                        .heads = kHeads,
                                        .first = 0},
                   {.blocks = nodes.count, .warps = 3}, rates);
}

// The choices and the weights of a row with many equal outputs.
TEST(EmulatedKernelsTest, ChosenExperts) {
  constexpr int kExperts = 90, kUsed = 33;
  Floats outputs = adversarial_floats(kExperts, 1), values(kExperts), sums(1), weights(kUsed);
  for (size_t i = 0; i < outputs.size(); i += 2) outputs[i] = static_cast<float>(i % 8);
  std::vector<int> experts(kUsed);
  expect_same_bits(KernelName::kChooseExperts,
                   simt::ChooseExpertsArgs{.outputs = rows_of(std::as_const(outputs)),
                                           .choice_bias = {},
                                           .scales = {},
                                           .slots = {},
                                           .values = rows_of(values),
                                           .sums = rows_of(sums),
                                           .experts = rows_of(experts),
                                           .weights = rows_of(weights),
                                           .rows = 1,
                                           .count = kExperts,
                                           .used = kUsed,
                                           .groups = 1,
                                           .used_groups = 1,
                                           .ranks_groups_by_best = 0,
                                           .rule = simt::RouterRule::kSoftmax,
                                           .scale = 1.0F},
                   {}, weights);
}

// The last unit of a head is not full.
TEST(EmulatedKernelsTest, StoredHeads) {
  constexpr int kHeads = 6, kDim = 80, kUnits = 3;
  Floats rows = adversarial_floats(kHeads * kDim, 5);
  const std::vector<int> slots = {0};
  const auto run = [&]<typename Cached>(KernelName name, Cached) {
    std::vector<typename Cached::Stored> cache(kHeads * kUnits * Cached::kUnitNumbers);
    const simt::RotateAndStoreArgs<Cached> args{.rope = {.x = rows_of(rows),
                                                         .rotations = {},
                                                         .rows = 1,
                                                         .heads = kHeads,
                                                         .head_dim = kDim,
                                                         .rotated = 0,
                                                         .x_stride = kHeads * kDim},
                                                .kv_heads = kHeads,
                                                .keys = rows_of(cache),
                                                .values = {},
                                                .slots = {slots.data(), 1}};
    expect_same_bits(name, args, {.blocks = 2, .warps = 4}, cache);
  };
  run(KernelName::kRotateAndStoreBf16, simt::CachedBf16{});
  run(KernelName::kRotateAndStoreF16, simt::CachedF16{});
  run(KernelName::kRotateAndStoreE4m3, simt::CachedE4m3{});
  run(KernelName::kRotateAndStoreQ8, simt::CachedQ8{});
}

// Rows of logits of which a third is greedy, a third a race and a third the race of what top-k keeps.
struct ChoiceCase {
  static constexpr int kRows = 12, kVocab = 2500, kParts = 3;

  Floats logits = adversarial_floats(kRows * kVocab, 6), largest = Floats(kRows * kParts), steepness;
  std::vector<int> modes, places = std::vector<int>(kRows, 77),
                          largest_tokens = std::vector<int>(kRows * kParts), kept = std::vector<int>(kRows),
                          kept_tokens = std::vector<int>(kRows * kVocab),
                          firsts = std::vector<int>(kRows * kParts), arrivals = std::vector<int>(kRows),
                          chosen = std::vector<int>(kRows);
  std::vector<double> limits, kept_weights = std::vector<double>(kRows * kVocab),
                              totals = std::vector<double>(kRows),
                              times = std::vector<double>(kRows * kParts);
  std::vector<uint64_t> keys;

  ChoiceCase() {
    for (int row = 0; row < kRows; ++row) {
      modes.insert(modes.end(), {1 + row % 3, 50});
      limits.insert(limits.end(), {0.5 + row, 0.01});
      steepness.insert(steepness.end(), {static_cast<float>(1 / (0.5 + row)), 5.0F});
      keys.push_back(static_cast<uint64_t>(row) * 0x9E3779B97F4A7C15);
    }
  }
  simt::ChoiceArgs args() {
    return {.logits = rows_of(std::as_const(logits)),
            .of = {.modes = {modes.data(), std::ssize(modes)},
                   .limits = {limits.data(), std::ssize(limits)},
                   .steepness = {steepness.data(), std::ssize(steepness)},
                   .keys = {keys.data(), std::ssize(keys)},
                   .places = rows_of(std::as_const(places))},
            .largest = rows_of(largest),
            .largest_tokens = rows_of(largest_tokens),
            .kept = rows_of(kept),
            .kept_tokens = rows_of(kept_tokens),
            .kept_weights = rows_of(kept_weights),
            .totals = rows_of(totals),
            .times = rows_of(times),
            .firsts = rows_of(firsts),
            .arrivals = rows_of(arrivals),
            .chosen = rows_of(chosen),
            .rows = kRows,
            .vocab = kVocab,
            .stride = kVocab,
            .parts = kParts,
            .period = kRows};
  }
};

TEST(EmulatedKernelsTest, Choices) {
  ChoiceCase one;
  const simt::ChoiceArgs args = one.args();
  constexpr int kItems = ChoiceCase::kRows * ChoiceCase::kParts;
  const LaunchShape parts{.blocks = kItems, .warps = 1, .shared_bytes = simt::KeptMemory::kBytes},
      rows{.blocks = ChoiceCase::kRows,
           .warps = simt::KeptMemory::kMostWarps,
           .shared_bytes = simt::KeptMemory::kBytes};
  expect_same_bits(KernelName::kFindLargest, args, parts, one.largest_tokens);
  expect_same_bits(KernelName::kFindLargest, args, rows, one.kept_weights);
  expect_same_bits(KernelName::kRaceTokens, args, {.blocks = kItems, .warps = 1}, one.times);
  expect_same_bits(KernelName::kRaceTokens, args, {.blocks = kItems, .warps = 1}, one.chosen);
  EXPECT_EQ(one.arrivals, std::vector<int>(ChoiceCase::kRows));
  for (const int token : one.chosen) EXPECT_TRUE(token >= 0 && token < ChoiceCase::kVocab);
}

}  // namespace
}  // namespace outrider
