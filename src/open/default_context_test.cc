// SPDX-License-Identifier: Apache-2.0
#include "open/default_context.h"

#include <gtest/gtest.h>

#include "draft_heads/fake_head.h"
#include "models/decoder_weights.h"

namespace outrider {
namespace {

constexpr int64_t kMegabyte = 1 << 20;
constexpr int64_t kPerToken = 512;  // bytes of keys and values

// Two layers, and 1 MiB of weights.
class DefaultContext : public testing::Test {
 protected:
  DefaultContext() {
    ModelConfig& config = target_.config;
    config.layer_count = 2;
    config.head_count = config.kv_head_count = 2;
    config.head_dim = 32;
    config.max_context = 131072;
    target_.tensors["model.embed_tokens.weight"] = TensorView{DType::kBF16, {1024, 512}};
    options_.kv_cache_type = KvCacheType::kBF16;
  }

  int64_t context(std::optional<int64_t> free_bytes) const {
    return default_context(options_, target_, drafts_, free_bytes);
  }

  ModelFile target_;
  DraftFiles drafts_;
  EngineOptions options_;
};

TEST_F(DefaultContext, IsTheTrainedOneWhereMemoryHoldsIt) {
  ASSERT_EQ(cache_bytes_per_token(target_.config, DType::kBF16), kPerToken);
  EXPECT_EQ(context(kMegabyte + 3 * kPerToken * 131072), 131072);
  EXPECT_EQ(context(1000000 * kMegabyte), 131072);
  target_.config.max_context = 512;
  EXPECT_EQ(context(1000000 * kMegabyte), 512);
  EXPECT_EQ(context(0), 512);
}

TEST_F(DefaultContext, IsWhatAThirdOfTheMemoryBesideTheWeightsHolds) {
  EXPECT_EQ(context(kMegabyte + 3 * kPerToken * 131071), 130048);
  EXPECT_EQ(context(kMegabyte + 3 * kPerToken * 20000), 19456);
  EXPECT_EQ(context(kMegabyte + 3 * kPerToken * 5000), kUsualContext);
  EXPECT_EQ(context(0), kUsualContext);
}

TEST_F(DefaultContext, IsTheUsualOneWhereNoMemoryIsAsked) { EXPECT_EQ(context(std::nullopt), kUsualContext); }

TEST_F(DefaultContext, LeavesRoomForTheCachesOfDrafters) {
  drafts_.models.push_back(target_);
  options_.max_batch = 4;
  EXPECT_EQ(context(2 * kMegabyte + 3 * 5 * kPerToken * 20000), 19456);
}

TEST_F(DefaultContext, LeavesRoomForTheCachesOfHeads) {
  FakeHead files;
  files.tensors["0.0.linear.weight"] = {8, 8};
  files.tensors["0.0.linear.bias"] = {8};
  files.tensors["0.1.weight"] = {12, 8};
  auto head = open_head(files.write());
  ASSERT_TRUE(head.ok()) << head.error().message;
  drafts_.head = std::move(*head);
  int64_t weights = kMegabyte;
  for (const auto& [name, tensor] : drafts_.head->file.tensors) weights += tensor.bytes();
  EXPECT_EQ(context(weights + 3 * kPerToken * 20000), 19456);  // these heads have no attention
  drafts_.head->tensors["midlayer.self_attn.k_proj.weight"].shape = {32, 16};
  drafts_.head->tensors["midlayer.self_attn.v_proj.weight"].shape = {32, 16};
  options_.max_batch = 4;
  EXPECT_EQ(context(weights + 3 * (kPerToken + 4 * 128) * 20000), 19456);
}

TEST_F(DefaultContext, StaysWithinTheShortPositionsOfLongRope) {
  RopeScaling& scaling = target_.config.ropes[0].scaling;
  scaling.kind = RopeScalingKind::kLongRope;
  scaling.original_context = 4096;
  EXPECT_EQ(context(1000000 * kMegabyte), 4096);
  EXPECT_EQ(trained_context(target_.config), 4096);
}

TEST_F(DefaultContext, IsSaidBesideTheTrainedOne) {
  EXPECT_EQ(context_note(131072, target_.config), "context of 131072 tokens");
  EXPECT_EQ(context_note(19456, target_.config),
            "context of 19456 tokens of the 131072 that the model was made for; --ctx asks for more");
}

}  // namespace
}  // namespace outrider
