// SPDX-License-Identifier: Apache-2.0
// MoA and DFlash in the engine: the same tokens as without them, drafts that depend on the text alone, and
// heads for other targets refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "config/speculative_config.h"
#include "drafters/target_access.h"
#include "engine/engine_parts.h"
#include "heads/head_file.h"
#include "heads/made_up_head.h"

namespace outrider {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kHidden = 64;

std::string target_path() { return OUTRIDER_SOURCE_DIR "/tests/data/models/llama"; }  // of 2 layers

struct Moa {
  bool uses_lsa = true, uses_cross = true;
  int tli = 0;
};

std::unique_ptr<MadeUpHead> make_moa(const Moa& moa) {
  auto head = std::make_unique<MadeUpHead>();
  head->config = {{"num_attention_heads", 4},
                  {"target_layer_inference", moa.tli},
                  {"disable_LSA", !moa.uses_lsa},
                  {"disable_cross_attention", !moa.uses_cross}};
  head->add_layer("self_attention.", {kHidden, 4, 2, 16, 48, false, false});
  if (!moa.uses_cross) return head;
  head->add_layer("cross_attention.", {kHidden, 4, 2, 16, 56, false, false});
  if (!moa.uses_lsa) return head;
  head->add_layer("layer_self_attention.", {64, 4, 1, 16, 40, false, false});
  head->tensors["Ekv2E.weight"] = {kHidden, 64};
  head->tensors["Ekv2E.bias"] = {kHidden};
  return head;
}

std::unique_ptr<MadeUpHead> make_dflash() {
  auto head = std::make_unique<MadeUpHead>();
  head->config = {{"hidden_size", kHidden},
                  {"intermediate_size", 72},
                  {"num_hidden_layers", 2},
                  {"num_attention_heads", 4},
                  {"num_key_value_heads", 2},
                  {"head_dim", 24},
                  {"max_position_embeddings", 256},
                  {"rms_norm_eps", 1e-5},
                  {"vocab_size", 288},
                  {"block_size", 6},
                  {"dflash_config", {{"mask_token_id", 280}, {"target_layer_ids", {0, 1}}}}};
  head->tensors = {
      {"fc.weight", {kHidden, 2 * kHidden}}, {"hidden_norm.weight", {kHidden}}, {"norm.weight", {kHidden}}};
  for (const char* prefix : {"layers.0.", "layers.1."})
    head->add_layer(prefix, {kHidden, 4, 2, 24, 72, false, true});
  return head;
}

struct Variant {
  std::string speculative = "none";
  int page_size = 16;
  int batch = 4;
  int prefill_chunk = 256;
  int preempt_every = 0;
  WeightPrecision weights = WeightPrecision::kAuto;
  AcceptanceRule acceptance = AcceptanceRule::kCoupled;
  KvCacheType kv = KvCacheType::kAuto;
};

std::string describe(const Variant& variant) {
  return variant.speculative + ", page " + std::to_string(variant.page_size) + ", batch " +
         std::to_string(variant.batch) + ", chunk " + std::to_string(variant.prefill_chunk) + ", preempts " +
         std::to_string(variant.preempt_every) + ", weights " +
         std::to_string(static_cast<int>(variant.weights)) + ", kv " +
         std::to_string(static_cast<int>(variant.kv));
}

Result<std::unique_ptr<EngineParts>> parts_of(const Variant& variant, const std::filesystem::path& head) {
  EngineOptions options;
  options.model = target_path();
  options.page_size = variant.page_size;
  options.max_batch = variant.batch;
  options.prefill_chunk = variant.prefill_chunk;
  options.weights = variant.weights;
  options.kv_cache_type = variant.kv;
  options.acceptance = variant.acceptance;
  OUTRIDER_TRY(const SpeculativeConfig config, parse_speculative(variant.speculative));
  options.speculation = config.options;
  if (variant.speculative != "none") options.speculation.speculative_model = head;
  OUTRIDER_TRY(auto parts, open_parts(std::move(options)));
  parts->preempt_every = variant.preempt_every;
  return parts;
}

std::vector<Completion> complete(const Variant& variant, const std::filesystem::path& head,
                                 double temperature) {
  auto parts = parts_of(variant, head);
  if (!parts.ok()) {
    ADD_FAILURE() << parts.error().message;
    return {};
  }
  const auto engine = Engine::assemble(std::move(*parts));
  std::vector<Completion> completions(5);
  for (size_t i = 0; i < completions.size(); ++i) {
    Request request;
    // The last two begin like the first, and find its pages; one is a single token.
    const size_t length = i == 1 ? 1 : 9 + 13 * (i % 3);
    for (size_t j = 0; j < length; ++j)
      request.prompt.push_back(static_cast<TokenId>((j * j + 3 * j + (i < 3 ? i : 0)) % 280));
    request.max_tokens = 24;
    request.ignore_eos = true;
    request.sampling.temperature = temperature;
    request.sampling.seed = 7 + i;
    const auto id = engine->submit(request, [&completions, i](RequestId, const Progress& progress) {
      if (progress.completion != nullptr) completions[i] = *progress.completion;
    });
    if (!id.ok()) ADD_FAILURE() << id.error().message;
  }
  while (engine->step()) {
  }
  return completions;
}

struct Case {
  const char* name;
  const char* method;
  std::unique_ptr<MadeUpHead> (*make)();
};

class ContextDrafters : public testing::TestWithParam<Case> {
 protected:
  ContextDrafters() : made_(GetParam().make()), path_(made_->write()) {}

  std::unique_ptr<MadeUpHead> made_;
  std::filesystem::path path_;
};

std::vector<Variant> variants(const std::string& method) {
  std::vector<Variant> all;
  const std::string dynamic = ",max_draft_len=4,dynamic_tree_max_topK=6,max_total_draft_tokens=40";
  for (const std::string& shape : {method + ",max_draft_len=4", method + ",expansion=[6,2,1]",
                                   method + dynamic, "combine=[Suffix," + method + "]" + dynamic,
                                   "combine=[EarlyExit," + method + "],exit_layer=1" + dynamic,
                                   "combine=[" + method + ",EarlyExit],exit_layer=1" + dynamic}) {
    all.push_back({.speculative = shape});
    all.push_back({.speculative = shape, .page_size = 1, .batch = 1, .prefill_chunk = 4});
    all.push_back({.speculative = shape, .batch = 3, .prefill_chunk = 5, .preempt_every = 5});
  }
  for (const WeightPrecision weights : {WeightPrecision::kF32, WeightPrecision::kQ8, WeightPrecision::kQ4}) {
    all.push_back({.speculative = method + dynamic, .weights = weights});
    all.push_back({.speculative = method + ",max_draft_len=2,policy=auto", .weights = weights});
  }
  for (const KvCacheType kv : {KvCacheType::kF32, KvCacheType::kF16, KvCacheType::kQ8_0})
    all.push_back({.speculative = method + dynamic, .page_size = 4, .kv = kv});
  return all;
}

// Made-up heads are seldom right; that they are now and then makes the test see what acceptance leaves
// behind.
TEST_P(ContextDrafters, TokensAreThoseOfPlainDecoding) {
  int64_t accepted = 0;
  for (const double temperature : {0.0, 1.0}) {
    std::map<std::pair<WeightPrecision, KvCacheType>, std::vector<Completion>> plain_by_numerics;
    for (const Variant& variant : variants(GetParam().method)) {
      auto& plain = plain_by_numerics[{variant.weights, variant.kv}];
      if (plain.empty()) plain = complete({.weights = variant.weights, .kv = variant.kv}, "", temperature);
      const auto drafted = complete(variant, path_, temperature);
      ASSERT_EQ(plain.size(), drafted.size());
      for (size_t i = 0; i < plain.size(); ++i) {
        ASSERT_EQ(plain[i].tokens, drafted[i].tokens)
            << describe(variant) << ", temperature " << temperature << ", request " << i;
        const SpeculationStats& stats = drafted[i].speculation;
        EXPECT_EQ(stats.draft_failures, 0) << describe(variant);
        if (variant.speculative.find("auto") == std::string::npos) {
          EXPECT_GT(stats.drafted, 0) << describe(variant) << ", request " << i;
        }
        accepted += stats.accepted;
      }
    }
  }
  EXPECT_GT(accepted, 50);
}

// Under the rejection rule the output depends on what is drafted: equal output means equal drafts, alone and
// in batches, however the text came into the caches. (Requests that find others' pages, or come back, draft
// in other steps.)
TEST_P(ContextDrafters, DraftsDependOnTheTextAlone) {
  for (const char* shape : {",max_draft_len=3", ",expansion=[3,2]"}) {
    Variant variant{.speculative = GetParam().method + std::string(shape),
                    .batch = 1,
                    .weights = WeightPrecision::kF32,
                    .acceptance = AcceptanceRule::kRejection};
    const auto alone = complete(variant, path_, 1.0);
    std::vector<Variant> others(4, variant);
    others[0].batch = 5;
    others[1].page_size = 1;
    others[2].page_size = 3;
    others[2].batch = 3;
    others[3].prefill_chunk = 5;
    others[3].batch = 2;
    for (const Variant& other : others) {
      const auto found = complete(other, path_, 1.0);
      for (size_t i = 0; i < 3; ++i)
        ASSERT_EQ(alone[i].tokens, found[i].tokens) << describe(other) << ", request " << i;
    }
  }
}

// All that the cache holds of a sequence's committed entries.
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

TEST_P(ContextDrafters, DraftingLeavesTheTargetsCacheAsItWas) {
  const auto parts = parts_of({.speculative = GetParam().method + std::string(",expansion=[3,2]")}, path_);
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  Model& target = *(*parts)->target;
  KvCache& cache = *(*parts)->cache;
  Drafter& drafter = *(*parts)->drafter;
  std::vector<TokenId> tokens;
  for (int i = 0; i < 21; ++i) tokens.push_back(i * i % 280);
  KvSequence sequence = cache.open({});
  drafter.begin(1, tokens);
  {
    auto prompt = cache.stage(sequence, 20).value();
    ForwardBatch batch;
    append_chain(batch, sequence, prompt, std::span(tokens).first(20), LogitsWanted::kNone);
    target.forward(batch, cache);
    std::vector<int> path(20);
    std::iota(path.begin(), path.end(), 0);
    prompt.commit(path, std::span(tokens).first(20));
    const CommittedFeatures features{.sequence = 1,
                                     .tokens = tokens,
                                     .first = 0,
                                     .rows = path,
                                     .features = target.features().data(),
                                     .size = target.feature_size()};
    if (drafter.traits().features.count() > 0) drafter.absorb({&features, 1});
  }
  const auto before = committed_bytes(cache, sequence);
  auto staged = cache.stage(sequence, 10).value();
  ExitStates exits;
  const TargetAccess access{
      .model = &target, .cache = &cache, .sequence = &sequence, .staged = &staged, .exits = &exits};
  const SamplingParams sampling;
  const DraftRequest request{.sequence = 1,
                             .tokens = tokens,
                             .prompt_length = 20,
                             .max_depth = 2,
                             .max_nodes = 9,
                             .sampling = &sampling,
                             .target = &access};
  TokenTree tree;
  tree.reset(tokens.back());
  ASSERT_TRUE(drafter.draft({&request, 1}, {&tree, 1}).ok());
  EXPECT_EQ(tree.drafted(), 9);
  EXPECT_EQ(committed_bytes(cache, sequence), before);
  EXPECT_TRUE(exits.rows.empty());  // nothing the target's pass would take up
  if (drafter.traits().features.count() > 0) {
    EXPECT_GT(drafter.known_tokens(tokens), 0);
    EXPECT_EQ(drafter.known_tokens(tokens, 7), 0) << "cached for another scope";
  }
  drafter.end(1);
}

TEST_P(ContextDrafters, HeadsOfOtherTargetsAreRefused) {
  const Variant variant{.speculative = GetParam().method};
  const auto file = open_model(target_path());
  ASSERT_TRUE(file.ok());
  made_->config["outrider_target"] = target_fingerprint(*file);
  made_->write();
  EXPECT_TRUE(parts_of(variant, path_).ok());
  made_->config["outrider_target"] = "0123456789abcdef";
  made_->write();
  const auto other = parts_of(variant, path_);
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().message, AllOf(HasSubstr("another target"), HasSubstr("0123456789abcdef")));
}

INSTANTIATE_TEST_SUITE_P(
    Heads, ContextDrafters,
    testing::Values(Case{"MoA_TLI_0", "MoA", [] { return make_moa({}); }},
                    Case{"MoA_TLI_1", "MoA", [] { return make_moa({.tli = 1}); }},
                    Case{"MoA_without_LSA", "MoA", [] { return make_moa({.uses_lsa = false}); }},
                    Case{"MoA_without_LSA_TLI_1", "MoA",
                         [] { return make_moa({.uses_lsa = false, .tli = 1}); }},
                    Case{"MoA_without_CA", "MoA", [] { return make_moa({.uses_cross = false}); }},
                    Case{"DFlash", "DFlash", [] { return make_dflash(); }}),
    [](const auto& info) { return info.param.name; });

TEST(MoaOptions, ItsAuthorsTreeIsTheDefault) {
  const auto options = [](const char* text) { return parse_speculative(text)->options; };
  EXPECT_EQ(options("moa").tree, TreeKind::kDynamic);
  EXPECT_EQ(options("moa").dynamic_tree_max_top_k, 8);
  EXPECT_EQ(options("moa").max_total_draft_tokens, 62);
  EXPECT_EQ(options("moa").max_draft_len, 6);
  EXPECT_EQ(options("moa,tree=dynamic,max_draft_len=4").max_draft_len, 4);
  EXPECT_EQ(options("moa,max_total_draft_tokens=24").dynamic_tree_max_top_k, 8);
  EXPECT_EQ(options("moa,max_total_draft_tokens=24").max_total_draft_tokens, 24);
  EXPECT_EQ(options("moa,max_draft_len=4").tree, TreeKind::kChain);
  EXPECT_EQ(options("moa,tree=chain").max_draft_len, 4);
  EXPECT_EQ(options("moa,expansion=[2,1]").tree, TreeKind::kStatic);
}

}  // namespace
}  // namespace outrider
