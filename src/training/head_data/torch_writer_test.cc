// SPDX-License-Identifier: Apache-2.0
// Compares texts that the target writes in libtorch with what its states say, and draws with enumeration.
#include "training/head_data/torch_writer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "training/head_data/generation_progress.h"

namespace outrider::training {
namespace {

constexpr int64_t kMemory = 64 << 20;  // bytes

TEST(DrawnTokens, SharesAreTheProbabilities) {
  const at::Tensor probabilities = at::tensor({0.1, 0.4, 0.2, 0.3}, at::kFloat);
  const int64_t draws = 1000;
  const at::Tensor uniforms = ((at::arange(draws, at::kFloat) + 0.5) / draws).unsqueeze(1);
  const at::Tensor logits = probabilities.log().expand({draws, 4});
  const auto shares = [&](const at::Tensor& top_p) {
    const at::Tensor tokens = drawn_tokens(logits, top_p, uniforms);
    return at::bincount(tokens, {}, 4).to(at::kFloat) / draws;
  };
  const auto near = [](const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<float>() < 2e-3f;
  };
  EXPECT_TRUE(near(shares({}), probabilities));
  // 0.4 and 0.3 reach 0.6, and 0.4, 0.3 and 0.2 reach 0.75.
  const auto cut = [&](double p) { return shares(at::full({draws, 1}, p, at::kFloat)); };
  EXPECT_TRUE(near(cut(0.6), at::tensor({0.0, 4.0 / 7, 0.0, 3.0 / 7}, at::kFloat)));
  EXPECT_TRUE(near(cut(0.75), at::tensor({0.0, 4.0 / 9, 2.0 / 9, 3.0 / 9}, at::kFloat)));
  EXPECT_TRUE(near(cut(1e-6), at::tensor({0.0, 1.0, 0.0, 0.0}, at::kFloat)));
}

TEST(DrawnTokens, TheLargestUniformDrawsATokenThatCanBeDrawn) {
  const float infinity = std::numeric_limits<float>::infinity();
  const at::Tensor logits = at::tensor({1.0f, 2.0f, -infinity}, at::kFloat).unsqueeze(0);
  const at::Tensor one = at::ones({1, 1});
  EXPECT_EQ(drawn_tokens(logits, {}, one).item<int64_t>(), 1);
  EXPECT_EQ(drawn_tokens(logits, at::full({1, 1}, 0.5), one).item<int64_t>(), 1);
}

class TorchWriterTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto target =
        FrozenTarget::open(std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests/data/models" / GetParam(), 1);
    ASSERT_TRUE(target.ok()) << target.error().message;
    target_ = std::move(*target);
    for (int64_t i = 0; i < 7; ++i) {
      std::vector<TokenId> prompt;
      for (int64_t t = 0; t < 3 + 5 * i; ++t)
        prompt.push_back(static_cast<TokenId>((7 * t * t + 5 * t + 11 * i) % target_->config().vocab_size));
      prompts_.push_back(std::move(prompt));
    }
  }

  std::vector<WritingTask> tasks(double temperature) const {
    std::vector<WritingTask> tasks;
    for (size_t i = 0; i < prompts_.size(); ++i)
      tasks.push_back({.prompt = prompts_[i],
                       .max_tokens = 20 + static_cast<int64_t>(i),
                       .temperature = i % 2 == 0 ? 0.0 : temperature,
                       .top_p = i % 4 == 1 ? 0.9 : 1.0,
                       .seed = 100 + i});
    return tasks;
  }

  std::vector<std::vector<TokenId>> written(const std::vector<WritingTask>& tasks, int64_t memory) const {
    std::vector<std::vector<TokenId>> texts(tasks.size());
    GenerationProgress shown("writing", std::ssize(tasks), 0);
    const auto sink = [&](size_t i, std::vector<TokenId> text) {
      EXPECT_TRUE(texts[i].empty()) << "handed over twice";
      texts[i] = std::move(text);
    };
    EXPECT_TRUE(TorchWriter(*target_, memory).write(tasks, sink, shown).ok());
    return texts;
  }

  // Every token of a greedy text has the largest logit, but for rounding; texts end at their limits or stops.
  void expect_greedy(at::Device device, at::ScalarType products, double tolerance) {
    target_->move_to(device, products);
    const std::vector<WritingTask> tasks = this->tasks(1.0);
    const std::vector<std::vector<TokenId>> texts = written(tasks, kMemory);
    const at::Tensor head = target_->output_head();
    const std::vector<TokenId>& stops = target_->config().stop_tokens;
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_FALSE(texts[i].empty());
      const bool stopped = std::ranges::find(stops, texts[i].back()) != stops.end();
      EXPECT_EQ(std::ranges::find_first_of(texts[i], stops) - texts[i].begin(),
                std::ssize(texts[i]) - (stopped ? 1 : 0));
      EXPECT_TRUE(stopped || std::ssize(texts[i]) == tasks[i].max_tokens);
      if (tasks[i].temperature > 0.0) continue;
      std::vector<TokenId> all = prompts_[i];
      all.insert(all.end(), texts[i].begin(), texts[i].end());
      const std::vector<std::span<const TokenId>> windows = {all};
      const at::Tensor logits = at::linear((*target_->run(windows))[0].hidden.to(at::kFloat).cpu(), head);
      for (size_t t = 0; t < texts[i].size(); ++t) {
        const at::Tensor row = logits[static_cast<int64_t>(prompts_[i].size() + t) - 1];
        EXPECT_GE(row[texts[i][t]].item<double>(), row.max().item<double>() - tolerance) << i << " " << t;
      }
    }
  }

  std::unique_ptr<FrozenTarget> target_;
  std::vector<std::vector<TokenId>> prompts_;
};

TEST_P(TorchWriterTest, GreedyTextsAreWhatTheStatesSay) { expect_greedy(at::kCPU, at::kFloat, 1e-3); }

TEST_P(TorchWriterTest, OnAGpuToo) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no GPU, or a libtorch without CUDA";
  expect_greedy(at::Device(at::kCUDA, 0), at::kFloat, 1e-3);
  expect_greedy(at::Device(at::kCUDA, 0), at::kBFloat16, 0.1);
}

// Whichever others are written with it, and however much memory there is.
TEST_P(TorchWriterTest, ATextIsAFunctionOfItsTask) {
  target_->move_to(at::kCPU, at::kFloat);
  std::vector<WritingTask> all = tasks(1.3);
  const std::vector<std::vector<TokenId>> texts = written(all, kMemory);
  EXPECT_EQ(written(all, 1), texts) << "one text at a time";
  std::ranges::reverse(all);
  std::vector<std::vector<TokenId>> reversed = written(all, kMemory);
  std::ranges::reverse(reversed);
  EXPECT_EQ(reversed, texts);
  for (WritingTask& task : all) task.seed += 1000;
  std::vector<std::vector<TokenId>> others = written(all, kMemory);
  std::ranges::reverse(others);
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(others[i] == texts[i], i % 2 == 0) << i;
}

INSTANTIATE_TEST_SUITE_P(Models, TorchWriterTest, testing::Values("llama", "llama_tied", "mistral", "qwen3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace outrider::training
