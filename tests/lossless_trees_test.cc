// SPDX-License-Identifier: Apache-2.0
// Every drafter with every tree, way to stop and way to sample, as far as pairs go: each choice of one kind
// meets each choice of every other kind in some run. On the fastest kernels alone; the slow suite takes all.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

#include "lossless.h"

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
  kKinds
};
using Row = std::array<size_t, kKinds>;  // one choice of each kind

constexpr std::array kTemperatures = {0.0, 0.7, 1.0};
constexpr std::array kPages = {1, 16, 64};
constexpr std::array kBatches = {1, 3, 8};

using Pair = std::array<size_t, 4>;  // a kind, its choice, a later kind, its choice

Pair pair_of(size_t f, size_t a, size_t g, size_t b) { return f < g ? Pair{f, a, g, b} : Pair{g, b, f, a}; }

// Rows that hold every pair of choices of two kinds, each row as many new ones as a greedy choice finds.
std::vector<Row> covering_rows(const Row& sizes) {
  std::set<Pair> missing;
  for (size_t f = 0; f < kKinds; ++f) {
    for (size_t g = f + 1; g < kKinds; ++g) {
      for (size_t a = 0; a < sizes[f]; ++a) {
        for (size_t b = 0; b < sizes[g]; ++b) missing.insert({f, a, g, b});
      }
    }
  }
  constexpr auto kOpen = static_cast<size_t>(-1);
  std::vector<Row> rows;
  while (!missing.empty()) {
    const auto [f, a, g, b] = *missing.begin();
    Row row;
    row.fill(kOpen);
    row[f] = a;
    row[g] = b;
    for (size_t kind = 0; kind < kKinds; ++kind) {
      if (row[kind] != kOpen) continue;
      size_t best = 0, most = 0;
      for (size_t i = 0; i < sizes[kind]; ++i) {
        const size_t choice = (i + rows.size()) % sizes[kind];  // equal ones take turns
        size_t fresh = 1;
        for (size_t other = 0; other < kKinds; ++other) {
          if (row[other] != kOpen) fresh += missing.count(pair_of(kind, choice, other, row[other]));
        }
        if (fresh <= most) continue;
        most = fresh;
        best = choice;
      }
      row[kind] = best;
    }
    for (size_t i = 0; i < kKinds; ++i) {
      for (size_t j = i + 1; j < kKinds; ++j) missing.erase({i, row[i], j, row[j]});
    }
    rows.push_back(row);
  }
  return rows;
}

class LosslessTrees : public ::testing::Test {
 protected:
  // Output without speculation, computed once for each way to sample.
  const std::vector<Completion>& plain(const Row& row) {
    auto& completions = plain_[{row[kTemperature], row[kWarp], row[kPenalty]}];
    if (completions.empty()) completions = run_variant({.kernels = ""}, {.batch = 8}, workload(row));
    return completions;
  }

  Workload workload(const Row& row) const {
    Workload workload{.prompts = prompts_, .max_tokens = 20};
    workload.sampling = penalties()[row[kPenalty]];
    const SamplingParams warp = warps()[row[kWarp]];
    workload.sampling.top_k = warp.top_k;
    workload.sampling.top_p = warp.top_p;
    workload.sampling.min_p = warp.min_p;
    workload.sampling.temperature = kTemperatures[row[kTemperature]];
    workload.sampling.seed = 5;
    return workload;
  }

  static Variant variant(const Row& row) {
    return {.speculative = drafters()[row[kDrafter]] + "," + shapes()[row[kShape]] + "," +
                           stops()[row[kStop]] + "," + children_choices()[row[kChildren]],
            .page_size = kPages[row[kPage]],
            .batch = kBatches[row[kBatch]],
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
    return covering_rows({drafters().size(), shapes().size(), stops().size(), children_choices().size(),
                          kTemperatures.size(), warps().size(), penalties().size(), kPages.size(),
                          kBatches.size()});
  }

 private:
  std::vector<std::string> prompts_ = one_of_each_length();
  std::map<std::array<size_t, 3>, std::vector<Completion>> plain_;
};

TEST_F(LosslessTrees, PairsOfAllChoicesAreIdentical) {
  std::vector<int64_t> accepted(drafters().size());
  for (const Row& row : rows()) {
    const auto speculative = run_variant({}, variant(row), workload(row));
    expect_same(plain(row), speculative, describe(variant(row)) + describe_sampling(workload(row).sampling));
    if (HasFatalFailure()) return;
    for (const Completion& completion : speculative)
      accepted[row[kDrafter]] += completion.speculation.accepted;
  }
  for (size_t i = 0; i < accepted.size(); ++i) EXPECT_GT(accepted[i], 0) << drafters()[i];
}

// At temperature 0 the target's law is one token, whatever the rule.
TEST_F(LosslessTrees, GreedyRejectionIsIdenticalToo) {
  for (const Row& row : rows()) {
    if (kTemperatures[row[kTemperature]] > 0.0) continue;
    Variant rejection = variant(row);
    rejection.acceptance = AcceptanceRule::kRejection;
    expect_same(plain(row), run_variant({}, rejection, workload(row)), describe(rejection));
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace outrider
