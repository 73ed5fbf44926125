// SPDX-License-Identifier: Apache-2.0
#include "hub/remote/choose_files.h"

#include <gtest/gtest.h>

#include <utility>

#include "hub/remote/quant_name.h"

namespace outrider {
namespace {

constexpr int64_t kGB = 1'000'000'000;

HubRepository repository(const std::vector<std::pair<std::string, int64_t>>& files) {
  HubRepository result{.commit = std::string(40, 'a'), .files = {}};
  for (const auto& [path, bytes] : files)
    result.files.push_back(
        {.path = path, .bytes = bytes, .checksum = {ChecksumKind::kSha256, std::string(64, '0')}});
  return result;
}

std::vector<std::string> paths(const FileChoice& choice) {
  std::vector<std::string> result;
  for (const HubFile& file : choice.files) result.push_back(file.path);
  return result;
}

HubRepository many_quants() {
  return repository({{"README.md", 1},
                     {"m-BF16.gguf", 16 * kGB},
                     {"m-Q8_0.gguf", 8 * kGB},
                     {"m-Q4_K_M.gguf", 5 * kGB},
                     {"m-Q2_K.gguf", 3 * kGB},
                     {"mmproj-m-F16.gguf", kGB},
                     {"m.imatrix.gguf", kGB}});
}

TEST(QuantName, AsPeopleNameFiles) {
  EXPECT_EQ(quant_of_file_name("SmolLM2-135M-Instruct.Q4_1.gguf"), "Q4_1");
  EXPECT_EQ(quant_of_file_name("qwen2.5-0.5b-instruct-q4_k_m.gguf"), "Q4_K_M");
  EXPECT_EQ(quant_of_file_name("Q4_K_M/M-Q4_K_M-00001-of-00003.gguf"), "Q4_K_M");
  EXPECT_EQ(quant_of_file_name("M-UD-IQ2_XXS.gguf"), "UD-IQ2_XXS");
  EXPECT_EQ(quant_of_file_name("gpt-oss-20b-MXFP4.gguf"), "MXFP4");
  EXPECT_EQ(quant_of_file_name("model-BF16.gguf"), "BF16");
  EXPECT_EQ(quant_of_file_name("Qwen3-8B.gguf"), "");
  EXPECT_EQ(quant_of_file_name(".gguf"), "");
  EXPECT_EQ(shard_place("a-00002-of-00003.gguf")->index, 2);
  EXPECT_FALSE(shard_place("a-00004-of-00003.gguf").has_value());
  EXPECT_FALSE(shard_place("a-0000x-of-00003.gguf").has_value());
}

TEST(QuantName, SizesForPeople) {
  EXPECT_EQ(size_text(0), "0 kB");
  EXPECT_EQ(size_text(1), "1 kB");
  EXPECT_EQ(size_text(204'160), "204 kB");
  EXPECT_EQ(size_text(98'362'432), "98.4 MB");
  EXPECT_EQ(size_text(5'030'000'000), "5.03 GB");
}

TEST(ChooseGguf, TheQuantThatSuitsTheMemory) {
  const auto chosen = [](int64_t memory) { return choose_gguf(many_quants(), "", memory)->main_file; };
  EXPECT_EQ(chosen(64 * kGB), "m-Q8_0.gguf");
  EXPECT_EQ(chosen(63 * kGB), "m-Q4_K_M.gguf");
  EXPECT_EQ(chosen(8 * kGB), "m-Q4_K_M.gguf");
  EXPECT_EQ(chosen(7 * kGB), "m-Q2_K.gguf");
  const auto none = choose_gguf(many_quants(), "", 4 * kGB);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kResource);
  EXPECT_NE(none.error().message.find("Q2_K (3.00 GB), Q4_K_M (5.00 GB)"), std::string::npos)
      << none.error().message;
}

TEST(ChooseGguf, ByQuantOrFileName) {
  EXPECT_EQ(choose_gguf(many_quants(), "q4_k_m", 1)->main_file, "m-Q4_K_M.gguf");
  EXPECT_EQ(choose_gguf(many_quants(), "m-BF16.gguf", 1)->main_file, "m-BF16.gguf");
  const auto unknown = choose_gguf(many_quants(), "Q5_K_M", 1);
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("found 'Q5_K_M'; there are Q2_K"), std::string::npos)
      << unknown.error().message;
  const HubRepository twice = repository({{"a-Q8_0.gguf", 1}, {"b-Q8_0.gguf", 1}});
  EXPECT_NE(choose_gguf(twice, "Q8_0", 1).error().message.find("names several"), std::string::npos);
  EXPECT_EQ(choose_gguf(twice, "b-Q8_0.gguf", 1)->main_file, "b-Q8_0.gguf");
  EXPECT_FALSE(choose_gguf(repository({{"README.md", 1}}), "", kGB).ok());
}

TEST(ChooseGguf, ShardsInOrderAndOnlyIfAllAreThere) {
  const HubRepository shards = repository({{"Q8/m-Q8_0-00002-of-00002.gguf", 2},
                                           {"Q8/m-Q8_0-00001-of-00002.gguf", 1},
                                           {"m-F16-00001-of-00002.gguf", 1}});
  const auto choice = choose_gguf(shards, "", kGB);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(paths(*choice),
            (std::vector<std::string>{"Q8/m-Q8_0-00001-of-00002.gguf", "Q8/m-Q8_0-00002-of-00002.gguf"}));
  EXPECT_EQ(choice->main_file, "Q8/m-Q8_0-00001-of-00002.gguf");
}

TEST(ChooseFolder, ConfigurationTokenizerAndIndexedWeights) {
  const HubRepository folder = repository({{"README.md", 1},
                                           {"config.json", 1},
                                           {"tokenizer.json", 1},
                                           {"consolidated.safetensors", 9},
                                           {"model-00001-of-00002.safetensors", 5},
                                           {"model-00002-of-00002.safetensors", 5},
                                           {"model.safetensors.index.json", 1},
                                           {"pytorch_model.bin", 9}});
  EXPECT_TRUE(is_model_folder(folder));
  ASSERT_NE(weight_index_of(folder), nullptr);
  const auto choice =
      choose_folder(folder, {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"});
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(paths(*choice), (std::vector<std::string>{
                                "config.json", "tokenizer.json", "model.safetensors.index.json",
                                "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}));
  EXPECT_EQ(choice->main_file, "");
  EXPECT_FALSE(choose_folder(folder, {"../../etc/passwd"}).ok());
}

TEST(ChooseFolder, SafetensorsBeforePickles) {
  const HubRepository both =
      repository({{"config.json", 1}, {"model.safetensors", 1}, {"pytorch_model.bin", 1}});
  EXPECT_EQ(paths(*choose_folder(both, {})), (std::vector<std::string>{"config.json", "model.safetensors"}));
  const HubRepository pickle = repository({{"config.json", 1}, {"pytorch_model.bin", 1}});
  EXPECT_EQ(paths(*choose_folder(pickle, {})),
            (std::vector<std::string>{"config.json", "pytorch_model.bin"}));
  EXPECT_FALSE(is_model_folder(repository({{"config.json", 1}, {"model.gguf", 1}})));
}

}  // namespace
}  // namespace outrider
