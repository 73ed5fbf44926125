// SPDX-License-Identifier: Apache-2.0
// MoA, DFlash and DSpark in the engine: the target's cache stays unchanged, heads for other targets are
// refused, and options are resolved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "config/methods.h"
#include "config/speculative_config.h"
#include "draft_heads/head_file.h"
#include "drafters/target_access.h"
#include "engine/engine_parts.h"
#include "open/resolved.h"
#include "tests/lossless/lossless.h"
#include "tests/lossless/test_heads.h"

namespace outrider {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ContextDrafters : public testing::TestWithParam<HeadCase> {
 protected:
  Result<std::unique_ptr<EngineParts>> parts_of(const std::string& shape) const {
    return open_variant({}, {.speculative = method_key(GetParam().method) + shape, .head = path_},
                        small_target());
  }

  std::unique_ptr<FakeHead> made_ = GetParam().make();
  std::filesystem::path path_ = made_->write();
};

// The bytes that the cache holds of a sequence's committed entries.
std::vector<std::byte> committed_bytes(KvCache& cache, const KvSequence& sequence) {
  const KvShape& shape = cache.shape();
  std::vector<std::byte> bytes;
  for (int64_t layer = 0; layer < shape.layer_count; ++layer) {
    for (const std::byte* rows : {cache.keys(layer), cache.values(layer)}) {
      for (int entry = 0; entry < sequence.length(); ++entry) {
        const int32_t page = sequence.pages()[static_cast<size_t>(entry / shape.page_size)];
        const std::byte* row = rows + (page * shape.page_size + entry % shape.page_size) * shape.row_bytes();
        bytes.insert(bytes.end(), row, row + shape.row_bytes());
      }
    }
  }
  return bytes;
}

// Computes all tokens but the last, commits them, and hands their features to the drafter of sequence 1.
void read_prompt(EngineParts& parts, KvSequence& sequence, std::span<const TokenId> tokens) {
  const auto prompt = tokens.first(tokens.size() - 1);
  auto staged = parts.cache->stage(sequence, static_cast<int>(prompt.size())).value();
  ForwardBatch batch;
  append_chain(batch, sequence, staged, prompt, LogitsWanted::kNone);
  parts.target->forward(batch, *parts.cache);
  std::vector<int> path(prompt.size());
  std::iota(path.begin(), path.end(), 0);
  staged.commit(path, prompt);
  const CommittedFeatures features{.sequence = 1,
                                   .tokens = tokens,
                                   .first = 0,
                                   .rows = path,
                                   .features = parts.target->features().data(),
                                   .size = parts.target->feature_size()};
  if (parts.drafter->traits().features.count() > 0) parts.drafter->absorb({&features, 1});
}

TEST_P(ContextDrafters, DraftingLeavesTheTargetsCacheAsItWas) {
  const auto parts = parts_of(",expansion=[3,2]");
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  KvCache& cache = *(*parts)->cache;
  Drafter& drafter = *(*parts)->drafter;
  std::vector<TokenId> tokens;
  for (int i = 0; i < 21; ++i) tokens.push_back(i * i % 280);
  KvSequence sequence = cache.open({});
  drafter.begin(1, tokens);
  read_prompt(**parts, sequence, tokens);
  const auto before = committed_bytes(cache, sequence);
  auto staged = cache.stage(sequence, 10).value();
  ExitStates exits;
  const TargetAccess access{.model = (*parts)->target.get(),
                            .cache = &cache,
                            .sequence = &sequence,
                            .staged = &staged,
                            .exits = &exits};
  const SamplingParams sampling;
  const DraftRequest request{.sequence = 1,
                             .tokens = tokens,
                             .prompt_length = 20,
                             .max_draft_len = 2,
                             .max_nodes = 9,
                             .sampling = &sampling,
                             .target = &access};
  TokenTree tree;
  tree.reset(tokens.back());
  ASSERT_TRUE(drafter.draft({&request, 1}, {&tree, 1}).ok());
  EXPECT_EQ(tree.drafted(), 9);
  EXPECT_EQ(committed_bytes(cache, sequence), before);
  EXPECT_TRUE(exits.rows.empty());  // no rows for the target's pass to resume
  if (drafter.traits().features.count() > 0) {
    EXPECT_GT(drafter.known_tokens(tokens), 0);
    EXPECT_EQ(drafter.known_tokens(tokens, 7), 0) << "cached for another scope";
  }
  drafter.end(1);
}

TEST_P(ContextDrafters, HeadsOfOtherTargetsAreRefused) {
  const auto file = open_model(small_target());
  ASSERT_TRUE(file.ok());
  made_->config["outrider_target"] = target_fingerprint(*file);
  made_->write();
  EXPECT_TRUE(parts_of("").ok());
  made_->config["outrider_target"] = "0123456789abcdef";
  made_->write();
  const auto other = parts_of("");
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, AllOf(HasSubstr("another target"), HasSubstr("0123456789abcdef")));
}

INSTANTIATE_TEST_SUITE_P(Heads, ContextDrafters, testing::ValuesIn([] {
                           std::vector<HeadCase> cases = head_cases();
                           std::erase_if(cases, [](const HeadCase& one) {
                             return one.method != Method::kMoa && one.method != Method::kDFlash &&
                                    one.method != Method::kDSpark;
                           });
                           return cases;
                         }()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(ContextDrafters, ThePublishedTreeIsTheDefault) {
  const std::string model = "speculative_model=" + path_.string();
  const auto options = [&](const std::string& text) {
    return *resolved_by_files(parse_speculative(text)->options);
  };
  const Method method = GetParam().method;
  for (const std::string& named : {model, method_key(method) + "," + model}) {
    const SpeculativeOptions usual = options(named);
    EXPECT_EQ(usual.decoding_type, method);
    EXPECT_EQ(usual.tree.kind, method == Method::kMoa ? TreeKind::kDynamic : TreeKind::kChain);
    // Levels; places of a block; the first may be the pending token's.
    const bool masks_only = std::string_view(GetParam().name) == "dspark_masks_only";
    const bool drafts_all = method == Method::kMoa || (method == Method::kDSpark && !masks_only);
    EXPECT_EQ(usual.max_draft_len, drafts_all ? 6 : 5);
    if (method == Method::kMoa) {
      EXPECT_EQ(usual.tree.dynamic_tree_max_top_k, 8);
      EXPECT_EQ(usual.tree.max_total_draft_tokens, 62);
    }
    EXPECT_EQ(options(named + ",max_draft_len=4").tree.kind, TreeKind::kChain);
    EXPECT_EQ(options(named + ",max_draft_len=4").max_draft_len, 4);
    EXPECT_EQ(options(named + ",tree=chain").max_draft_len, 4);
    EXPECT_EQ(options(named + ",expansion=[2,1]").tree.kind, TreeKind::kStatic);
  }
}

TEST(MoaOptions, WhatIsNotGivenOfADynamicTreeIsItsAuthors) {
  const auto options = [](const char* text) {
    return *resolve_speculation(parse_speculative(text)->options, {});
  };
  EXPECT_EQ(options("moa,tree=dynamic,max_draft_len=4").max_draft_len, 4);
  EXPECT_EQ(options("moa,tree=dynamic,max_draft_len=4").tree.max_total_draft_tokens, 62);
  EXPECT_EQ(options("moa,max_total_draft_tokens=24").tree.dynamic_tree_max_top_k, 8);
  EXPECT_EQ(options("moa,max_total_draft_tokens=24").tree.max_total_draft_tokens, 24);
}

}  // namespace
}  // namespace outrider
