// SPDX-License-Identifier: Apache-2.0
// A Decoder names weights, rows and cached entries, and follows none of them itself: where nothing lies at
// these names, its numbers have the same bits.
#include "models/backend/separate_backend.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

std::vector<float> numbers_on_host(const std::string& name) {
  ThreadPool pool(2);
  auto file = open_model(model_data(name));
  EXPECT_TRUE(file.ok()) << file.error().message;
  auto model = Model::load(*file, {.kernels = *select_kernels(""), .pool = &pool, .weights = {}});
  EXPECT_TRUE(model.ok()) << model.error().message;
  KvCache cache(small_cache_shape(**model));
  return numbers_of_run(**model, cache);
}

TEST(SeparateBackend, DecoderNeedsNamesAlone) {
  std::vector<std::string> names = all_models();
  names.emplace_back("llama.gguf");
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    SeparateModel separate(name);
    EXPECT_EQ(numbers_of_run(separate.model(), separate.cache()), numbers_on_host(name));
  }
}

// Rows that resume at a later layer take their places among rows that begin at the first.
TEST(SeparateBackend, RowsResume) {
  SeparateModel separate("llama"), whole("llama");
  const std::vector<TokenId> tokens = random_tokens(6, separate.model().config().vocab_size, 5);
  const auto run = [&](SeparateModel& model, bool resumes) {
    KvSequence sequence = model.cache().open({});
    auto transaction = model.cache().stage(sequence, 6);
    ForwardBatch first, all;
    const std::vector<int> parents = {-1, 0, 1, 2, 3, 4};
    append_tree(first, sequence, *transaction, {std::span(tokens).first(3), std::span(parents).first(3)},
                LogitsWanted::kAll);
    append_tree(all, sequence, *transaction, {tokens, parents}, LogitsWanted::kAll);
    if (resumes) {
      const auto states =
          model.model()
              .forward_subset(first, model.cache(), {.count = 1, .skip_attention = {}, .skip_mlp = {}})
              .states;
      all.resume_layer = 1;
      all.resumed_rows = {0, 1, 2};
      all.resumed_states.assign(states.begin(), states.end());
    }
    const auto logits = model.model().forward(all, model.cache());
    return std::vector<float>(logits.begin(), logits.end());
  };
  EXPECT_EQ(run(separate, true), run(whole, false));
}

}  // namespace
}  // namespace outrider
