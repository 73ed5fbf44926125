// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts against a slow, obvious version, and the bits of a row beside other rows.
#include "models/blocks/experts/expert_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/kernel_test_data.h"

namespace outrider {
namespace {

constexpr int64_t kHidden = 64;
constexpr int64_t kFfn = 96;

struct MixtureOptions {
  std::string_view kernels = "reference";
  DType gate = DType::kF32;
  DType up = DType::kF32;
  DType down = DType::kF32;
  ExpertTraits traits = {.count = 5, .used = 2, .ffn_size = kFfn};
  int workers = 1;
};

// A mixture of random experts, packed, and its weights as numbers.
class TestMixture {
 public:
  explicit TestMixture(const MixtureOptions& options)
      : kernels_(*select_kernels(options.kernels)), pool_(options.workers), ops_(kernels_, &pool_) {
    config_.hidden_size = kHidden;
    config_.experts = options.traits;
    const int64_t count = options.traits.count;
    router_ = add(layer_.router, {DType::kF32}, {count}, kHidden, options.traits.router_bias);
    layer_.experts.resize(static_cast<size_t>(count));
    for (MlpWeights& expert : layer_.experts) {
      gate_up_.push_back(
          add(expert.gate_up, {options.gate, options.up}, {kFfn, kFfn}, kHidden, options.traits.bias));
      down_.push_back(add(expert.down, {options.down}, {kHidden}, kFfn, options.traits.bias));
    }
  }

  Floats run(const Floats& x) {
    const auto rows = std::ssize(x) / kHidden;
    Floats y(x.size(), std::nanf(""));
    ExpertOps experts(config_.experts, config_.mlp, config_.hidden_size, ops_);
    experts.reserve(layer_, rows);
    experts.run(layer_, {x.data(), x.data()}, y.data(), rows, {});
    chosen_ = experts.chosen();
    return y;
  }
  int64_t chosen() const { return chosen_; }

  // One row in double precision.
  std::vector<double> expected(const float* x) const {
    const ExpertTraits& traits = config_.experts;
    const std::vector<double> input(x, x + kHidden);
    const std::vector<double> outputs = multiply(router_, layer_.router, input);
    const std::vector<float> rounded(outputs.begin(), outputs.end());
    std::vector<ExpertChoice> choices(static_cast<size_t>(traits.used));
    choose_experts({traits, rounded.data()}, choices.data());
    std::vector<double> sum(kHidden);
    for (const ExpertChoice& choice : choices) {
      const auto e = static_cast<size_t>(choice.expert);
      std::vector<double> weighed = input;
      for (double& number : weighed) number *= traits.weighs_inputs ? choice.weight : 1;
      const std::vector<double> both = multiply(gate_up_[e], layer_.experts[e].gate_up, weighed);
      std::vector<double> gated;
      for (size_t i = 0; i < kFfn; ++i) gated.push_back(both[i] / (1 + std::exp(-both[i])) * both[kFfn + i]);
      const std::vector<double> result = multiply(down_[e], layer_.experts[e].down, gated);
      for (size_t d = 0; d < kHidden; ++d) sum[d] += (traits.weighs_inputs ? 1 : choice.weight) * result[d];
    }
    return sum;
  }

 private:
  // Fills `projection` with parts of these types and sizes, side by side where neighbours have one type.
  Floats add(Projection& projection, std::vector<DType> types, std::vector<int64_t> sizes, int64_t k,
             bool bias) {
    Floats values;
    projection.k = k;
    for (size_t i = 0; i < types.size();) {
      std::vector<StoredMatrix> run;
      std::vector<TensorView> views;
      for (const DType type = types[i]; i < types.size() && types[i] == type; ++i)
        run.push_back(random_matrix(type, sizes[i], k, ++seed_));
      for (const StoredMatrix& matrix : run) {
        views.push_back(matrix.view());
        const Floats part = matrix.values();
        values.insert(values.end(), part.begin(), part.end());
        projection.n += matrix.n;
      }
      const MatrixSource source{views, views.front().dtype};
      projection.parts.push_back(kernels_->layout(source).value());
      EXPECT_TRUE(allocate(projection.parts.back()).ok());
      kernels_->pack(source, projection.parts.back(), Worker{});
    }
    if (bias) projection.bias = random_floats(static_cast<size_t>(projection.n), ++seed_, 0.1F);
    return values;
  }

  static std::vector<double> multiply(const Floats& weights, const Projection& projection,
                                      const std::vector<double>& x) {
    std::vector<double> y;
    for (int64_t j = 0; j < projection.n; ++j) {
      double sum = projection.bias.empty() ? 0 : projection.bias[static_cast<size_t>(j)];
      for (int64_t i = 0; i < projection.k; ++i)
        sum += weights[static_cast<size_t>(j * projection.k + i)] * x[static_cast<size_t>(i)];
      y.push_back(sum);
    }
    return y;
  }

  const KernelTable* kernels_;
  ThreadPool pool_;
  LayerOps ops_;
  ModelConfig config_;
  ExpertWeights layer_;
  Floats router_;                       // [count, hidden]
  std::vector<Floats> gate_up_, down_;  // by expert
  uint64_t seed_ = 0;
  int64_t chosen_ = 0;
};

void expect_close(TestMixture& mixture, const Floats& x, double tolerance) {
  const Floats y = mixture.run(x);
  for (size_t row = 0; row * kHidden < x.size(); ++row) {
    const std::vector<double> expected = mixture.expected(x.data() + row * kHidden);
    for (size_t d = 0; d < kHidden; ++d)
      ASSERT_NEAR(y[row * kHidden + d], expected[d], tolerance) << "row " << row;
  }
}

std::vector<ExpertTraits> all_traits() {
  ExpertTraits plain{.count = 5, .used = 2, .ffn_size = kFfn};
  ExpertTraits one = plain, all = plain, biased = plain, weighed = plain, single = plain;
  one.used = 1;
  all.used = 5;
  all.weights = RouterWeights::kSoftmax;
  biased.bias = biased.router_bias = true;
  weighed.weighs_inputs = true;
  weighed.weights = RouterWeights::kSigmoid;
  single.count = single.used = 1;
  return {plain, one, all, biased, weighed, single};
}

TEST(ExpertOps, AgreesWithDoublePrecision) {
  for (const auto kernels : available_kernels()) {
    for (const ExpertTraits& traits : all_traits()) {
      for (const int rows : {1, 2, 7, 40}) {
        TestMixture mixture({.kernels = kernels, .traits = traits, .workers = 2});
        expect_close(mixture, random_floats(static_cast<size_t>(rows * kHidden), 7), 2e-5);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// Gate and up of different types are separate products; their outputs are put side by side.
TEST(ExpertOps, PartsOfDifferentTypesAgree) {
  for (const auto kernels : available_kernels()) {
    for (const int rows : {1, 9}) {
      ExpertTraits traits{.count = 4, .used = 2, .ffn_size = kFfn};
      traits.bias = true;
      TestMixture mixture({.kernels = kernels,
                           .gate = DType::kQ8_0,
                           .up = DType::kF32,
                           .down = DType::kQ4_0,
                           .traits = traits,
                           .workers = 2});
      // Inputs in 8 bits are as exact as their scales; activations are of the order of 1.
      expect_close(mixture, random_floats(static_cast<size_t>(rows * kHidden), 7), 2e-2);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// Rows that agree activate the experts of one row; the others are not read.
TEST(ExpertOps, ReadsTheExpertsThatRowsChose) {
  TestMixture mixture({});
  const Floats row = random_floats(kHidden, 3);
  Floats rows;
  for (int i = 0; i < 6; ++i) rows.insert(rows.end(), row.begin(), row.end());
  mixture.run(rows);
  EXPECT_EQ(mixture.chosen(), 2);
}

// The row, with others before and after it: of random numbers, NaN, or equal ones.
struct Neighbours {
  int before = 0;
  int after = 0;
  float number = 0;  // NaN or a constant; 0: random numbers
};

Floats rows_around(const Floats& row, const Neighbours& neighbours) {
  const auto some = [&](int count, uint64_t seed) {
    const auto size = static_cast<size_t>(count * kHidden);
    return neighbours.number == 0 ? random_floats(size, seed, 3) : Floats(size, neighbours.number);
  };
  Floats rows = some(neighbours.before, 11);
  rows.insert(rows.end(), row.begin(), row.end());
  const Floats last = some(neighbours.after, 12);
  rows.insert(rows.end(), last.begin(), last.end());
  return rows;
}

void expect_row_stays(MixtureOptions options, const std::string& what) {
  const Floats row = random_floats(kHidden, 5);
  const Floats alone = TestMixture(options).run(row);
  const Neighbours all[] = {
      {1, 0},   {0, 1}, {3, 4}, {16, 0}, {20, 40}, {300, 211}, {2, 3, std::nanf("")}, {40, 30, std::nanf("")},
      {5, 8, 1}};
  for (const int workers : {1, 3}) {
    options.workers = workers;
    TestMixture mixture(options);
    for (const Neighbours& neighbours : all) {
      const Floats y = mixture.run(rows_around(row, neighbours));
      ASSERT_EQ(std::memcmp(y.data() + neighbours.before * kHidden, alone.data(), kHidden * sizeof(float)), 0)
          << what << ", row " << neighbours.before << " before " << neighbours.after;
    }
  }
}

TEST(ExpertOps, OtherRowsLeaveTheBitsAlone) {
  for (const auto kernels : available_kernels()) {
    for (const DType type : {DType::kF32, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kMXFP4}) {
      for (const ExpertTraits& traits : all_traits()) {
        expect_row_stays({kernels, type, type, type, traits},
                         std::string(kernels) + " " + std::string(dtype_name(type)));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
    expect_row_stays({kernels, DType::kQ8_0, DType::kF32, DType::kQ4_0}, "mixed types");
  }
}

}  // namespace
}  // namespace outrider
