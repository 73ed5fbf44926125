// SPDX-License-Identifier: Apache-2.0
// Wanted states of rows are the inputs of the output head, whichever rows have logits, and whatever features
// are kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "models/model_test_data.h"

namespace outrider {
namespace {

constexpr int kRows = 9;

struct Outputs {
  std::vector<float> states;               // [state rows, hidden_size]
  std::vector<std::vector<float>> logits;  // [logits rows]
};

// One chunk in one pass, with logits of `logits_rows` and states of `state_rows`.
Outputs run(TestModel& model, const std::vector<int32_t>& logits_rows,
            const std::vector<int32_t>& state_rows) {
  const auto cache = model.make_cache(16, 64);
  KvSequence sequence = cache->open({});
  auto transaction = cache->stage(sequence, kRows);
  EXPECT_TRUE(transaction.ok());
  ForwardBatch batch;
  append_chain(batch, sequence, *transaction, random_tokens(kRows, model->config().vocab_size, 7),
               LogitsWanted::kNone);
  batch.logits_rows = logits_rows;
  batch.hidden_state_rows = state_rows;
  const auto logits = model->forward(batch, *cache);
  Outputs outputs;
  std::ranges::copy(model->hidden_states(), std::back_inserter(outputs.states));
  for (int i = 0; i < static_cast<int>(logits_rows.size()); ++i)
    outputs.logits.push_back(logits_row(logits, i, *model));
  return outputs;
}

class States : public testing::TestWithParam<const char*> {};

TEST_P(States, AreTheInputsOfTheOutputHead) {
  TestModel model({.name = GetParam()});
  ASSERT_TRUE(model.ok());
  const std::vector<int32_t> all = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  const auto size = static_cast<size_t>(model->config().hidden_size);
  for (const bool is_tapped : {false, true}) {
    if (is_tapped) model->tap({.layers = {1}, .final_norm = true});
    const Outputs whole = run(model, all, all);
    ASSERT_EQ(whole.states.size(), kRows * size);
    if (is_tapped) {
      for (size_t row = 0; row < kRows; ++row)
        EXPECT_TRUE(std::equal(&whole.states[row * size], &whole.states[row * size] + size,
                               &model->features()[row * 2 * size + size]));
    }
    const PlacedRows states(model->backend(), whole.states);
    const auto logits =
        model->backend().read(model->output_head(states, kRows), kRows * model->config().vocab_size);
    for (int row = 0; row < kRows; ++row)
      EXPECT_EQ(logits_row(logits, row, *model), whole.logits[static_cast<size_t>(row)]) << row;
    const Outputs some = run(model, {3, 8}, {1, 2, 3, 7});
    EXPECT_EQ(some.logits, (std::vector{whole.logits[3], whole.logits[8]}));
    for (const auto& [from, to] : {std::pair<size_t, size_t>{1, 0}, {2, 1}, {3, 2}, {7, 3}})
      EXPECT_TRUE(
          std::equal(&whole.states[from * size], &whole.states[from * size] + size, &some.states[to * size]));
    EXPECT_EQ(run(model, {}, all).states, whole.states);
    EXPECT_TRUE(run(model, {8}, {}).states.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Families, States,
                         testing::Values("llama", "gemma3", "phi3", "gpt2", "falcon", "olmo2", "opt",
                                         "mixtral", "gemma4"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace outrider
