// SPDX-License-Identifier: Apache-2.0
// Agreement with Hugging Face transformers on random models of every family, made by
// tools/make_model_goldens.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "formats/families.h"
#include "models/model_test_data.h"

namespace outrider {
namespace {

constexpr double kTolerance = 1e-4;

struct Golden {
  std::vector<TokenId> prompt;
  std::vector<TokenId> greedy;                    // [steps]
  std::vector<std::vector<TokenId>> top_ids;      // [steps, k]
  std::vector<std::vector<double>> top_logprobs;  // [steps, k]
  std::vector<double> mean_logprob;               // [steps], the mean over the vocabulary
};

Golden read_golden(const std::string& model) {
  std::ifstream stream(model_data(model + "/golden.json"));
  EXPECT_TRUE(stream.good()) << model;
  const auto json = nlohmann::json::parse(stream);
  return {json.at("prompt"), json.at("greedy"), json.at("top_ids"), json.at("top_logprobs"),
          json.at("mean_logprob")};
}

std::vector<double> log_softmax(const std::vector<float>& logits) {
  const double peak = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - peak);
  std::vector<double> result;
  for (const float logit : logits) result.push_back(logit - peak - std::log(sum));
  return result;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Decodes greedily and compares every step.
void expect_golden(TestModel& model, const Golden& golden) {
  ASSERT_EQ(golden.greedy.size(), 64u);
  const auto cache = model.make_cache(16, 256);
  KvSequence sequence = cache->open({});
  std::vector<float> logits = run_chunk(*model, *cache, sequence, golden.prompt).back();
  for (size_t step = 0; step < golden.greedy.size(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    const auto logprobs = log_softmax(logits);
    const auto best = static_cast<TokenId>(std::ranges::max_element(logprobs) - logprobs.begin());
    ASSERT_EQ(best, golden.greedy[step]);
    for (size_t i = 0; i < golden.top_ids[step].size(); ++i) {
      const auto id = static_cast<size_t>(golden.top_ids[step][i]);
      ASSERT_NEAR(logprobs[id], golden.top_logprobs[step][i], kTolerance);
    }
    ASSERT_NEAR(mean(logprobs), golden.mean_logprob[step], kTolerance);
    logits = run_chunk(*model, *cache, sequence, std::vector{best}).back();
  }
}

std::vector<ModelCase> golden_cases() {
  std::vector<ModelCase> cases;
  for (const auto kernels : available_kernels()) {
    for (const std::string& model : all_models()) cases.push_back({model, std::string(kernels), DType::kF32});
  }
  return cases;
}

class GoldenTest : public testing::TestWithParam<ModelCase> {};

TEST_P(GoldenTest, AgreesWithTransformers) {
  const ModelCase& param = GetParam();
  TestModel model({.name = param.model, .kernels = param.kernels, .weights = param.weights});
  ASSERT_TRUE(model.ok());
  expect_golden(model, read_golden(param.model));
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest, testing::ValuesIn(golden_cases()), case_name);

TEST(GgufModel, GivesTheBitsOfItsHuggingFaceDirectory) {
  TestModel directory({.name = "llama", .weights = DType::kF32});
  TestModel gguf({.name = "llama.gguf", .weights = DType::kF32});
  ASSERT_TRUE(directory.ok() && gguf.ok());
  EXPECT_EQ(gguf->parameter_count(), directory->parameter_count());
  const auto tokens = random_tokens(40, directory->config().vocab_size, 3);
  const auto expected_cache = directory.make_cache(16, 64);
  const auto actual_cache = gguf.make_cache(16, 64);
  KvSequence expected = expected_cache->open({});
  KvSequence actual = actual_cache->open({});
  EXPECT_EQ(run_chunk(*gguf, *actual_cache, actual, tokens),
            run_chunk(*directory, *expected_cache, expected, tokens));
}

TEST(GgufModel, AgreesWithTransformers) {
  for (const std::string& name : all_models(true)) {
    SCOPED_TRACE(name);
    TestModel model({.name = name, .weights = DType::kF32});
    ASSERT_TRUE(model.ok());
    expect_golden(model, read_golden(std::filesystem::path(name).stem().string()));
  }
}

TEST(Goldens, EveryFamilyHasAModel) {
  std::set<std::string> tried = {"granitemoe"};  // granitemoeshared without its shared expert
  for (const std::string& name : all_models()) {
    const auto file = open_model(model_data(name));
    ASSERT_TRUE(file.ok()) << file.error().message;
    tried.insert(file->config.family);
  }
  std::istringstream names(list_families(&ModelFamily::name));
  for (std::string name; std::getline(names >> std::ws, name, ',');)
    EXPECT_TRUE(tried.contains(name)) << name;
}

TEST(GgufModel, HasRopeDivisors) {
  TestModel model({.name = "llama_rope_llama3.gguf", .weights = DType::kF32});
  ASSERT_TRUE(model.ok());
  EXPECT_FALSE(model->config().ropes.front().scaling.frequency_divisors.empty());
}

}  // namespace
}  // namespace outrider
