// SPDX-License-Identifier: Apache-2.0
// Pairs of drafters, trees, ways to stop, ways to sample and constraints: each choice of one kind meets each
// choice of every other kind in some run. They run only on the fastest kernels; the slow suite takes all
// kernels.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "tests/lossless/covering_array.h"
#include "tests/lossless/lossless.h"

namespace outrider {
namespace {

enum Kind : size_t {
  kDrafter,
  kShape,
  kStop,
  kChildren,
  kTemperature,
  kWarp,
  kPenalty,
  kPage,
  kBatch,
  kLanguage,
  kRules,
  kKinds
};
using Row = std::array<int, kKinds>;  // one choice of each kind

constexpr std::array kTemperatures = {0.0, 0.7, 1.0};
constexpr std::array kPages = {1, 16, 64};
constexpr std::array kBatches = {1, 3, 8};
constexpr std::array kLanguages = {ToyLanguage::kAny, ToyLanguage::kAutomaton, ToyLanguage::kPhrases};

template <typename Choices>
auto chosen(const Choices& choices, int choice) {
  return choices[static_cast<size_t>(choice)];
}

class LosslessTrees : public ::testing::Test {
 protected:
  // Output without speculation, computed once for each way to sample.
  const std::vector<Completion>& plain(const Row& row) {
    auto& completions = plain_[{row[kTemperature], row[kWarp], row[kPenalty], row[kLanguage], row[kRules]}];
    if (completions.empty()) completions = run_variant({.kernels = ""}, {.batch = 8}, workload(row));
    return completions;
  }

  Workload workload(const Row& row) const {
    Workload workload{.prompts = prompts_, .max_tokens = 20, .logprobs = 2};
    workload.language = chosen(kLanguages, row[kLanguage]);
    workload.has_rules = row[kRules] == 1;
    workload.sampling = warped(chosen(penalties(), row[kPenalty]), chosen(warps(), row[kWarp]));
    workload.sampling.temperature = chosen(kTemperatures, row[kTemperature]);
    workload.sampling.seed = 5;
    return workload;
  }

  static Variant variant(const Row& row) {
    return {.speculative = chosen(drafters(), row[kDrafter]) + "," + chosen(shapes(), row[kShape]) + "," +
                           chosen(stops(), row[kStop]) + "," + chosen(children_choices(), row[kChildren]),
            .page_size = chosen(kPages, row[kPage]),
            .batch = chosen(kBatches, row[kBatch]),
            .prefill_chunk = row[kPage] == row[kBatch] ? 7 : 256};
  }

  static std::string describe_sampling(const SamplingParams& sampling) {
    return ", temperature " + std::to_string(sampling.temperature) + " top_k " +
           std::to_string(sampling.top_k) + " top_p " + std::to_string(sampling.top_p) + " min_p " +
           std::to_string(sampling.min_p) + " penalties " + std::to_string(sampling.repetition_penalty) +
           " " + std::to_string(sampling.presence_penalty);
  }

  static std::vector<std::string> one_of_each_length() {
    const std::vector<std::string> prompts = mixed_prompts(6);
    return {prompts[0], prompts[1], prompts[4], prompts[5]};
  }

  static std::vector<Row> rows() {
    const auto count = [](const auto& choices) { return static_cast<int>(std::size(choices)); };
    return covering_array<2>(Row{count(drafters()), count(shapes()), count(stops()),
                                 count(children_choices()), count(kTemperatures), count(warps()),
                                 count(penalties()), count(kPages), count(kBatches), count(kLanguages), 2});
  }

 private:
  std::vector<std::string> prompts_ = one_of_each_length();
  std::map<std::array<int, 5>, std::vector<Completion>> plain_;
};

TEST_F(LosslessTrees, PairsOfAllChoicesAreIdentical) {
  std::vector<int64_t> accepted(drafters().size());
  for (const Row& row : rows()) {
    const auto speculative = run_variant({}, variant(row), workload(row));
    expect_same(plain(row), speculative,
                describe(variant(row)) + describe_sampling(workload(row).sampling) + " language " +
                    std::to_string(row[kLanguage]));
    if (HasFatalFailure()) return;
    for (const Completion& completion : speculative)
      accepted[static_cast<size_t>(row[kDrafter])] += completion.speculation.accepted;
  }
  for (size_t i = 0; i < accepted.size(); ++i) EXPECT_GT(accepted[i], 0) << drafters()[i];
}

TEST_F(LosslessTrees, RareSamplingIsIdenticalToo) {
  std::vector<std::vector<Completion>> plain;
  const auto workload_of = [&](size_t rare) {
    Workload workload{.prompts = {"Once upon a time", "The cat sat on the mat. The cat"}, .max_tokens = 20};
    workload.sampling = rare_samplings()[rare];
    workload.sampling.temperature = 0.9;
    workload.sampling.seed = 5;
    return workload;
  };
  for (size_t rare = 0; rare < rare_samplings().size(); ++rare)
    plain.push_back(run_variant({.kernels = ""}, {.batch = 8}, workload_of(rare)));
  for (size_t i = 0; i < 2 * drafters().size(); ++i) {
    const size_t rare = i % plain.size();
    const Variant variant{.speculative = drafters()[i / 2] + "," + shapes()[i % shapes().size()]};
    expect_same(plain[rare], run_variant({}, variant, workload_of(rare)), describe(variant));
    if (HasFatalFailure()) return;
  }
}

// At temperature 0 the target's distribution is one token under every rule.
TEST_F(LosslessTrees, GreedyRejectionIsIdenticalToo) {
  for (const Row& row : rows()) {
    if (chosen(kTemperatures, row[kTemperature]) > 0.0) continue;
    Variant rejection = variant(row);
    rejection.acceptance = AcceptanceRule::kRejection;
    expect_same(plain(row), run_variant({}, rejection, workload(row)), describe(rejection));
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace outrider
