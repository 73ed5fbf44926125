// SPDX-License-Identifier: Apache-2.0
#include "cli/serving/served_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

namespace outrider {
namespace {

namespace fs = std::filesystem;

const fs::path kModels = OUTRIDER_SOURCE_DIR "/tests/data/models";

class ServedModelsTest : public ::testing::Test {
 protected:
  ServedModelsTest() : folder_(fs::path(testing::TempDir()) / "served_models") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~ServedModelsTest() override { fs::remove_all(folder_); }

  Result<std::vector<ServedEntry>> list(const std::string& text) const {
    std::ofstream(folder_ / "list.yaml") << text;
    return find_served_models((folder_ / "list.yaml").string(), {});
  }

  fs::path folder_;
};

TEST_F(ServedModelsTest, AFolderHasFoldersAndFiles) {
  fs::copy(kModels / "llama", folder_ / "small");
  fs::copy_file(kModels / "llama.gguf", folder_ / "big.gguf");
  fs::create_directories(folder_ / "broken");
  std::ofstream(folder_ / "broken/config.json") << "{}";
  std::ofstream(folder_ / "notes.txt") << "text";
  const auto found = find_served_models(folder_.string(), {});
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ(found->at(0).name, "big");
  EXPECT_EQ(found->at(1).name, "small");
  EXPECT_GT(found->at(1).weight_bytes, 1000);
}

TEST_F(ServedModelsTest, AListSaysNamesAndOptions) {
  const auto found =
      list("models:\n  - model: " + (kModels / "llama").string() +
           "\n    name: chat\n    aliases: [a, b]\n    pinned: true\n    options: {ctx: 64}\n  - model: " +
           (kModels / "qwen2").string() + "\n");
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->size(), 2u);
  const ServedEntry& entry = found->front();
  EXPECT_EQ(entry.name, "chat");
  EXPECT_EQ(entry.aliases, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(entry.is_pinned);
  EXPECT_EQ(entry.options.at("ctx"), "64");
}

TEST_F(ServedModelsTest, ModelsOfTheMachineHaveShortNames) {
  for (const char* file :
       {"Org/Small-GGUF/Small.Q4_0.gguf", "Org/Small-GGUF/Small.Q8_0.gguf", "Other/Big-GGUF/Big.Q8_0.gguf"}) {
    fs::create_directories((folder_ / file).parent_path());
    fs::copy_file(kModels / "llama.gguf", folder_ / file);
  }
  ModelFolders folders;
  folders.outrider = folder_;
  const auto found = find_served_models("all", folders);
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->size(), 3u);
  std::map<std::string, std::vector<std::string>> aliases;
  for (const ServedEntry& entry : *found) aliases[entry.name] = entry.aliases;
  const auto has = [&](const std::string& name, const std::string& alias) {
    const std::vector<std::string>& all = aliases[name];
    return std::find(all.begin(), all.end(), alias) != all.end();
  };
  EXPECT_TRUE(has("Other/Big-GGUF:Q8_0", "Big-GGUF"));
  EXPECT_TRUE(has("Org/Small-GGUF:Q4_0", "Small.Q4_0"));
  EXPECT_TRUE(has("Org/Small-GGUF:Q4_0", "Small-GGUF:Q4_0"));
  EXPECT_FALSE(has("Org/Small-GGUF:Q4_0", "Small-GGUF"));  // it means two
  EXPECT_FALSE(has("Org/Small-GGUF:Q8_0", "Small-GGUF"));
}

TEST_F(ServedModelsTest, WrongListsAreRefusedWithTheirLine) {
  const std::string model = (kModels / "llama").string();
  const std::pair<std::string, std::string> cases[] = {
      {"models: 3\n", "a list \"models\""},
      {"other: []\n", "a list \"models\""},
      {"models: []\n", "no model in"},
      {"models:\n  - name: x\n", "list.yaml:2: expected a member \"model\""},
      {"models:\n  - model: " + model + "\n    colour: red\n", "list.yaml:3: unknown key 'colour'"},
      {"models:\n  - model: " + model + "\n    pinned: maybe\n", "list.yaml:3: expected true or false"},
      {"models:\n  - model: nosuchmodel\n", "nosuchmodel"},
      {"models:\n  - model: " + model + "\n  - model: " + model + "\n", "occurs twice"},
      {"models:\n  - {model: " + model + ", name: a, aliases: [a]}\n", "occurs twice"},
  };
  for (const auto& [text, part] : cases) {
    const auto found = list(text);
    ASSERT_FALSE(found.ok()) << text;
    EXPECT_NE(found.error().message.find(part), std::string::npos) << found.error().message;
  }
  EXPECT_FALSE(find_served_models("/nonexistent", {}).ok());
  EXPECT_FALSE(find_served_models(folder_.string(), {}).ok());
  EXPECT_FALSE(find_served_models("all", {}).ok());
}

}  // namespace
}  // namespace outrider
