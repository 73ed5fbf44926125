// SPDX-License-Identifier: Apache-2.0
// Agreement with an independent PyTorch version (tools/head_goldens/dflash.py), and the published layout.
#include "draft_heads/dflash_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "draft_heads/fake_head.h"
#include "draft_heads/head_golden_params.h"
#include "models/model_test_data.h"

namespace outrider {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kTolerance = 1e-4;
constexpr int64_t kHidden = 64;

// A checkpoint for the small targets of tests/data/models with 6 layers.
void make_dflash(FakeHead& head) {
  head.config = {{"architectures", {"DFlashDraftModel"}},
                 {"model_type", "qwen3"},
                 {"hidden_size", kHidden},
                 {"intermediate_size", 72},
                 {"num_hidden_layers", 3},
                 {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},
                 {"head_dim", 24},
                 {"max_position_embeddings", 256},
                 {"rms_norm_eps", 1e-5},
                 {"rope_theta", 50000.0},
                 {"vocab_size", 288},
                 {"hidden_act", "silu"},
                 {"layer_types", {"full_attention", "full_attention", "full_attention"}},
                 {"block_size", 5},
                 {"num_target_layers", 6},
                 {"dflash_config", {{"mask_token_id", 280}}}};
  head.tensors = {
      {"fc.weight", {kHidden, 3 * kHidden}}, {"hidden_norm.weight", {kHidden}}, {"norm.weight", {kHidden}}};
  for (const char* prefix : {"layers.0.", "layers.1.", "layers.2."})
    head.add_layer(prefix, {kHidden, 4, 2, 24, 72, false, true});
}

Result<std::unique_ptr<DFlashNetwork>> load(const FakeHead& made, Model& target, ThreadPool& pool,
                                            const KernelTable* kernels) {
  OUTRIDER_TRY(const HeadFile head, open_head(made.write()));
  EXPECT_EQ(head.method, Method::kDFlash);
  return DFlashNetwork::load(head, &target, {.kernels = kernels, .pool = &pool, .weights = {}});
}

class DFlashGolden : public testing::TestWithParam<HeadGoldenParam> {};

// `logits`: [places, vocab]; `values` holds every ninth of them.
void expect_logits(std::span<const float> logits, size_t places, size_t vocab,
                   const std::vector<double>& values) {
  size_t at = 0;
  for (size_t place = 0; place < places; ++place) {
    for (size_t i = 0; i < vocab; i += 9)
      ASSERT_NEAR(logits[place * vocab + i], values.at(at++), kTolerance)
          << "place " << place << ", token " << i;
  }
  ASSERT_EQ(at, values.size());
}

// `chunk`: tokens that the target computes, and the drafter caches, at a time.
void check_case(const nlohmann::json& golden, const nlohmann::json& expected, const HeadGoldenParam& param,
                size_t chunk) {
  TestModel target({.name = expected.at("target"),
                    .kernels = param.kernels,
                    .weights = DType::kF32,
                    .workers = 2,
                    .layers = golden.at("layers")});
  ASSERT_TRUE(target.ok());
  FakeHead made;
  make_dflash(made);
  ThreadPool pool(2);
  auto loaded = load(made, *target, pool, *select_kernels(param.kernels));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  DFlashNetwork& network = **loaded;
  EXPECT_THAT(network.taps().layers, ElementsAre(2, 3, 4));
  target->tap(network.taps());
  const std::vector<TokenId> tokens = expected.at("tokens");

  const auto target_cache = target.make_cache(param.page_size, 128);
  KvSequence target_sequence = target_cache->open({});
  KvShape shape = network.kv_shape();
  shape.page_size = param.page_size;
  shape.page_count = 128 / param.page_size;
  KvCache cache(shape, {.hash_bits = 64, .poison = true});
  KvSequence sequence = cache.open({});
  ForwardBatch batch;
  for (auto left = std::span(tokens).first(tokens.size() - 1); !left.empty();) {
    const auto part = left.first(std::min(left.size(), chunk));
    run_chunk(*target, *target_cache, target_sequence, part);
    auto staged = cache.stage(sequence, static_cast<int>(part.size())).value();
    batch.clear();
    append_chain(batch, sequence, staged, part, LogitsWanted::kNone);
    network.add_context(batch, PlacedRows(target->backend(), target->features()), cache);
    std::vector<int> path(part.size());
    std::iota(path.begin(), path.end(), 0);
    staged.commit(path, part);
    left = left.subspan(part.size());
  }

  const auto block = static_cast<int>(network.config().block_size);
  auto staged = cache.stage(sequence, block).value();
  batch.clear();
  network.append_block(batch, sequence, staged, tokens.back());
  const FloatAddress states = network.run(batch, cache);
  const int64_t vocab = target->config().vocab_size;
  const std::span<const float> logits =
      target->backend().read(network.logits(states + kHidden, block - 1), (block - 1) * vocab);
  expect_logits(logits, static_cast<size_t>(block - 1), static_cast<size_t>(vocab), expected.at("logits"));
}

TEST_P(DFlashGolden, AgreesWithPyTorch) {
  std::ifstream stream(OUTRIDER_SOURCE_DIR "/tests/data/heads/dflash.json");
  const auto golden = nlohmann::json::parse(stream);
  ASSERT_EQ(golden.at("cases").size(), 6u);
  for (const auto& expected : golden.at("cases")) {
    for (const size_t chunk : {size_t{1}, size_t{4}, size_t{64}}) {
      SCOPED_TRACE(expected.at("target").get<std::string>() + " chunk " + std::to_string(chunk));
      check_case(golden, expected, GetParam(), chunk);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, DFlashGolden, testing::ValuesIn(head_golden_params()), head_golden_name);

template <typename Change>
std::string refusal(Change&& change) {
  TestModel target({.name = "llama", .kernels = "reference", .layers = 6});
  FakeHead made;
  make_dflash(made);
  change(made);
  ThreadPool pool(1);
  const auto loaded = load(made, *target, pool, *select_kernels("reference"));
  return loaded.ok() ? "" : loaded.error().message;
}

TEST(DFlashLayout, ThePublishedNamesLoad) {
  EXPECT_EQ(refusal([](FakeHead&) {}), "");
  EXPECT_EQ(refusal([](FakeHead& head) {
              head.config["dflash_config"]["target_layer_ids"] = {0, 5};
              head.config.erase("layer_types");
              head.tensors["fc.weight"] = {kHidden, 2 * kHidden};
            }),
            "");
}

TEST(DFlashLayout, WrongTensorsAreNamed) {
  for (const char* name :
       {"fc.weight", "norm.weight", "layers.2.self_attn.k_norm.weight", "layers.1.mlp.up_proj.weight"}) {
    EXPECT_THAT(refusal([&](FakeHead& head) { head.tensors.at(name).back() += 2; }),
                AllOf(HasSubstr(name), HasSubstr("expected the shape")));
  }
  for (const char* name :
       {"norm.weight", "layers.2.self_attn.k_norm.weight", "layers.1.mlp.up_proj.weight"}) {
    EXPECT_THAT(refusal([&](FakeHead& head) { head.tensors.erase(name); }),
                AllOf(HasSubstr(name), HasSubstr("missing")));
  }
  EXPECT_THAT(refusal([](FakeHead& head) { head.tensors["layers.3.input_layernorm.weight"] = {kHidden}; }),
              AllOf(HasSubstr("layers.3.input_layernorm.weight"), HasSubstr("does not belong")));
}

TEST(DFlashLayout, KeysThatContradictAreNamed) {
  const auto with = [](const char* key, const nlohmann::json& value) {
    return refusal([&](FakeHead& head) { head.config[key] = value; });
  };
  EXPECT_THAT(with("hidden_size", 128), HasSubstr("hidden_size 64"));
  EXPECT_THAT(with("num_target_layers", 36), AllOf(HasSubstr("num_target_layers 6"), HasSubstr("found 36")));
  EXPECT_THAT(with("block_size", 1), AllOf(HasSubstr("block_size"), HasSubstr("found 1")));
  EXPECT_THAT(with("dflash_config", nlohmann::json::object()), HasSubstr("mask_token_id"));
  EXPECT_THAT(with("dflash_config", {{"mask_token_id", 288}}), HasSubstr("found 288"));
  EXPECT_THAT(with("dflash_config", {{"mask_token_id", 1}, {"target_layer_ids", {1, 1, 2}}}),
              AllOf(HasSubstr("target_layer_ids"), HasSubstr("found 1")));
  EXPECT_THAT(with("dflash_config", {{"mask_token_id", 1}, {"target_layer_ids", {1, 2, 6}}}),
              HasSubstr("found 6"));
  const auto with_windows = [](const nlohmann::json& keys) {
    return refusal([&](FakeHead& head) {
      head.config.update({{"use_sliding_window", true}, {"sliding_window", 32}, {"max_window_layers", 0}});
      head.config["layer_types"] = {"full_attention", "sliding_attention", "full_attention"};
      head.config.update(keys);
    });
  };
  EXPECT_EQ(with_windows(nlohmann::json::object()), "");
  EXPECT_THAT(with_windows({{"is_causal", false}}), HasSubstr("is_causal"));
  EXPECT_THAT(with_windows({{"sliding_window_non_causal", true}}), HasSubstr("sliding_window_non_causal"));
  EXPECT_THAT(with("output_multiplier", 2.0), AllOf(HasSubstr("output_multiplier"), HasSubstr("found 2")));
  EXPECT_THAT(with("dflash_config", {{"mask_token_id", 1}, {"final_logit_softcapping", 30.0}}),
              HasSubstr("final_logit_softcapping"));
}

}  // namespace
}  // namespace outrider
