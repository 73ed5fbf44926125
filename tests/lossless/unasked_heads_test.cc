// SPDX-License-Identifier: Apache-2.0
// A head with unwanted drafts costs no pass, whatever is committed and however often sequences begin and
// end.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "config/methods.h"
#include "drafters/registry.h"
#include "drafters/target_access.h"
#include "engine/engine_parts.h"
#include "open/resolved.h"
#include "tests/lossless/lossless.h"
#include "tests/lossless/test_heads.h"

namespace outrider {
namespace {

class UnaskedHead : public testing::TestWithParam<HeadCase> {
 protected:
  // Opens the drafter of the head.
  void SetUp() override {
    made_ = GetParam().make();
    auto parts = open_variant({},
                              {.speculative = method_key(GetParam().method) + ",max_draft_len=3",
                               .batch = 2,
                               .threads = 1,
                               .head = made_->write()},
                              small_target());
    ASSERT_TRUE(parts.ok()) << parts.error().message;
    parts_ = std::move(*parts);
    const auto files = open_draft_files(parts_->options.speculation);
    ASSERT_TRUE(files.ok()) << files.error().message;
    auto drafter =
        make_drafter(parts_->options.speculation, {.tokenizer = parts_->tokenizer.get(),
                                                   .vocab_size = parts_->vocab_size,
                                                   .layer_count = 2,
                                                   .target = parts_->target.get(),
                                                   .context = parts_->options.context,
                                                   .max_batch = 2,
                                                   .kernels = *select_kernels(parts_->info.kernels),
                                                   .pool = parts_->pool.get(),
                                                   .weights = {},
                                                   .user_drafter = {},
                                                   .files = &*files});
    ASSERT_TRUE(drafter.ok()) << drafter.error().message;
    drafter_ = std::move(*drafter);
  }

  // Computes tokens first .. end-1 of the text and hands over their features.
  void commit(KvSequence& sequence, size_t end) {
    const auto first = static_cast<size_t>(sequence.length());
    const auto tokens = std::span(text_).subspan(first, end - first);
    auto staged = parts_->cache->stage(sequence, static_cast<int>(tokens.size())).value();
    ForwardBatch batch;
    append_chain(batch, sequence, staged, tokens, LogitsWanted::kNone);
    parts_->target->measure_into(nullptr);
    parts_->target->forward(batch, *parts_->cache);
    parts_->target->measure_into(&drafting_);
    std::vector<int> path(tokens.size());
    std::iota(path.begin(), path.end(), 0);
    staged.commit(path, tokens);
    const CommittedFeatures features{.sequence = 1,
                                     .tokens = std::span(text_).first(end + 1),
                                     .first = static_cast<int>(first),
                                     .rows = path,
                                     .features = parts_->target->features().data(),
                                     .size = parts_->target->feature_size()};
    if (drafter_->traits().features.count() > 0) drafter_->absorb({&features, 1});
  }

  int draft(KvSequence& sequence) {
    auto staged = parts_->cache->stage(sequence, 10).value();
    ExitStates exits;
    const TargetAccess access{.model = parts_->target.get(),
                              .cache = parts_->cache.get(),
                              .sequence = &sequence,
                              .staged = &staged,
                              .exits = &exits};
    const SamplingParams sampling;
    const DraftRequest request{.sequence = 1,
                               .tokens = std::span(text_).first(static_cast<size_t>(sequence.length()) + 1),
                               .prompt_length = sequence.length(),
                               .max_draft_len = 3,
                               .max_nodes = 3,
                               .sampling = &sampling,
                               .target = &access};
    TokenTree tree(request.tokens.back());
    EXPECT_TRUE(drafter_->draft({&request, 1}, {&tree, 1}).ok());
    return tree.drafted();
  }

  // The number of products, and of other operations that multiply, which the drafter has asked for.
  int64_t products() const {
    int64_t count = 0;
    for (const OperationTimes& operation : drafting_.operations())
      count += operation.cost.operations > 0 ? operation.calls : 0;
    return count;
  }

  std::unique_ptr<FakeHead> made_;
  std::unique_ptr<EngineParts> parts_;
  PassProfile drafting_;  // operations outside of the target's passes
  std::shared_ptr<Drafter> drafter_;
  std::vector<TokenId> text_ = [] {
    std::vector<TokenId> text(200);
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<TokenId>(i * i % 280);
    return text;
  }();
};

TEST_P(UnaskedHead, ComputesNothing) {
  for (int turn = 0; turn < 2; ++turn) {
    KvSequence sequence = parts_->cache->open({});
    drafter_->begin(1, text_);
    commit(sequence, 90);
    for (size_t end = 91; end < 150; ++end) commit(sequence, end);
    EXPECT_EQ(products(), 0);
    if (turn == 1) {
      EXPECT_EQ(draft(sequence), 3);
    }
    drafter_->end(1);
  }
  EXPECT_GT(products(), 0);
}

INSTANTIATE_TEST_SUITE_P(Heads, UnaskedHead, testing::ValuesIn(head_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace outrider
