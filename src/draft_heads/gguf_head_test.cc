// SPDX-License-Identifier: Apache-2.0
// Heads in GGUF files equal the checkpoints that they were converted from.
#include "draft_heads/gguf_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "draft_heads/dflash_network.h"
#include "draft_heads/eagle3.h"
#include "draft_heads/gguf_head_test_data.h"
#include "draft_heads/head_file.h"
#include "draft_heads/recurrent_test_data.h"
#include "models/model_test_data.h"

namespace outrider {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;
namespace gguf = testing_gguf;

void expect_same_tensors(const HeadFile& found, const HeadFile& expected) {
  for (const auto& [name, tensor] : expected.tensors) {
    if (name == "t2d") continue;
    const std::string own = name.starts_with("midlayer.") ? "layers.0." + name.substr(9) : name;
    const auto other = found.tensors.find(own);
    ASSERT_NE(other, found.tensors.end()) << own;
    EXPECT_EQ(other->second.shape, tensor.shape) << own;
    EXPECT_TRUE(std::ranges::equal(other->second.data, tensor.data)) << own;
  }
}

json block_golden(const std::string& name) {
  if (name == "dflash2") {
    std::ifstream file(OUTRIDER_SOURCE_DIR "/tests/data/heads/dflash2.json");
    json golden = json::parse(file);
    golden["ids"] = nullptr;
    return golden;
  }
  std::ifstream stream(OUTRIDER_SOURCE_DIR "/tests/data/heads/block_variants.json");
  const json goldens = json::parse(stream);
  for (const json& golden : goldens["cases"]) {
    if (golden["name"] == name) return golden;
  }
  return {};
}

TEST(GgufHead, Eagle3IsTheCheckpoints) {
  const json golden = head_golden("eagle3");
  FakeHead made;
  fill_head(made, golden);
  const GgufFileOf file(made, eagle_keys(golden), "eagle3", 16);
  const auto found = open_head(file.path());
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->method, Method::kEagle3);
  expect_same_tensors(*found, *open_head(made.write()));
  TestModel target({.name = "llama", .weights = DType::kF32});
  ThreadPool pool(1);
  const auto head = load_eagle3(*found, &*target,
                                {.kernels = *select_kernels("reference"), .pool = &pool, .weights = {}}, {});
  ASSERT_TRUE(head.ok()) << head.error().message;
  EXPECT_EQ((*head)->taps().layers, (std::vector<int64_t>{0, 1, 2}));
}

gguf::File block_keys(const json& golden) {
  const json& config = golden["config"];
  const json layers = config.value("transformer_layer_config", config);
  gguf::File keys = keys_of("dflash", layers);
  std::vector<int32_t> ids;
  const json own = config.value("dflash_config", config);
  const bool reads_inputs = own.contains("aux_hidden_state_layer_ids");
  for (const json& id : own[reads_inputs ? "aux_hidden_state_layer_ids" : "target_layer_ids"])
    ids.push_back(id.get<int32_t>() + (reads_inputs ? 0 : 1));
  keys.key("dflash.target_layers") = gguf::numbers<int32_t>(gguf::kI32, ids);
  keys.key("dflash.block_size") = gguf::u32(own.value("block_size", config.value("block_size", 0u)));
  for (const char* key : {"conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k"})
    if (own.contains(key)) keys.key(std::string("dflash.") + key) = gguf::u32(own[key]);
  keys.key("tokenizer.ggml.mask_token_id") = gguf::u32(280);
  if (config.contains("markov_rank"))
    keys.key("dflash.sample_from_anchor") = gguf::boolean(reads_inputs ? 0 : 1);
  if (!layers.contains("sliding_window")) return keys;
  keys.key("dflash.attention.sliding_window") = gguf::u32(layers["sliding_window"]);
  std::string slides;
  for (const json& type : layers["layer_types"]) slides += type == "sliding_attention" ? '\1' : '\0';
  keys.key("dflash.attention.sliding_window_pattern") = gguf::array(gguf::kBool, slides.size(), slides);
  return keys;
}

TEST(GgufHead, BlockDraftersAreTheCheckpoints) {
  TestModel target({.name = "qwen3", .layers = 6});
  for (const char* name : {"sliding", "deepseek", "speculators", "dflash2"}) {
    SCOPED_TRACE(name);
    const json golden = block_golden(name);
    FakeHead made;
    fill_head(made, golden);
    const GgufFileOf file(made, block_keys(golden), "dflash", 24);
    const auto found = open_head(file.path());
    ASSERT_TRUE(found.ok()) << found.error().message;
    const auto expected = open_head(made.write());
    EXPECT_EQ(found->method, expected->method);
    expect_same_tensors(*found, *expected);
    const auto own = read_dflash_config(*found, target->config());
    const auto other = read_dflash_config(*expected, target->config());
    ASSERT_TRUE(own.ok()) << own.error().message;
    EXPECT_EQ(own->ids, other->ids);
    EXPECT_EQ(own->is_causal, other->is_causal);
    EXPECT_EQ(own->block_size, other->block_size);
    EXPECT_EQ(own->first_place, other->first_place);
    EXPECT_EQ(own->mask, other->mask);
    EXPECT_EQ(own->vocabulary, other->vocabulary);
    EXPECT_EQ(own->selector.has_value(), std::string(name) == "dflash2");
    if (own->selector) {
      EXPECT_EQ(own->convolutions->taps, other->convolutions->taps);
      EXPECT_EQ(own->convolutions->group, other->convolutions->group);
      EXPECT_EQ(own->selector->rank, other->selector->rank);
      EXPECT_EQ(own->selector->candidates, other->selector->candidates);
    }
    EXPECT_EQ(own->layers.ropes.front().theta, other->layers.ropes.front().theta);
    for (int64_t i = 0; i < own->layers.layer_count; ++i)
      EXPECT_EQ(own->layers.traits_of(i).window, other->layers.traits_of(i).window);
  }
}

TEST(GgufHead, OtherFilesAreNamed) {
  const json golden = head_golden("eagle3");
  FakeHead made;
  fill_head(made, golden);
  const auto refusal = [&](const std::string& key, const gguf::Value& value) {
    gguf::File keys = eagle_keys(golden);
    keys.key(key) = value;
    const GgufFileOf file(made, keys, "eagle3", 16);
    const auto head = open_head(file.path());
    return head.ok() ? "" : head.error().message;
  };
  EXPECT_EQ(refusal("eagle3.rope.scaling.type", gguf::text("none")), "");
  EXPECT_THAT(refusal("eagle3.rope.scaling.type", gguf::text("yarn")),
              AllOf(HasSubstr("rope.scaling.type"), HasSubstr("yarn")));
  EXPECT_THAT(refusal("eagle3.logit_scale", gguf::f32(2.0f)), HasSubstr("eagle3.logit_scale"));
  gguf::File keys = eagle_keys(golden);
  keys.erase_key("eagle3.target_layers");
  const GgufFileOf without(made, keys, "eagle3", 16);
  EXPECT_THAT(open_head(without.path()).error().message, HasSubstr("eagle3.target_layers is missing"));
  const GgufFileOf model(made, eagle_keys(golden), "llama", 16);
  EXPECT_FALSE(open_head_or_files(model.path())->head);
  EXPECT_THAT(open_head(model.path()).error().message, HasSubstr("found a model"));
}

}  // namespace
}  // namespace outrider
