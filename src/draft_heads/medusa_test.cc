// SPDX-License-Identifier: Apache-2.0
// Agreement with an independent PyTorch version (tools/head_goldens/medusa.py), and the published layouts.
#include "draft_heads/medusa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "draft_heads/fake_head.h"
#include "formats/torch/test_torch.h"
#include "models/model_test_data.h"

namespace outrider::medusa_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr double kTolerance = 1e-4;
constexpr int64_t kHidden = 64, kVocab = 288;

void make_medusa(FakeHead& head, int heads, int blocks, const std::string& prefix = "") {
  head.config = {{"medusa_num_heads", heads}, {"medusa_num_layers", blocks}};
  for (int k = 0; k < heads; ++k) {
    const std::string name = prefix + std::to_string(k) + ".";
    for (int block = 0; block < blocks; ++block) {
      head.tensors[name + std::to_string(block) + ".linear.weight"] = {kHidden, kHidden};
      head.tensors[name + std::to_string(block) + ".linear.bias"] = {kHidden};
    }
    head.tensors[name + std::to_string(blocks) + ".weight"] = {kVocab, kHidden};
  }
}

ModelConfig target_config(int64_t hidden = kHidden, int64_t vocab = kVocab) {
  ModelConfig config;
  config.hidden_size = hidden;
  config.vocab_size = vocab;
  return config;
}

class Medusa : public testing::Test {
 protected:
  Result<std::unique_ptr<MedusaHeads>> load(const fs::path& path, std::string_view kernels = "reference",
                                            std::optional<DType> weights = DType::kF32,
                                            const ModelConfig& target = target_config()) {
    OUTRIDER_TRY(const HeadFile head, open_head(path));
    EXPECT_EQ(head.method, Method::kMedusa);
    OUTRIDER_TRY(const KernelTable* table, select_kernels(kernels));
    const ModelOptions options{.kernels = table, .pool = &pool_, .weights = weights};
    backend_ = bare_backend(options);
    return MedusaHeads::load(head, target, *backend_, options);
  }
  std::string refusal(const FakeHead& made, const ModelConfig& target = target_config()) {
    const auto loaded = load(made.write(), "reference", DType::kF32, target);
    return loaded.ok() ? "" : loaded.error().message;
  }

  ThreadPool pool_{2};
  std::unique_ptr<LayerBackend> backend_;  // of the heads loaded last
};

TEST_F(Medusa, AgreesWithPyTorch) {
  std::ifstream stream(OUTRIDER_SOURCE_DIR "/tests/data/heads/medusa.json");
  const auto golden = nlohmann::json::parse(stream);
  const std::vector<float> states = fake_tensor("states", {golden["rows"], kHidden});
  for (const auto& one : golden["cases"]) {
    FakeHead made;
    make_medusa(made, golden["heads"], one["blocks"]);
    std::vector<std::string> names;
    for (const auto& [name, shape] : made.tensors) names.push_back(name);
    EXPECT_EQ(names, one["names"].get<std::vector<std::string>>());
    for (const std::string_view kernels : available_kernels()) {
      const auto heads = load(made.write(), kernels);
      ASSERT_TRUE(heads.ok()) << heads.error().message;
      const auto all = one["logits"].get<std::vector<double>>();
      auto expected = all.begin();
      const size_t rows = golden["rows"];
      (*heads)->start(PlacedRows(*backend_, states), golden["rows"]);
      for (int64_t k = 0; k < golden["heads"]; ++k) {
        const auto logits = (*heads)->logits(k);
        for (size_t row = 0; row < rows; ++row) {
          for (size_t i = 0; i < kVocab; i += 9) {
            ASSERT_NEAR(logits[row * kVocab + i], *expected++, kTolerance) << kernels << " head " << k;
          }
        }
      }
      EXPECT_EQ(expected, all.end());
    }
  }
}

// A row's logits do not depend on the others, whatever the weights are held in.
TEST_F(Medusa, RowsKeepTheirBitsInEveryBatch) {
  FakeHead made;
  make_medusa(made, 2, 2);
  const std::vector<float> states = fake_tensor("states", {5, kHidden});
  for (const DType weights : {DType::kF32, DType::kBF16, DType::kQ8_0, DType::kI8, DType::kQ4_0}) {
    for (const std::string_view kernels : available_kernels()) {
      const auto heads = load(made.write(), kernels, weights);
      ASSERT_TRUE(heads.ok()) << heads.error().message;
      const PlacedRows placed(*backend_, states);
      (*heads)->start(placed, 5);
      (*heads)->logits(0);
      const auto batched = (*heads)->logits(1);
      const std::vector<float> together(batched.begin(), batched.end());
      for (size_t row = 0; row < 5; ++row) {
        (*heads)->start(placed + static_cast<int64_t>(row) * kHidden, 1);
        const auto alone = (*heads)->logits(1);
        ASSERT_TRUE(std::ranges::equal(alone, std::span(together).subspan(row * kVocab, kVocab)))
            << kernels << " " << dtype_name(weights) << " row " << row;
      }
    }
  }
}

TEST_F(Medusa, PublishedLayoutsLoad) {
  FakeHead plain, merged;
  make_medusa(plain, 2, 1);
  make_medusa(merged, 2, 1, "medusa_head.");
  merged.tensors["model.norm.weight"] = {kHidden};  // the target's, beside the heads
  merged.tensors["lm_head.weight"] = {kVocab, kHidden};
  EXPECT_EQ(refusal(plain), "");
  EXPECT_EQ(refusal(merged), "");
  const fs::path path = plain.write();
  fs::rename(path / "model.safetensors", path / "medusa_lm_head.safetensors");
  EXPECT_TRUE(load(path).ok());
  fs::remove(path / "medusa_lm_head.safetensors");
  for (const char* name : {"medusa_lm_head.pt", "pytorch_model.bin"}) {
    std::ofstream(path / name, std::ios::binary) << torch_file_of(plain.tensors, fake_tensor);
    EXPECT_TRUE(load(path).ok()) << name;
    std::ofstream(path / name) << "none";
    EXPECT_THAT(load(path).error().message, HasSubstr("expected a checkpoint of torch.save()")) << name;
    fs::remove(path / name);
  }
}

TEST_F(Medusa, OtherLayoutsAreRefusedByName) {
  const auto refused = [&](const auto& change, const ModelConfig& target = target_config()) {
    FakeHead made;
    make_medusa(made, 3, 2);
    change(made);
    return refusal(made, target);
  };
  const auto as_they_are = [](FakeHead&) {};
  EXPECT_EQ(refused(as_they_are), "");
  EXPECT_THAT(refused([](auto& made) { made.tensors.erase("1.1.linear.bias"); }),
              HasSubstr("tensor 1.1.linear.bias of a Medusa drafter is missing"));
  EXPECT_THAT(refused([](auto& made) {
                made.tensors["2.2.weight"] = {kVocab, 32};
              }),
              AllOf(HasSubstr("2.2.weight"), HasSubstr("[288, 64]"), HasSubstr("[288, 32]")));
  EXPECT_THAT(refused([](auto& made) {
                made.tensors["2.3.weight"] = {kVocab, kHidden};
              }),
              HasSubstr("2.3.weight does not belong"));
  EXPECT_THAT(refused([](auto& made) { made.tensors["model.norm.weight"] = {kHidden}; }),
              HasSubstr("model.norm.weight does not belong"));
  EXPECT_THAT(refused([](auto& made) { made.config["medusa_num_heads"] = 5; }),
              AllOf(HasSubstr("medusa_num_heads 5"), HasSubstr("make 3")));
  EXPECT_THAT(refused([](auto& made) { made.config["medusa_num_layers"] = 1; }),
              AllOf(HasSubstr("medusa_num_layers 1"), HasSubstr("make 2")));
  EXPECT_THAT(refused(as_they_are, target_config(128)), AllOf(HasSubstr("size 64"), HasSubstr("size 128")));
  EXPECT_THAT(refused(as_they_are, target_config(kHidden, 300)),
              AllOf(HasSubstr("288 tokens"), HasSubstr("300 tokens")));
}

TEST_F(Medusa, TheTreeComesFromTheConfig) {
  FakeHead made;
  make_medusa(made, 2, 1);
  const auto tree = [&](size_t nodes) { return *medusa_tree(*open_head(made.write()), nodes); };
  EXPECT_EQ(depth_of(tree(4)), 2);  // as published, but for what two heads cannot draft
  EXPECT_EQ(tree(4).size(), 38u);
  made.config["medusa_accuracies"] = {{0.5, 0.25}, {0.4, 0.1}};
  EXPECT_THAT(tree(4), ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(0, 0), ElementsAre(1, 0)));
  made.config["medusa_choices"] = {{0}, {1}};
  EXPECT_THAT(tree(4), ElementsAre(ElementsAre(0), ElementsAre(1)));
  made.config["medusa_choices"] = {{1}};
  EXPECT_THAT(medusa_tree(*open_head(made.write()), 4).error().message, HasSubstr("[1] without [0]"));
  made.config["medusa_choices"] = {{0.5}};
  EXPECT_THAT(medusa_tree(*open_head(made.write()), 4).error().message, HasSubstr("medusa_choices"));
}

}  // namespace
}  // namespace outrider::medusa_test
