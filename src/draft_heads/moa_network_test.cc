// SPDX-License-Identifier: Apache-2.0
// Agreement with an independent PyTorch version (tools/head_goldens/moa.py), and the published layout.
#include "draft_heads/moa_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "draft_heads/fake_head.h"
#include "draft_heads/head_fit.h"
#include "draft_heads/head_golden_params.h"
#include "models/model_test_data.h"

namespace outrider::moa_network_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr double kTolerance = 1e-4;
constexpr int64_t kHidden = 64, kHeads = 4, kTargetKv = 2;

struct Variant {
  bool biased = false, uses_lsa = true, uses_cross = true;
  int tli = 0;
  int64_t target_head_dim = 16;
  int64_t lsa_heads = kHeads;
};

// A checkpoint for the small targets of tests/data/models, as its authors save it.
void make_moa(FakeHead& head, const Variant& variant) {
  head.config = {{"architectures", {"MOASpecLlamaForCausalLM"}},
                 {"hidden_size", kHidden},
                 {"num_attention_heads", kHeads},
                 {"rms_norm_eps", 1e-5},
                 {"rope_theta", 10000.0},
                 {"vocab_size", 288},
                 {"target_layer_inference", variant.tli}};
  if (!variant.uses_lsa) head.config["disable_LSA"] = true;
  if (!variant.uses_cross) head.config["disable_cross_attention"] = true;
  const int64_t kv_hidden = 2 * kTargetKv * variant.target_head_dim;
  head.add_layer("self_attention.", {kHidden, kHeads, 2, kHidden / kHeads, 48, variant.biased, false});
  if (!variant.uses_cross) return;
  head.add_layer("cross_attention.", {kHidden, kHeads, 2, kHidden / kHeads, 56, false, false});
  if (!variant.uses_lsa) return;
  if (variant.lsa_heads != kHeads)
    head.config["layer_self_attention_num_attention_heads"] = variant.lsa_heads;
  head.add_layer("layer_self_attention.",
                 {kv_hidden, variant.lsa_heads, 1, kv_hidden / variant.lsa_heads, 40, variant.biased, false});
  head.tensors["Ekv2E.weight"] = {kHidden, kv_hidden};
  head.tensors["Ekv2E.bias"] = {kHidden};
}

Result<std::unique_ptr<MoaNetwork>> load(const FakeHead& made, Model& target, ThreadPool& pool,
                                         const KernelTable* kernels, std::optional<DType> weights = {}) {
  OUTRIDER_TRY(const HeadFile head, open_head(made.write()));
  EXPECT_EQ(head.method, Method::kMoa);
  return MoaNetwork::load(head, target, {.kernels = kernels, .pool = &pool, .weights = weights});
}

std::vector<int> all_of(size_t count) {
  std::vector<int> path(count);
  std::iota(path.begin(), path.end(), 0);
  return path;
}

// Every `step`-th number of each row of `found` against `expected`.
void expect_rows(std::span<const float> found, size_t rows, size_t step,
                 const std::vector<double>& expected) {
  const size_t dim = found.size() / rows;
  size_t at = 0;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < dim; i += step) {
      ASSERT_LT(at, expected.size());
      ASSERT_NEAR(found[row * dim + i], expected[at++], kTolerance) << "row " << row << ", number " << i;
    }
  }
  ASSERT_EQ(at, expected.size());
}

class MoaGolden : public testing::TestWithParam<HeadGoldenParam> {};

// A sequence in a cache of 128 entries.
struct CachedSequence {
  explicit CachedSequence(KvCache& used) : cache(&used), kv(used.open({})) {}
  KvCache* cache;
  KvSequence kv;
};

// Computes and commits the tokens in the target; returns the slots of their entries.
std::vector<int32_t> prefill(TestModel& target, CachedSequence& sequence, std::span<const TokenId> tokens) {
  auto prompt = sequence.cache->stage(sequence.kv, static_cast<int>(tokens.size())).value();
  std::vector<int32_t> slots;
  for (int i = 0; i < prompt.count(); ++i) slots.push_back(prompt.slot(i));
  ForwardBatch batch;
  append_chain(batch, sequence.kv, prompt, tokens, LogitsWanted::kAll);
  target->forward(batch, *sequence.cache);
  prompt.commit(all_of(tokens.size()), tokens);
  return slots;
}

// Logits of the golden tree, computed level by level, as it is drafted.
std::vector<float> draft_levels(const nlohmann::json& golden, MoaNetwork& network, TestModel& target,
                                CachedSequence& own, CachedSequence& targets) {
  const std::vector<TokenId> tree = golden.at("tree_tokens");
  const std::vector<int> parents = golden.at("tree_parents");
  const auto nodes = static_cast<int>(tree.size());
  auto staged = own.cache->stage(own.kv, nodes).value();
  auto target_staged = targets.cache->stage(targets.kv, nodes).value();
  ForwardBatch batch;
  std::vector<float> logits;
  for (const auto& [first, end] : {std::pair{0, 1}, {1, 3}, {3, 7}, {7, 8}}) {
    const StagedTree level{std::span(tree).first(static_cast<size_t>(end)),
                           std::span(parents).first(static_cast<size_t>(end)), first};
    batch.clear();
    append_tree(batch, own.kv, staged, level, LogitsWanted::kAll);
    LayerBackend& backend = target->backend();
    const FloatAddress out = network.run(batch, *own.cache);
    std::span<const float> rows;
    if (network.config().target_layers == 0) {
      rows = backend.read(target->output_head(out, batch.rows()), batch.rows() * target->config().vocab_size);
    } else {
      batch.clear();
      append_tree(batch, targets.kv, target_staged, level, LogitsWanted::kAll);
      batch.resume_layer = target->config().layer_count - network.config().target_layers;
      batch.resumed_rows = all_of(static_cast<size_t>(batch.rows()));
      batch.resumed_states = numbers_at(backend, out, batch.rows() * target->config().hidden_size);
      rows = target->forward(batch, *targets.cache);
    }
    logits.insert(logits.end(), rows.begin(), rows.end());
  }
  return logits;
}

void check_case(const nlohmann::json& golden, const nlohmann::json& expected, const HeadGoldenParam& param) {
  TestModel target({.name = expected.at("target"),
                    .kernels = param.kernels,
                    .weights = DType::kF32,
                    .workers = 2,
                    .layers = golden.at("layers")});
  ASSERT_TRUE(target.ok());
  const Variant variant{expected.at("biased"), expected.at("uses_lsa"),   expected.at("uses_cross"),
                        expected.at("tli"),    target->config().head_dim, expected.at("lsa_heads")};
  FakeHead made;
  make_moa(made, variant);
  ThreadPool pool(2);
  auto loaded = load(made, *target, pool, *select_kernels(param.kernels));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  MoaNetwork& network = **loaded;
  const std::vector<TokenId> tokens = golden.at("tokens");
  const auto committed = std::span(tokens).first(tokens.size() - 1);

  // The network without layer self-attention reads the target's last hidden states.
  if (!variant.uses_lsa) target->tap({.layers = {}, .final_norm = true});
  const auto target_cache = target.make_cache(param.page_size, 128);
  CachedSequence targets(*target_cache);
  const std::vector<int32_t> slots = prefill(target, targets, committed);
  const std::vector<float> last_hidden(target->features().begin(), target->features().end());

  KvShape shape = network.kv_shape();
  shape.page_size = param.page_size;
  shape.page_count = 128 / param.page_size;
  KvCache cache(shape, {.hash_bits = 64, .poison = true});
  CachedSequence own(cache);
  auto context = cache.stage(own.kv, static_cast<int>(committed.size())).value();
  ForwardBatch batch;
  append_chain(batch, own.kv, context, committed, LogitsWanted::kNone);
  LayerBackend& backend = target->backend();
  const PlacedRows last(backend, last_hidden);
  const FloatAddress states =
      variant.uses_lsa && variant.uses_cross
          ? network.states_of(network.pool_layers(slots, *target_cache), std::ssize(slots))
          : last;
  if (variant.uses_cross) {
    expect_rows(numbers_at(backend, states, std::ssize(slots) * target->config().hidden_size),
                committed.size(), 4, expected.at("context"));
  }
  network.add_context(batch, states, cache);
  context.commit(all_of(committed.size()), committed);

  const std::vector<float> logits = draft_levels(golden, network, target, own, targets);
  expect_rows(logits, golden.at("tree_tokens").size(), 9, expected.at("logits"));
}

TEST_P(MoaGolden, AgreesWithPyTorch) {
  std::ifstream stream(OUTRIDER_SOURCE_DIR "/tests/data/heads/moa.json");
  const auto golden = nlohmann::json::parse(stream);
  for (const auto& expected : golden.at("cases")) {
    SCOPED_TRACE(expected.at("target").get<std::string>() + " TLI " + expected.at("tli").dump() + " LSA " +
                 expected.at("uses_lsa").dump() + " CA " + expected.at("uses_cross").dump());
    check_case(golden, expected, GetParam());
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, MoaGolden, testing::ValuesIn(head_golden_params()), head_golden_name);

// The error of loading a checkpoint changed by `change`; "" if it loads.
template <typename Change>
std::string refusal(Change&& change, const Variant& variant = {}) {
  TestModel target({.name = "llama", .kernels = "reference", .layers = 4});
  FakeHead made;
  make_moa(made, variant);
  change(made);
  ThreadPool pool(1);
  const auto loaded = load(made, *target, pool, *select_kernels("reference"));
  return loaded.ok() ? "" : loaded.error().message;
}

TEST(MoaLayout, ThePublishedNamesLoad) {
  const auto as_it_is = [](FakeHead&) {};
  EXPECT_EQ(refusal(as_it_is), "");
  EXPECT_EQ(refusal(as_it_is, {.biased = true, .tli = 3}), "");
  EXPECT_EQ(refusal(as_it_is, {.uses_lsa = false}), "");
  EXPECT_EQ(refusal(as_it_is, {.uses_cross = false}), "");
  // As converted for vLLM: sizes named.
  EXPECT_EQ(refusal([](FakeHead& head) {
              head.config.update({{"model_type", "moa_spec"},
                                  {"architectures", {"MOASpecModel"}},
                                  {"kv_hidden_size", 64},
                                  {"layer_self_attention_num_key_value_heads", 1},
                                  {"layer_self_attention_intermediate_size", 40},
                                  {"self_attention_num_key_value_heads", 2},
                                  {"self_attention_intermediate_size", 48},
                                  {"cross_attention_num_key_value_heads", 2},
                                  {"cross_attention_intermediate_size", 56},
                                  {"disable_LSA", false}});
            }),
            "");
}

TEST(MoaLayout, ItsTargetIsSeenInItsTensors) {
  FakeHead made;
  make_moa(made, {.target_head_dim = 24});
  const auto head = open_head(made.write());
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(summarize_head(*head).hidden_size, kHidden);
}

TEST(MoaLayout, WrongTensorsAreNamed) {
  for (const char* name : {"Ekv2E.bias", "layer_self_attention.self_attn.k_proj.weight",
                           "cross_attention.input_layernorm.weight", "self_attention.mlp.gate_proj.weight"}) {
    EXPECT_THAT(refusal([&](FakeHead& head) { head.tensors.erase(name); }),
                AllOf(HasSubstr(name), HasSubstr("missing")));
    EXPECT_THAT(refusal([&](FakeHead& head) { head.tensors.at(name).back() += 2; }),
                AllOf(HasSubstr(name), HasSubstr("expected the shape")));
  }
  EXPECT_THAT(refusal([](FakeHead& head) { head.tensors["token_map"] = {8}; }),
              AllOf(HasSubstr("token_map"), HasSubstr("does not belong")));
  EXPECT_THAT(refusal([](FakeHead& head) { head.config["disable_LSA"] = true; }),
              AllOf(HasSubstr("Ekv2E"), HasSubstr("does not belong")));
}

TEST(MoaLayout, KeysThatContradictAreNamed) {
  const auto with = [](const char* key, const nlohmann::json& value) {
    return refusal([&](FakeHead& head) { head.config[key] = value; });
  };
  EXPECT_THAT(with("hidden_size", 128), AllOf(HasSubstr("hidden_size 64"), HasSubstr("found 128")));
  EXPECT_THAT(with("vocab_size", 300), AllOf(HasSubstr("vocab_size 288"), HasSubstr("found 300")));
  EXPECT_THAT(with("kv_hidden_size", 32), AllOf(HasSubstr("kv_hidden_size 64"), HasSubstr("found 32")));
  EXPECT_THAT(with("num_attention_heads", 3), HasSubstr("attention heads of self_attention"));
  EXPECT_THAT(with("num_attention_heads", 0), HasSubstr("num_attention_heads 0"));
  for (const int heads : {0, 3}) {
    EXPECT_THAT(with("layer_self_attention_num_attention_heads", heads),
                HasSubstr("attention heads of layer_self_attention to divide its 64 numbers"));
  }
  EXPECT_THAT(with("target_layer_inference", 4), AllOf(HasSubstr("0 to 3"), HasSubstr("found 4")));
  EXPECT_THAT(with("target_layer_inference", -1), HasSubstr("found -1"));
  EXPECT_THAT(with("rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}), HasSubstr("rope_scaling"));
  EXPECT_THAT(with("cross_attention_intermediate_size", 57),
              AllOf(HasSubstr("cross_attention.mlp.gate_proj.weight"), HasSubstr("[57, 64]")));
  EXPECT_THAT(refusal([](FakeHead& head) {
                for (const char* part : {"k", "v"})
                  head.tensors["cross_attention.self_attn." + std::string(part) + "_proj.weight"] = {16, 64};
              }),
              HasSubstr("as many key-value heads"));
}

}  // namespace
}  // namespace outrider::moa_network_test
