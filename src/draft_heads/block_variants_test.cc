// SPDX-License-Identifier: Apache-2.0
// Agreement of DFlash with sliding windows, and of DSpark, with an independent PyTorch version
// (tools/head_goldens/block_variants.py), and what their checkpoints must hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "draft_heads/dflash_network.h"
#include "draft_heads/head_golden_params.h"
#include "draft_heads/recurrent_test_data.h"
#include "models/model_test_data.h"

namespace outrider {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

json read_goldens() {
  std::ifstream stream(OUTRIDER_SOURCE_DIR "/tests/data/heads/block_variants.json");
  return json::parse(stream);
}

json golden_of(const std::string& name) {
  const json goldens = read_goldens();
  for (const json& golden : goldens["cases"]) {
    if (golden["name"] == name) return golden;
  }
  return {};
}

// A drafter beside its target, which has read a text.
class BlockRun {
 public:
  BlockRun(const json& goldens, const json& golden, const HeadGoldenParam& param)
      : page_size_(param.page_size),
        target_({.name = goldens["target"],
                 .kernels = param.kernels,
                 .weights = DType::kF32,
                 .workers = 2,
                 .layers = goldens["layers"]}) {
    fill_head(made_, golden);
    const auto head = open_head(made_.write());
    auto loaded = DFlashNetwork::load(
        *head, &*target_, {.kernels = *select_kernels(param.kernels), .pool = &pool_, .weights = {}});
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    if (loaded.ok()) network_ = std::move(*loaded);
  }

  DFlashNetwork* network() { return network_.get(); }
  LayerBackend& backend() { return target_->backend(); }

  // States of the block after the tokens, of which the last is pending.
  FloatAddress states_after(const std::vector<TokenId>& tokens) {
    target_->tap(network_->taps());
    const auto target_cache = target_.make_cache(page_size_, 128);
    KvSequence target_sequence = target_cache->open({});
    KvShape shape = network_->kv_shape();
    shape.page_size = page_size_;
    shape.page_count = 128 / page_size_;
    KvCache cache(shape, {.hash_bits = 64, .poison = true});
    KvSequence sequence = cache.open({});
    ForwardBatch batch;
    const auto text = std::span(tokens).first(tokens.size() - 1);
    run_chunk(*target_, *target_cache, target_sequence, text);
    auto context = cache.stage(sequence, static_cast<int>(text.size())).value();
    append_chain(batch, sequence, context, text, LogitsWanted::kNone);
    network_->add_context(batch, PlacedRows(backend(), target_->features()), cache);
    std::vector<int> path(text.size());
    std::iota(path.begin(), path.end(), 0);
    context.commit(path, text);
    batch.clear();
    auto block = cache.stage(sequence, static_cast<int>(network_->config().block_size)).value();
    network_->append_block(batch, sequence, block, tokens.back());
    return network_->run(batch, cache);
  }

 private:
  int page_size_;
  TestModel target_;
  ThreadPool pool_{2};
  FakeHead made_;
  std::unique_ptr<DFlashNetwork> network_;
};

void expect_row(std::span<const float> logits, const json& expected, size_t stride) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const float logit = logits[i * stride];
    if (expected[i].is_null()) {
      ASSERT_EQ(logit, -INFINITY) << i;
    } else {
      ASSERT_NEAR(logit, expected[i].get<double>(), 1e-4) << i;
    }
  }
}

void check_text(BlockRun& run, FloatAddress states, const json& text, size_t stride) {
  DFlashNetwork& network = *run.network();
  const DFlashConfig& config = network.config();
  const int64_t hidden = config.layers.hidden_size, vocab = config.layers.vocab_size;
  const auto before = text["before"].get<std::vector<TokenId>>();
  ASSERT_EQ(static_cast<int>(before.size()), config.places());
  const FloatAddress first = states + config.first_place * hidden;
  const FloatAddress logits = network.logits(first, config.places());
  for (size_t place = 0; place < before.size(); ++place) {
    SCOPED_TRACE(place);
    const auto at = static_cast<int64_t>(place);
    std::span<const float> row = run.backend().read(logits + at * vocab, vocab);
    if (config.markov) {
      EXPECT_NEAR(network.confidence(first + at * hidden, before[place]),
                  text["confidence"][place].get<double>(), 1e-4);
      // Only the tokens before a place count, whatever else is asked for at once.
      const TokenId asked[] = {7, before[place]};
      const int from[] = {0, 1};
      const std::span<const int> parents = place == 0 ? std::span<const int>() : std::span(from);
      row = network.logits_after(logits + at * vocab, first + at * hidden, {.tokens = asked, .from = parents})
                .last(static_cast<size_t>(vocab));
    }
    expect_row(row, text["logits"][place], stride);
  }
}

class BlockVariants : public testing::TestWithParam<HeadGoldenParam> {};

TEST_P(BlockVariants, AgreeWithPyTorch) {
  const json goldens = read_goldens();
  for (const json& golden : goldens["cases"]) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    BlockRun run(goldens, golden, GetParam());
    ASSERT_NE(run.network(), nullptr);
    for (const json& text : golden["texts"]) {
      check_text(run, run.states_after(text["tokens"]), text, goldens["stride"]);
      if (HasFatalFailure()) return;
    }
  }
}

// Every place's candidates, and their scores after the token before it, whatever else is asked for at once.
void check_candidates(BlockRun& run, FloatAddress states, const json& places) {
  DFlashNetwork& network = *run.network();
  const int64_t hidden = network.config().layers.hidden_size, vocab = network.config().layers.vocab_size;
  ASSERT_EQ(static_cast<int>(places.size()), network.config().places());
  const FloatAddress first = states + network.config().first_place * hidden;
  const FloatAddress logits = network.logits(first, network.config().places());
  for (size_t place = 0; place < places.size(); ++place) {
    const auto at = static_cast<int64_t>(place);
    const TokenId asked[] = {7, places[place]["before"]};
    const std::span<const float> row =
        network.logits_after(logits + at * vocab, first + at * hidden, {.tokens = asked, .from = {}})
            .last(static_cast<size_t>(vocab));
    const auto candidates = places[place]["candidates"].get<std::vector<size_t>>();
    EXPECT_EQ(std::ranges::count(row, -INFINITY), std::ssize(row) - std::ssize(candidates));
    for (size_t i = 0; i < candidates.size(); ++i)
      ASSERT_NEAR(row[candidates[i]], places[place]["scores"][i].get<double>(), 1e-4)
          << "place " << place << ", token " << candidates[i];
  }
}

json read_dflash2() {
  std::ifstream stream(OUTRIDER_SOURCE_DIR "/tests/data/heads/dflash2.json");
  json golden = json::parse(stream);
  golden["ids"] = nullptr;
  return golden;
}

TEST_P(BlockVariants, DFlash2AgreesWithPyTorch) {
  const json golden = read_dflash2();
  BlockRun run(golden, golden, GetParam());
  ASSERT_NE(run.network(), nullptr);
  for (const json& text : golden["texts"]) {
    check_candidates(run, run.states_after(text["tokens"]), text["places"]);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, BlockVariants, testing::ValuesIn(head_golden_params()), head_golden_name);

template <typename Change>
std::string refusal_of(const std::string& name, Change&& change) {
  const json goldens = read_goldens();
  TestModel target({.name = goldens["target"], .layers = goldens["layers"]});
  FakeHead made;
  fill_head(made, golden_of(name));
  change(made);
  const auto head = open_head(made.write());
  if (!head.ok()) return head.error().message;
  ThreadPool pool(1);
  const auto loaded = DFlashNetwork::load(
      *head, &*target, {.kernels = *select_kernels("reference"), .pool = &pool, .weights = {}});
  return loaded.ok() ? "" : loaded.error().message;
}

TEST(DFlash2Layout, EveryTensorHasItsShapeAndEveryKeyItsRange) {
  const json golden = read_dflash2();
  TestModel target({.name = golden["target"], .layers = golden["layers"]});
  ThreadPool pool(1);
  const auto refusal = [&](auto&& change) {
    FakeHead made;
    fill_head(made, golden);
    change(made);
    const auto head = open_head(made.write());
    if (!head.ok()) return head.error().message;
    EXPECT_EQ(head->method, Method::kDFlash);
    const auto loaded = DFlashNetwork::load(
        *head, &*target, {.kernels = *select_kernels("reference"), .pool = &pool, .weights = {}});
    return loaded.ok() ? std::string() : loaded.error().message;
  };
  EXPECT_EQ(refusal([](FakeHead&) {}), "");
  for (const auto& item : golden["shapes"].items()) {
    const std::string& tensor = item.key();
    EXPECT_THAT(refusal([&](FakeHead& made) { made.tensors.at(tensor).back() += 1; }),
                AllOf(HasSubstr("tensor " + tensor), HasSubstr("expected the shape")));
  }
  EXPECT_THAT(refusal([](FakeHead& made) { made.tensors.erase("layers.1.mlp_conv.base_kernel"); }),
              AllOf(HasSubstr("layers.1.mlp_conv.base_kernel"), HasSubstr("missing")));
  for (const char* key : {"conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k"}) {
    EXPECT_THAT(refusal([&](FakeHead& made) { made.config["dflash_config"].erase(key); }),
                AllOf(HasSubstr(key), HasSubstr("found none")));
    EXPECT_THAT(refusal([&](FakeHead& made) { made.config["dflash_config"][key] = 100000; }),
                AllOf(HasSubstr(key), HasSubstr("found 100000")));
  }
  EXPECT_THAT(refusal([](FakeHead& made) { made.config["dflash_config"]["conv_group_size"] = 5; }),
              HasSubstr("divides hidden_size 64, found 5"));
}

TEST(DSparkLayout, EveryTensorHasItsShape) {
  for (const char* name : {"deepseek", "speculators", "gated", "recurrent"}) {
    const json golden = golden_of(name);
    for (const auto& item : golden["shapes"].items()) {
      const std::string& tensor = item.key();
      EXPECT_THAT(refusal_of(name, [&](FakeHead& made) { made.tensors.at(tensor).back() += 1; }),
                  AllOf(HasSubstr("tensor " + tensor), HasSubstr("expected the shape")))
          << name;
    }
    EXPECT_THAT(refusal_of(name, [](FakeHead& made) { made.tensors["markov_head.other.weight"] = {3}; }),
                AllOf(HasSubstr("markov_head.other.weight"), HasSubstr("does not belong")));
    EXPECT_THAT(refusal_of(name, [](FakeHead& made) { made.tensors.erase("markov_head.markov_w2.weight"); }),
                AllOf(HasSubstr("markov_head.markov_w2.weight"), HasSubstr("missing")));
  }
  EXPECT_THAT(refusal_of("speculators", [](FakeHead& made) { made.tensors.erase("lm_head.weight"); }),
              AllOf(HasSubstr("lm_head.weight"), HasSubstr("missing")));
}

TEST(DSparkLayout, KeysThatContradictAreNamed) {
  const auto with = [](const char* key, const json& value) {
    return refusal_of("deepseek", [&](FakeHead& made) { made.config[key] = value; });
  };
  EXPECT_EQ(with("markov_head_type", "vanilla"), "");
  EXPECT_THAT(with("markov_head_type", "linear"), AllOf(HasSubstr("vanilla"), HasSubstr("found linear")));
  EXPECT_THAT(with("markov_head_type", "rnn"), HasSubstr("markov_head.joint_proj"));
  EXPECT_THAT(with("markov_head_type", "gated"), HasSubstr("markov_head.gate_proj"));
  EXPECT_THAT(with("markov_rank", 0), AllOf(HasSubstr("markov_rank"), HasSubstr("found 0")));
  EXPECT_THAT(with("markov_rank", 9), HasSubstr("markov_head.markov_w1.weight"));
  EXPECT_THAT(with("mask_token_id", 288), HasSubstr("found 288"));
  EXPECT_THAT(with("target_layer_ids", {0, 6}), HasSubstr("found 6"));
  EXPECT_THAT(refusal_of("speculators",
                         [](FakeHead& made) {
                           made.config["aux_hidden_state_layer_ids"] = {0, 3};
                         }),
              AllOf(HasSubstr("aux_hidden_state_layer_ids"), HasSubstr("from 1 to 6")));
}

// A block of n tokens drafts n where the pending token's state proposes the first, else n - 1.
TEST(DSparkLayout, ConfigsSayHowManyTokensAPassDrafts) {
  const auto places = [](const char* name, auto&& change) {
    FakeHead made;
    fill_head(made, golden_of(name));
    change(made);
    return drafted_places(*open_head(made.write())).value();
  };
  const auto as_it_is = [](FakeHead&) {};
  EXPECT_EQ(places("sliding", as_it_is), 4);
  EXPECT_EQ(places("deepseek", as_it_is), 4);
  EXPECT_EQ(places("speculators", as_it_is), 5);
  EXPECT_EQ(places("speculators", [](FakeHead& made) { made.config["sample_from_anchor"] = true; }), 6);
}

}  // namespace
}  // namespace outrider
