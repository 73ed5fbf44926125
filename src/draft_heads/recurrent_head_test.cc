// SPDX-License-Identifier: Apache-2.0
// Agreement of EAGLE, EAGLE-3 and MTP with independent PyTorch versions (tools/head_goldens/recurrent.py),
// and what their checkpoints must hold.
#include "draft_heads/recurrent_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>

#include "draft_heads/eagle.h"
#include "draft_heads/eagle3.h"
#include "draft_heads/mtp/mtp.h"
#include "draft_heads/recurrent_test_data.h"
#include "formats/torch/test_torch.h"
#include "models/model_test_data.h"

namespace outrider::recurrent_head_test {
namespace {

using nlohmann::json;
using namespace std::string_literals;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr double kTolerance = 1e-4;
constexpr int64_t kVocab = 288, kHidden = 64;

Result<std::unique_ptr<RecurrentHead>> load(const fs::path& path, Model* target, const ModelOptions& options,
                                            std::span<const int> captured = {}) {
  OUTRIDER_TRY(const HeadFile head, open_head(path));
  switch (head.method) {
    case Method::kEagle:
      return load_eagle(head, target, options);
    case Method::kEagle3:
    case Method::kPEagle:
      return load_eagle3(head, target, options, captured);
    case Method::kMtp:
      return load_mtp(head, target, options);
    default:
      return input_error("no recurrent head");
  }
}

// Runs a head over a text and a tree, as a drafter does.
class HeadRun {
 public:
  HeadRun(RecurrentHead* head, LayerBackend& backend, int page_size)
      : head_(head),
        backend_(backend),
        cache_(shape_of(*head, page_size), KvOptions(), backend.make_storage(shape_of(*head, page_size))) {
    carried_.assign(static_cast<size_t>(head->state_size()), 0.0f);
  }

  // Tokens of entries that follow; logits after the last.
  std::vector<float> commit(std::span<const TokenId> tokens, const float* features) {
    auto stage = cache_.stage(sequence_, static_cast<int>(tokens.size()));
    KvTransaction& staged = *stage;
    ForwardBatch batch;
    append_chain(batch, sequence_, staged, tokens, LogitsWanted::kLast);
    const PlacedRows inputs(backend_, {features, tokens.size() * static_cast<size_t>(head_->feature_size())});
    const PlacedRows carried(backend_, carried_);
    const auto output =
        head_->forward({.batch = &batch, .cache = &cache_, .inputs = inputs, .carried = carried});
    carried_ = numbers_at(backend_, output.states, std::ssize(carried_));
    std::vector<int> path(tokens.size());
    std::iota(path.begin(), path.end(), 0);
    staged.commit(path, tokens);
    return {output.logits.begin(), output.logits.end()};
  }

  // Logits of `count` places after a token, which is the last one committed so far: [count, vocab].
  std::vector<float> predict(TokenId token, const float* features, int count) {
    const RecurrentHead::MaskedPlace& masked = head_->masked_place();
    std::vector<TokenId> tokens(static_cast<size_t>(count), masked.token.value());
    tokens.front() = token;
    std::vector<float> inputs(features, features + head_->feature_size());
    for (int place = 1; place < count; ++place)
      inputs.insert(inputs.end(), masked.features.begin(), masked.features.end());
    auto staged = cache_.stage(sequence_, count).value();
    ForwardBatch batch;
    append_chain(batch, sequence_, staged, tokens, LogitsWanted::kAll);
    const PlacedRows placed(backend_, inputs);
    const auto output = head_->forward({.batch = &batch, .cache = &cache_, .inputs = placed});
    return {output.logits.begin(), output.logits.end()};
  }

  // Logits after every node of a tree, level by level.
  std::vector<std::vector<float>> grow(const std::vector<int>& parents, const std::vector<TokenId>& tokens) {
    std::vector<std::vector<float>> logits(parents.size());
    std::vector<std::vector<float>> states(parents.size());
    if (parents.empty()) return logits;
    auto stage = cache_.stage(sequence_, static_cast<int>(parents.size()));
    KvTransaction& staged = *stage;
    const int64_t size = head_->state_size();
    size_t begin = 0;
    for (int level = 1; begin < parents.size(); ++level) {
      size_t end = begin;
      std::vector<float> inputs;
      while (end < parents.size() && parents[end] < static_cast<int>(begin)) {
        const auto& state = parents[end] < 0 ? carried_ : states[static_cast<size_t>(parents[end])];
        inputs.insert(inputs.end(), state.begin(), state.end());
        ++end;
      }
      ForwardBatch batch;
      append_tree(batch, sequence_, staged,
                  {std::span(tokens).first(end), std::span(parents).first(end), static_cast<int>(begin)},
                  LogitsWanted::kAll);
      const PlacedRows placed(backend_, inputs);
      const auto output =
          head_->forward({.batch = &batch, .cache = &cache_, .level = level, .inputs = placed});
      for (size_t i = begin; i < end; ++i) {
        const auto row = output.logits.subspan((i - begin) * kVocab, kVocab);
        logits[i].assign(row.begin(), row.end());
        states[i] = numbers_at(backend_, output.states + static_cast<int64_t>(i - begin) * size, size);
      }
      begin = end;
    }
    return logits;
  }

 private:
  static KvShape shape_of(const RecurrentHead& head, int page_size) {
    KvShape shape = head.kv_shape();
    shape.page_size = page_size;
    shape.page_count = 64;
    return shape;
  }

  RecurrentHead* head_;
  LayerBackend& backend_;
  KvCache cache_;
  KvSequence sequence_ = cache_.open({});
  std::vector<float> carried_;
};

void expect_logits(const std::vector<float>& found, const json& expected, int64_t stride) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const float logit = found[i * static_cast<size_t>(stride)];
    if (expected[i].is_null()) {
      ASSERT_EQ(logit, -INFINITY) << i;
    } else {
      ASSERT_NEAR(logit, expected[i].get<double>(), kTolerance) << i;
    }
  }
}

class RecurrentHeadTest : public testing::TestWithParam<std::string> {
 protected:
  TestModel target_{{.name = "llama", .kernels = GetParam(), .weights = DType::kF32}};
  ThreadPool pool_{2};
};

// Entries of the golden's text in chunks of several lengths, then its tree.
void expect_golden(RecurrentHead& head, LayerBackend& backend, const json& golden, int64_t stride) {
  const auto text = golden["text"].get<std::vector<TokenId>>();
  auto features = fake_tensor("features", {std::ssize(text) - 1, head.feature_size()});
  for (float& feature : features) feature *= 5.0f;
  for (const int chunk : {1, 7, 19}) {
    HeadRun run(&head, backend, chunk == 7 ? 1 : 16);
    std::vector<float> root;
    for (size_t begin = 1; begin < text.size(); begin += static_cast<size_t>(chunk)) {
      const auto tokens = std::span(text).subspan(begin, std::min<size_t>(chunk, text.size() - begin));
      root = run.commit(tokens, features.data() + static_cast<int64_t>(begin - 1) * head.feature_size());
    }
    ASSERT_NO_FATAL_FAILURE(expect_logits(root, golden["logits"][0], stride));
    const auto nodes = run.grow(golden["parents"], golden["tokens"]);
    for (size_t i = 0; i < nodes.size(); ++i)
      ASSERT_NO_FATAL_FAILURE(expect_logits(nodes[i], golden["logits"][i + 1], stride));
  }
}

TEST_P(RecurrentHeadTest, AgreesWithPyTorch) {
  const json goldens = read_head_goldens();
  const auto kernels = select_kernels(GetParam());
  ASSERT_TRUE(kernels.ok());
  for (const json& golden : goldens["cases"]) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    FakeHead made;
    fill_head(made, golden);
    const auto head =
        load(made.write(), &*target_, {.kernels = *kernels, .pool = &pool_, .weights = DType::kF32});
    ASSERT_TRUE(head.ok()) << head.error().message;
    ASSERT_NO_FATAL_FAILURE(expect_golden(**head, target_->backend(), golden, goldens["stride"]));
  }
}

TEST_P(RecurrentHeadTest, ModulesOfFamiliesAgreeWithTransformers) {
  const json goldens = read_head_goldens("family_modules.json");
  const auto kernels = select_kernels(GetParam());
  ASSERT_TRUE(kernels.ok());
  for (const json& golden : goldens["cases"]) {
    const auto name = golden["name"].get<std::string>();
    SCOPED_TRACE(name);
    FakeHead made;
    fill_head(made, golden);
    TestModel target({.name = golden.value("target", name), .kernels = GetParam(), .weights = DType::kF32});
    const auto head =
        load(made.write(), &*target, {.kernels = *kernels, .pool = &pool_, .weights = DType::kF32});
    ASSERT_TRUE(head.ok()) << head.error().message;
    ASSERT_NO_FATAL_FAILURE(expect_golden(**head, target->backend(), golden, goldens["stride"]));
  }
}

TEST_P(RecurrentHeadTest, ModulesInGgufFilesAreThoseOfDirectories) {
  const json goldens = read_head_goldens("family_modules.json");
  const auto kernels = select_kernels(GetParam());
  ASSERT_TRUE(kernels.ok());
  for (const char* name : {"glm4_moe", "glm4_moe_lite", "qwen3_next"}) {
    SCOPED_TRACE(name);
    const fs::path file = fs::path(OUTRIDER_SOURCE_DIR "/tests/data/heads") / (name + "_module.gguf"s);
    for (const std::string& target_name : {std::string(name), name + ".gguf"s}) {
      TestModel target({.name = target_name, .kernels = GetParam(), .weights = DType::kF32});
      const auto head = load(file, &*target, {.kernels = *kernels, .pool = &pool_, .weights = DType::kF32});
      ASSERT_TRUE(head.ok()) << head.error().message;
      ASSERT_NO_FATAL_FAILURE(
          expect_golden(**head, target->backend(), golden_named(goldens, name), goldens["stride"]));
    }
    const auto alone = open_head_or_files(file);
    ASSERT_TRUE(alone.ok() && alone->head);
    EXPECT_EQ(alone->head->method, Method::kMtp);
  }
}

TEST_P(RecurrentHeadTest, MaskedPlacesAgreeWithPyTorch) {
  const json golden = head_golden("peagle");
  const int64_t stride = read_head_goldens()["stride"];
  FakeHead made;
  fill_head(made, golden);
  const auto head = load(made.write(), &*target_,
                         {.kernels = *select_kernels(GetParam()), .pool = &pool_, .weights = DType::kF32});
  ASSERT_TRUE(head.ok()) << head.error().message;
  const auto text = golden["text"].get<std::vector<TokenId>>();
  auto features = fake_tensor("features", {std::ssize(text) - 1, (*head)->feature_size()});
  for (float& feature : features) feature *= 5.0f;
  HeadRun run(head->get(), target_->backend(), 4);
  run.commit(std::span(text).subspan(1, text.size() - 2), features.data());
  const float* last = features.data() + (std::ssize(text) - 2) * (*head)->feature_size();
  const auto count = static_cast<int>(golden["masked"].size());
  const std::vector<float> logits = run.predict(text.back(), last, count);
  for (int place = 0; place < count; ++place) {
    const auto row = logits.begin() + place * kVocab;
    expect_logits({row, row + kVocab}, golden["masked"][static_cast<size_t>(place)], stride);
  }
}

// The logits of a head in 8 bits equal the logits of a head of the same numbers, bit by bit.
TEST_P(RecurrentHeadTest, MatricesMayBeStoredInEightBits) {
  const json goldens = read_head_goldens();
  for (const json& golden : goldens["cases"]) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    const auto logits = [&](FakeHead::Matrices matrices) {
      FakeHead made;
      fill_head(made, golden);
      made.matrices = matrices;
      const auto head =
          load(made.write(), &*target_,
               {.kernels = *select_kernels(GetParam()), .pool = &pool_, .weights = DType::kF32});
      EXPECT_TRUE(head.ok()) << head.error().message;
      const std::vector<TokenId> tokens = {5, 17, 40};
      const auto features = fake_tensor("features", {3, (*head)->feature_size()});
      return HeadRun(head->get(), target_->backend(), 16).commit(tokens, features.data());
    };
    const std::vector<float> stored = logits(FakeHead::Matrices::kBytes);
    EXPECT_EQ(stored, logits(FakeHead::Matrices::kRounded));
    EXPECT_NE(stored, logits(FakeHead::Matrices::kPlain));
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, RecurrentHeadTest, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto name : available_kernels()) names.emplace_back(name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

// Reasons for which a checkpoint is refused. Each line changes one that loads.
class RecurrentHeadFile : public testing::Test {
 protected:
  std::string refusal(const FakeHead& made, std::span<const int> captured = {}) {
    const auto head =
        load(made.write(), &*target_,
             {.kernels = *select_kernels("reference"), .pool = &pool_, .weights = std::nullopt}, captured);
    return head.ok() ? "" : head.error().message;
  }
  template <typename Change>
  std::string refusal_of(const std::string& name, Change&& change) {
    FakeHead made;
    fill_head(made, head_golden(name));
    change(made);
    return refusal(made);
  }

  TestModel target_{{.name = "llama"}};
  ThreadPool pool_{1};
};

TEST_F(RecurrentHeadFile, EveryTensorOfEveryLayoutIsNeeded) {
  const json goldens = read_head_goldens();
  for (const json& golden : goldens["cases"]) {
    FakeHead whole;
    fill_head(whole, golden);
    ASSERT_EQ(refusal(whole), "") << golden["name"];
    for (const auto& [name, shape] : whole.tensors) {
      if (name == "embed_tokens.weight" || name == "mask_hidden") continue;
      FakeHead made;
      fill_head(made, golden);
      made.tensors.erase(name);
      const bool shows_kind = name == "fc.weight" || name.ends_with("hidden_norm.weight") ||
                              name.ends_with("eh_proj.weight") || name == "mtp.fc.weight" ||
                              name == "layers.0.self_attn.q_proj.weight";
      if (!shows_kind && !name.ends_with(".bias") && !name.ends_with("q_norm.weight")) {
        EXPECT_THAT(refusal(made), HasSubstr("tensor " + name)) << golden["name"];
      } else if (!name.ends_with("fc.bias")) {
        EXPECT_NE(refusal(made), "") << golden["name"] << " " << name;
      }
      made.tensors[name] = shape;
      made.tensors[name].back() += 1;
      EXPECT_THAT(refusal(made), AllOf(HasSubstr("tensor " + name), HasSubstr("expected the shape")))
          << golden["name"];
    }
    whole.tensors["extra.weight"] = {3};
    EXPECT_THAT(refusal(whole), HasSubstr("tensor extra.weight does not belong")) << golden["name"];
  }
}

TEST_F(RecurrentHeadFile, QuantizedMatricesAreChecked) {
  const json goldens = read_head_goldens();
  for (const json& golden : goldens["cases"]) {
    FakeHead made;
    fill_head(made, golden);
    made.matrices = FakeHead::Matrices::kBytes;
    ASSERT_EQ(refusal(made), "") << golden["name"];
    made.config["quantization_config"] = {{"quant_method", "bitsandbytes"}};
    made.matrices = FakeHead::Matrices::kPlain;
    EXPECT_THAT(refusal(made), HasSubstr("bitsandbytes")) << golden["name"];
  }
  EXPECT_THAT(refusal_of("eagle3", [](FakeHead& made) { made.integers["fc.weight_scale"] = {1}; }),
              HasSubstr("fc.weight_scale does not belong"));
}

TEST_F(RecurrentHeadFile, VocabularyMapsAreChecked) {
  const auto with = [&](auto&& change) { return refusal_of("eagle3", change); };
  EXPECT_EQ(with([](FakeHead&) {}), "");
  EXPECT_EQ(with([](FakeHead& made) { made.flags.clear(); }), "");
  EXPECT_THAT(with([](FakeHead& made) { made.integers.clear(); }), HasSubstr("tensor d2t"));
  EXPECT_THAT(with([](FakeHead& made) { made.integers["d2t"].back() = kVocab; }), HasSubstr("tensor d2t"));
  EXPECT_THAT(with([](FakeHead& made) { made.integers["d2t"].front() = -1; }), HasSubstr("at 0"));
  EXPECT_THAT(with([](FakeHead& made) { made.integers["d2t"][30] = -29; }), HasSubstr("rising"));
  EXPECT_THAT(with([](FakeHead& made) { made.integers["d2t"].pop_back(); }),
              AllOf(HasSubstr("tensor d2t"), HasSubstr("expected the shape")));
  EXPECT_THAT(with([](FakeHead& made) { made.flags["t2d"][3] = 0; }), HasSubstr("token 3"));
  EXPECT_THAT(with([](FakeHead& made) { made.config["draft_vocab_size"] = 95; }), HasSubstr("lm_head"));
}

TEST_F(RecurrentHeadFile, MaskedPlacesNeedATokenAndFeatures) {
  const auto with = [&](auto&& change) { return refusal_of("peagle", change); };
  EXPECT_EQ(with([](FakeHead&) {}), "");
  EXPECT_EQ(with([](FakeHead& made) { made.tensors["mask_hidden"] = {1, 3 * kHidden}; }), "");
  EXPECT_THAT(with([](FakeHead& made) {
                made.tensors["mask_hidden"] = {1, 1, 2 * kHidden};
              }),
              AllOf(HasSubstr("tensor mask_hidden"), HasSubstr("expected the shape [1, 1, 192]")));
  EXPECT_THAT(with([](FakeHead& made) { made.config.erase("ptd_token_id"); }),
              AllOf(HasSubstr("ptd_token_id"), HasSubstr("found none")));
  EXPECT_THAT(with([](FakeHead& made) { made.config["ptd_token_id"] = kVocab; }), HasSubstr("found 288"));
  EXPECT_EQ(with([](FakeHead& made) {
              made.config.erase("ptd_token_id");
              made.config["mask_token_id"] = 4;
            }),
            "");
}

// The bytes of a checkpoint of torch.save(), as SafeAILab publishes them.
std::string torch_checkpoint(const FakeHead& made) {
  std::vector<TorchTensor> tensors;
  for (const auto& [name, shape] : made.tensors)
    tensors.push_back({name, "FloatStorage", shape, storage_bytes(fake_tensor(name, shape))});
  for (const auto& [name, numbers] : made.integers)
    tensors.push_back({name, "LongStorage", {std::ssize(numbers)}, storage_bytes(numbers)});
  for (const auto& [name, flags] : made.flags)
    tensors.push_back({name, "BoolStorage", {std::ssize(flags)}, storage_bytes(flags)});
  return torch_file_of(tensors);
}

TEST_F(RecurrentHeadFile, CheckpointsOfTorchGiveTheSameLogits) {
  const json goldens = read_head_goldens();
  for (const char* name : {"eagle3", "eagle3_speculators", "peagle"}) {
    SCOPED_TRACE(name);
    const json golden = head_golden(name);
    FakeHead made;
    fill_head(made, golden);
    const fs::path path = made.write();
    fs::remove(path / "model.safetensors");
    std::ofstream(path / "pytorch_model.bin", std::ios::binary) << torch_checkpoint(made);
    TestModel target({.name = "llama", .kernels = "reference", .weights = DType::kF32});
    const auto head =
        load(path, &*target, {.kernels = *select_kernels("reference"), .pool = &pool_, .weights = {}});
    ASSERT_TRUE(head.ok()) << head.error().message;
    const auto text = golden["text"].get<std::vector<TokenId>>();
    auto features = fake_tensor("features", {std::ssize(text) - 1, (*head)->feature_size()});
    for (float& feature : features) feature *= 5.0f;
    HeadRun run(head->get(), target->backend(), 16);
    expect_logits(run.commit(std::span(text).subspan(1), features.data()), golden["logits"][0],
                  goldens["stride"]);
  }
}

// A captured layer is one with an output that is read, which is the input of the next.
TEST_F(RecurrentHeadFile, CapturedLayersComeBeforeThoseOfTheConfig) {
  FakeHead made;
  fill_head(made, head_golden("eagle3_speculators"));
  made.config["eagle_aux_hidden_state_layer_ids"] = json{2, 1};
  EXPECT_EQ(refusal(made, std::vector<int>{0, 1}), "");
  EXPECT_THAT(refusal(made, std::vector<int>{1, 2}),
              AllOf(HasSubstr("eagle3_layers_to_capture"), HasSubstr("[2, 3]")));
}

TEST_F(RecurrentHeadFile, ListsOfLayersAreChecked) {
  const auto with = [&](const json& list) {
    return refusal_of("eagle3_speculators",
                      [&](FakeHead& made) { made.config["eagle_aux_hidden_state_layer_ids"] = list; });
  };
  EXPECT_EQ(with({0, 2}), "");
  EXPECT_THAT(with({1, 3}), AllOf(HasSubstr("eagle_aux_hidden_state_layer_ids"), HasSubstr("[1, 3]")));
  EXPECT_THAT(with({2, 1}), HasSubstr("rising"));
  EXPECT_THAT(with({1, 1}), HasSubstr("rising"));
  EXPECT_THAT(with(json::array()), HasSubstr("eagle_aux_hidden_state_layer_ids"));
  EXPECT_THAT(with({"1", "2"}), HasSubstr("expected integers"));
  EXPECT_THAT(with({0, 1, 2}), HasSubstr("tensor fc.weight"));
  // The paper's three layers do not fit a target of two.
  EXPECT_THAT(refusal_of("eagle3", [](FakeHead& made) { made.config.erase("eagle_config"); }),
              HasSubstr("by default"));
}

TEST_F(RecurrentHeadFile, HeadsOfOtherTargetsAndUnknownVariantsAreRefused) {
  EXPECT_THAT(refusal_of("eagle", [](FakeHead& made) { made.config["hidden_size"] = 128; }),
              HasSubstr("hidden_size 128, the target 64"));
  EXPECT_THAT(refusal_of("mtp", [](FakeHead& made) { made.config["vocab_size"] = 289; }),
              HasSubstr("vocab_size 289"));
  EXPECT_THAT(refusal_of("mtp", [](FakeHead& made) { made.config["num_nextn_predict_layers"] = 2; }),
              HasSubstr("tensor model.layers.3."));
  EXPECT_THAT(refusal_of("mtp_qwen", [](FakeHead& made) { made.config["mtp_num_hidden_layers"] = 2; }),
              HasSubstr("mtp_num_hidden_layers"));
  // Heads rotate a part of their numbers as targets do.
  EXPECT_EQ(refusal_of("mtp_qwen", [](FakeHead& made) { made.config["partial_rotary_factor"] = 0.25; }), "");
  EXPECT_THAT(refusal_of("mtp_qwen", [](FakeHead& made) { made.config["attn_output_gate"] = true; }),
              HasSubstr("attn_output_gate"));
  EXPECT_THAT(refusal_of("eagle3_one_tap", [](FakeHead& made) { made.config["fc_norm"] = true; }),
              HasSubstr("found both"));
}

TEST_F(RecurrentHeadFile, EveryTensorOfAFamilysModuleIsNeeded) {
  const json goldens = read_head_goldens("family_modules.json");
  for (const json& golden : goldens["cases"]) {
    const auto name = golden["name"].get<std::string>();
    SCOPED_TRACE(name);
    TestModel target({.name = golden.value("target", name)});
    const auto refusal_after = [&](auto&& change) {
      FakeHead made;
      fill_head(made, golden);
      change(made);
      const auto head =
          load(made.write(), &*target,
               {.kernels = *select_kernels("reference"), .pool = &pool_, .weights = std::nullopt}, {});
      return head.ok() ? "" : head.error().message;
    };
    EXPECT_EQ(refusal_after([](FakeHead&) {}), "");
    for (const auto& item : golden["shapes"].items()) {
      const std::string& tensor = item.key();
      EXPECT_NE(refusal_after([&](FakeHead& made) { made.tensors.erase(tensor); }), "") << tensor;
      EXPECT_NE(refusal_after([&](FakeHead& made) { made.tensors[tensor].back() += 1; }), "") << tensor;
    }
    const auto layers = std::to_string(target->config().layer_count);
    const std::string prefix = name.starts_with("qwen") ? "mtp." : "model.layers." + layers + ".";
    EXPECT_THAT(refusal_after([&](FakeHead& made) { made.tensors[prefix + "extra.weight"] = {3}; }),
                HasSubstr(prefix + "extra.weight does not belong"));
    EXPECT_EQ(refusal_after([](FakeHead& made) { made.tensors["model.embed_tokens.weight"] = {3}; }), "");
    EXPECT_THAT(refusal_after([](FakeHead& made) {
                  made.config = {{"num_nextn_predict_layers", 4}};
                }),
                HasSubstr(name.starts_with("qwen") ? "expected 1 to 1 modules" : "is missing"));
  }
}

TEST_F(RecurrentHeadFile, AModelWithModulesOfItsOwnIsNoHead) {
  for (const char* name : {"model.embed_tokens.weight", "model.language_model.embed_tokens.weight"}) {
    FakeHead made;
    fill_head(made, head_golden("mtp_qwen"));
    EXPECT_TRUE(open_head_or_files(made.write())->head);
    made.tensors[name] = {kVocab, 64};
    EXPECT_FALSE(open_head_or_files(made.write())->head) << name;
  }
}

// The size of its MLP is the drafter's own affair.
TEST_F(RecurrentHeadFile, TheMlpsSizeIsThatOfTheDraftersConfig) {
  for (const char* name : {"eagle", "eagle3", "mtp", "mtp_qwen"}) {
    constexpr int64_t kSize = 40;
    ASSERT_NE(target_->config().ffn_size, kSize);
    const auto with = [&](int64_t stated) {
      return refusal_of(name, [&](FakeHead& made) {
        made.config["intermediate_size"] = stated;
        for (auto& [tensor, shape] : made.tensors) {
          if (tensor.find("mlp.down_proj") != std::string::npos) shape[1] = kSize;
          if (tensor.find("mlp.gate_proj") != std::string::npos) shape[0] = kSize;
          if (tensor.find("mlp.up_proj") != std::string::npos) shape[0] = kSize;
        }
      });
    };
    EXPECT_EQ(with(kSize), "") << name;
    EXPECT_THAT(with(kSize + 8), HasSubstr("expected the shape")) << name;
  }
}

// Modules may lie among the target's own tensors; whatever else a module has is still refused.
TEST_F(RecurrentHeadFile, ModulesMayLieInTheTargetsCheckpoint) {
  for (const char* name : {"mtp", "mtp_qwen"}) {
    const auto with = [&](const std::string& tensor) {
      return refusal_of(name, [&](FakeHead& made) { made.tensors[tensor] = {4, 4}; });
    };
    EXPECT_EQ(with("model.layers.1.self_attn.q_proj.weight"), "") << name;
    EXPECT_EQ(with("model.embed_tokens.weight"), "") << name;
    EXPECT_EQ(with("lm_head.weight"), "") << name;
  }
  EXPECT_THAT(refusal_of("mtp", [](FakeHead& made) { made.tensors["model.layers.2.mlp.gate.weight"] = {4}; }),
              HasSubstr("tensor model.layers.2.mlp.gate.weight"));
  EXPECT_THAT(refusal_of("mtp", [](FakeHead& made) { made.tensors["model.layers.3.enorm.weight"] = {64}; }),
              HasSubstr("tensor model.layers.3.enorm.weight"));
  EXPECT_EQ(refusal_of("mtp",
                       [](FakeHead& made) {
                         made.tensors["model.layers.2.embed_tokens.weight"] = {kVocab, kHidden};
                         made.tensors["model.layers.2.shared_head.head.weight"] = {kVocab, kHidden};
                       }),
            "");
}

}  // namespace
}  // namespace outrider::recurrent_head_test
