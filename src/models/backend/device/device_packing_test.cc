// SPDX-License-Identifier: Apache-2.0
// Kernels that make rows pack them for the products that follow, and only for these.
#include <gtest/gtest.h>

#include <functional>

#include "device/compared_device.h"
#include "device/emulated_device.h"
#include "kernels/kernel_test_data.h"
#include "models/backend/device/device_ops.h"
#include "models/backend/device/make_backends.h"
#include "models/decoder.h"
#include "models/model_test_data.h"

namespace outrider {
namespace {

const KernelTable* table_for_packing() {
  const auto table = select_device_kernels();
  return table.ok() ? *table : nullptr;
}

// Rows on a device, their norm, and products with it of two matrices that have other inputs.
class PackedRowsTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = 5, kWidth = 64, kHalf = 32, kOutputs = 48;

  void SetUp() override {
    if (table_for_packing() == nullptr) GTEST_SKIP() << "this machine has no table with these bits";
    fill(wide_, kWidth);
    fill(narrow_, kHalf);
    ops_.upload(wide_);
    ops_.upload(narrow_);
    x_.write(random_floats(kRows * kWidth, 1));
    others_.write(random_floats(2 * kRows * kWidth, 2));
  }
  static void fill(Projection& projection, int64_t k) {
    auto packed = pack_matrix(*table_for_packing(), random_matrix(DType::kQ4_0, kOutputs, k, 3).view());
    ASSERT_TRUE(packed.ok()) << packed.error().message;
    projection.parts.push_back(std::move(*packed));
    projection.n = kOutputs;
    projection.k = k;
  }
  void normalize() {
    ops_.normalize({.x = place(x_),
                    .delta = {},
                    .y = place(normed_),
                    .weight = weight_,
                    .of = {.rows = kRows,
                           .parts = 1,
                           .dim = kWidth,
                           .x_stride = kWidth,
                           .y_stride = kWidth,
                           .weight_stride = 0,
                           .epsilon = 1e-5F}});
  }
  struct Used {
    const Projection* projection;
    int64_t rows = kRows;
  };
  // The product with the norm, after `between`, and launches that packed for it. Its bits are the bits of
  // operations that have packed nothing before.
  int64_t packings(const Used& used, const std::function<void()>& between) {
    normalize();
    between();
    const int64_t before = launches_of_packing();
    ops_.project(*used.projection, place(normed_), place(y_), used.rows);
    const int64_t launches = launches_of_packing() - before;
    DeviceOps fresh(device_);
    fresh.project(*used.projection, place(normed_), place(expected_), used.rows);
    EXPECT_EQ(outputs(y_, used.rows), outputs(expected_, used.rows));
    return launches;
  }
  int64_t packings(const std::function<void()>& between) { return packings({&wide_}, between); }

  int64_t launches_of_packing() const {
    const auto found = device_.comparisons().find("PackInputs");
    return found == device_.comparisons().end() ? 0 : found->second.launches;
  }
  static std::vector<float> outputs(const DeviceNumbers<float>& y, int64_t rows) {
    std::vector<float> numbers = y.read();
    numbers.resize(static_cast<size_t>(rows * kOutputs));
    return numbers;
  }
  static FloatAddress place(const DeviceNumbers<float>& numbers) { return FloatAddress(numbers.address()); }

  EmulatedDevice emulated_{{.checks_races = true}};
  ComparedDevice device_{emulated_};
  Projection wide_, narrow_;
  std::vector<float> weight_ = random_floats(kWidth, 4);
  DeviceNumbers<float> x_{device_, kRows*kWidth}, others_{device_, 2 * kRows*kWidth},
      normed_{device_, kRows*kWidth}, y_{device_, kRows*kWidth}, expected_{device_, kRows*kWidth};
  DeviceOps ops_{device_};
};

TEST_F(PackedRowsTest, NormsPackForProducts) {
  EXPECT_EQ(packings([] {}), 0);
  // A product leaves its inputs as they are.
  EXPECT_EQ(packings([this] { ops_.project(wide_, place(normed_), place(y_), kRows); }), 0);
}

TEST_F(PackedRowsTest, ActivationsPackForProducts) {
  const auto activate = [this] {
    ops_.activate({.x = place(others_), .y = place(normed_), .rows = kRows, .dim = kWidth});
  };
  EXPECT_EQ(packings(activate), 0);
}

TEST_F(PackedRowsTest, OtherRowsArePackedAgain) {
  EXPECT_EQ(packings({.projection = &wide_, .rows = kRows - 1}, [] {}), 1);
  EXPECT_EQ(packings({.projection = &narrow_}, [] {}), 1);
  EXPECT_EQ(packings([this] { ops_.project(narrow_, place(others_), place(y_), kRows); }), 1);
  EXPECT_EQ(packings([this] { ops_.project(wide_, place(others_), place(y_), kRows); }), 1);
}

TEST_F(PackedRowsTest, ChangedRowsArePackedAgain) {
  EXPECT_EQ(packings([this] { normed_.write(random_floats(kRows * kWidth, 7)); }), 1);
  EXPECT_EQ(packings([this] { device_.copy(others_.address(), normed_.address(), kWidth * 4); }), 1);
  EXPECT_EQ(packings([this] { ops_.launcher().fill(normed_.address(), std::byte{0}, kWidth * 4); }), 1);
  EXPECT_EQ(packings([this] {
              ops_.run(KernelName::kScaleNumbers,
                       {.x = place(normed_), .y = place(normed_), .dim = kWidth, .number = 3});
            }),
            1);
  // The outputs of a product lie among its inputs.
  EXPECT_EQ(packings([this] { ops_.project(wide_, place(normed_), place(normed_) + 8, kRows); }), 1);
}

// Products of other operations on the device do not know what these have packed.
TEST_F(PackedRowsTest, OtherOperationsMakeItForget) {
  DeviceOps others(device_);
  EXPECT_EQ(packings([&] { others.softcap(place(normed_), kRows * kWidth, 1.0F); }), 1);
}

// A list runs at other times than its recording: it packs what it reads.
TEST_F(PackedRowsTest, RecordedListsBeginWithNothingPacked) {
  const RecordedRows rows{};
  normalize();
  DeviceList list;
  ops_.record(&rows, &list);
  ops_.project(wide_, place(normed_), place(y_), kRows);
  ops_.project(wide_, place(normed_), place(expected_), kRows);
  ops_.record(nullptr, nullptr);
  EXPECT_EQ(list.entries().size(), 3U);
  const auto loaded = device_.load(std::move(list));
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(packings([&] {
              normed_.write(random_floats(kRows * kWidth, 8));
              (*loaded)->run();
            }),
            1);
  normed_.write(random_floats(kRows * kWidth, 9));
  (*loaded)->run();
  const std::vector<float> found = outputs(y_, kRows);
  DeviceOps fresh(device_);
  fresh.project(wide_, place(normed_), place(y_), kRows);
  EXPECT_EQ(found, outputs(y_, kRows));
}

// Uploads while a list is recorded are none of its entries.
TEST_F(PackedRowsTest, RecordedListsPackInNorms) {
  const RecordedRows rows{};
  DeviceList list;
  ops_.record(&rows, &list);
  normalize();
  x_.write(random_floats(kRows * kWidth, 5));
  ops_.project(wide_, place(normed_), place(y_), kRows);
  ops_.record(nullptr, nullptr);
  EXPECT_EQ(list.entries().size(), 2U);
}

// Launches of passes of a small Llama, by kernel.
std::map<std::string_view, int64_t> launches_of_passes(DType weights) {
  ThreadPool pool(1);
  auto file = open_model(model_data("llama"));
  EXPECT_TRUE(file.ok());
  const ModelOptions options{.kernels = table_for_packing(), .pool = &pool, .weights = weights};
  EmulatedDevice emulated({});
  ComparedDevice device(emulated);
  auto backend = make_device_backend(device, file->config, options,
                                     [&] { return load_decoder_weights(*file, options); });
  EXPECT_TRUE(backend.ok());
  Decoder model(file->config, options, std::move(*backend));
  KvCache cache(small_cache_shape(model), KvOptions{}, model.make_storage(small_cache_shape(model)));
  const std::vector<TokenId> tokens = random_tokens(3, model.config().vocab_size, 1);
  KvSequence sequence = cache.open(tokens);
  run_chunk(model, cache, sequence, tokens);
  std::map<std::string_view, int64_t> launches;
  for (const auto& [kernel, comparison] : device.comparisons()) launches[kernel] = comparison.launches;
  launches["layers"] = model.config().layer_count;
  return launches;
}

// The inputs of all products are packed where they are made.
TEST(PackedPasses, NoLaunchPacksOnly) {
  if (table_for_packing() == nullptr) GTEST_SKIP() << "this machine has no table with these bits";
  auto launches = launches_of_passes(DType::kQ4_0);
  EXPECT_GT(launches["layers"], 1);
  EXPECT_EQ(launches["PackInputs"], 0);
  const auto of = [&](std::string_view begin) {
    int64_t sum = 0;
    for (const auto& [kernel, count] : launches) sum += kernel.starts_with(begin) ? count : 0;
    return sum;
  };
  for (const char* kernel : {"RotateAndStore", "Attention", "ActivatedFewRows"})
    EXPECT_EQ(of(kernel), launches["layers"]) << kernel;
  EXPECT_EQ(of("FewRows"), 3 * launches["layers"] + 1);
  EXPECT_EQ(launches["NormRows"], 2 * launches["layers"] + 1);
  EXPECT_EQ(launches["RmsNorm"], 0);
}

TEST(PackedPasses, NothingIsPackedForOtherProducts) {
  if (table_for_packing() == nullptr) GTEST_SKIP() << "this machine has no table with these bits";
  auto launches = launches_of_passes(DType::kBF16);
  EXPECT_EQ(launches["PackInputs"], 0);
  EXPECT_EQ(launches["NormRows"], 2 * launches["layers"] + 1);
}

}  // namespace
}  // namespace outrider
