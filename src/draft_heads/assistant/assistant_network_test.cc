// SPDX-License-Identifier: Apache-2.0
// Agreement of Gemma 4's assistant with an independent PyTorch version (tools/head_goldens/assistant.py), and
// the published layout.
#include "draft_heads/assistant/assistant_network.h"

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

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr size_t kTargetHidden = 24;

json assistant_goldens() {
  std::ifstream stream(OUTRIDER_SOURCE_DIR "/tests/data/heads/assistant.json");
  return json::parse(stream);
}

void fill_assistant(FakeHead& made, const json& golden) {
  made.config = golden["config"];
  for (const auto& [name, shape] : golden["shapes"].items())
    made.tensors[name] = shape.get<std::vector<int64_t>>();
  if (!golden["ordering"].is_null())
    made.integers["masked_embedding.token_ordering"] = golden["ordering"].get<std::vector<int64_t>>();
}

// Writes fake keys and values of a layer into the entries of the sequence.
void fill_cache(KvCache& cache, const KvTransaction& staged, int64_t layer, const std::string& kind,
                const KernelTable* kernels) {
  const AttentionShape heads{.kv_head_count = layer == 0 ? 2 : 1, .head_dim = layer == 0 ? 8 : 16};
  for (const bool is_key : {true, false}) {
    std::byte* out = is_key ? cache.keys(layer) : cache.values(layer);
    const std::vector<float> rows = fake_tensor((is_key ? "keys." : "values.") + kind,
                                                {staged.count(), heads.kv_head_count, heads.head_dim});
    for (int i = 0; i < staged.count(); ++i) {
      kernels->store_kv({.x = rows.data() + i * heads.kv_size(),
                         .out = out + staged.slot(i) * cache.shape().row_bytes(layer),
                         .type = cache.shape().type,
                         .heads = heads.kv_head_count,
                         .head_dim = heads.head_dim});
    }
  }
}

// Three drafts in one pass, and a second level after it.
void check_rows(AssistantNetwork& network, LayerBackend& backend, const KvSequence& sequence, KvCache& cache,
                const json& golden, size_t stride) {
  const json& drafts = golden["rows"];
  std::vector<float> states;
  for (size_t i = 0; i < drafts.size(); ++i) {
    const std::vector<float> one = fake_tensor("state." + std::to_string(i), {kTargetHidden});
    states.insert(states.end(), one.begin(), one.end());
  }
  for (size_t level = 0; level < 2; ++level) {
    std::vector<AssistantNetwork::Row> rows;
    for (const json& draft : drafts) rows.push_back({draft["tokens"][level], &sequence});
    const AssistantNetwork::Output output = network.run(rows, PlacedRows(backend, states), cache);
    states = numbers_at(backend, output.states, std::ssize(states));
    const size_t vocab = output.logits.size() / rows.size();
    for (size_t i = 0; i < rows.size(); ++i) {
      const json &logits = drafts[i]["logits"][level], &state = drafts[i]["states"][level];
      for (size_t j = 0; j < logits.size(); ++j)
        ASSERT_NEAR(output.logits[i * vocab + j * stride], logits[j].get<double>(), 1e-4)
            << "row " << i << " of level " << level << ", token " << j * stride;
      for (size_t j = 0; j < state.size(); ++j)
        ASSERT_NEAR(states[i * kTargetHidden + j], state[j].get<double>(), 1e-4) << i << " " << level;
    }
  }
}

class AssistantGolden : public testing::TestWithParam<HeadGoldenParam> {};

TEST_P(AssistantGolden, AgreesWithPyTorch) {
  const json goldens = assistant_goldens();
  ASSERT_EQ(goldens["cases"].size(), 4u);
  for (const json& golden : goldens["cases"]) {
    SCOPED_TRACE(golden["clusters"].dump() + " clusters, entries " + golden["entries"].dump());
    TestModel target({.name = "gemma4", .kernels = GetParam().kernels, .weights = DType::kF32, .workers = 2});
    ASSERT_TRUE(target.ok());
    FakeHead made;
    fill_assistant(made, golden);
    const auto head = open_head(made.write());
    ASSERT_TRUE(head.ok()) << head.error().message;
    EXPECT_EQ(head->method, Method::kAssistant);
    ThreadPool pool(2);
    const KernelTable* kernels = *select_kernels(GetParam().kernels);
    auto loaded = AssistantNetwork::load(*head, &*target, {.kernels = kernels, .pool = &pool, .weights = {}});
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_THAT((*loaded)->config().target_layers, ElementsAre(0, 0, 1));
    const auto cache = target.make_cache(GetParam().page_size, 64);
    KvSequence sequence = cache->open({});
    const std::vector<TokenId> text(golden["entries"].get<size_t>(), 5);
    auto staged = cache->stage(sequence, static_cast<int>(text.size())).value();
    fill_cache(*cache, staged, 0, "sliding_attention", kernels);
    fill_cache(*cache, staged, 1, "full_attention", kernels);
    std::vector<int> path(text.size());
    std::iota(path.begin(), path.end(), 0);
    staged.commit(path, text);
    check_rows(**loaded, target->backend(), sequence, *cache, golden, goldens["stride"]);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, AssistantGolden, testing::ValuesIn(head_golden_params()), head_golden_name);

template <typename Change>
std::string assistant_refusal(Change&& change, const char* target_name = "gemma4") {
  TestModel target({.name = target_name, .kernels = "reference"});
  FakeHead made;
  fill_assistant(made, assistant_goldens()["cases"].back());
  change(made);
  const auto head = open_head(made.write());
  if (!head.ok()) return head.error().message;
  ThreadPool pool(1);
  const auto loaded = AssistantNetwork::load(
      *head, &*target, {.kernels = *select_kernels("reference"), .pool = &pool, .weights = {}});
  return loaded.ok() ? "" : loaded.error().message;
}

TEST(AssistantLayout, EveryTensorHasItsShape) {
  EXPECT_EQ(assistant_refusal([](FakeHead&) {}), "");
  const json golden = assistant_goldens()["cases"].back();
  for (const auto& item : golden["shapes"].items()) {
    const std::string& tensor = item.key();
    EXPECT_THAT(assistant_refusal([&](FakeHead& made) { made.tensors.at(tensor).back() += 1; }),
                AllOf(HasSubstr("tensor " + tensor), HasSubstr("expected the shape")));
  }
  EXPECT_THAT(assistant_refusal([](FakeHead& made) {
                made.tensors["model.layers.0.self_attn.k_proj.weight"] = {16, 16};
              }),
              AllOf(HasSubstr("k_proj"), HasSubstr("does not belong")));
  EXPECT_THAT(assistant_refusal([](FakeHead& made) { made.tensors.erase("model.norm.weight"); }),
              AllOf(HasSubstr("model.norm.weight"), HasSubstr("missing")));
}

TEST(AssistantLayout, WhatContradictsTheTargetIsNamed) {
  EXPECT_THAT(assistant_refusal([](FakeHead&) {}, "llama"), HasSubstr("family gemma4, found llama"));
  EXPECT_THAT(assistant_refusal([](FakeHead& made) { made.config["backbone_hidden_size"] = 32; }),
              AllOf(HasSubstr("backbone_hidden_size"), HasSubstr("found 32")));
  EXPECT_THAT(assistant_refusal([](FakeHead& made) { made.config["text_config"]["head_dim"] = 16; }),
              HasSubstr("heads of 16"));
  EXPECT_THAT(assistant_refusal([](FakeHead& made) { made.config["num_centroids"] = 25; }),
              HasSubstr("found 25 and 3"));
  EXPECT_THAT(
      assistant_refusal([](FakeHead& made) { made.integers["masked_embedding.token_ordering"][3] = 288; }),
      HasSubstr("masked_embedding.token_ordering"));
}

}  // namespace
}  // namespace outrider
