// SPDX-License-Identifier: Apache-2.0
#include "cli/serving/unnamed_model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "config/resolve_settings.h"
#include "open/model_names.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

class UnnamedModelTest : public testing::Test {
 protected:
  UnnamedModelTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    folders_.outrider = folder_;
  }
  ~UnnamedModelTest() override { fs::remove_all(folder_); }

  void add(const fs::path& place) const {
    fs::create_directories(place.parent_path());
    fs::copy_file(OUTRIDER_SOURCE_DIR "/tests/data/models/llama.gguf", place);
  }
  Settings chosen(std::map<std::string, std::vector<std::string>, std::less<>> given = {}) const {
    auto settings =
        resolve_settings({.command = Command::kServe, .command_line = std::move(given), .environment = {}});
    EXPECT_TRUE(settings.ok()) << settings.error().message;
    choose_served_models(*settings, folders_);
    return std::move(settings).value();
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / "unnamed_model";
  const fs::path other_ = folder_ / "Org/Other-GGUF/Other.Q8_0.gguf";
  ModelFolders folders_;
};

TEST_F(UnnamedModelTest, WithoutModelsNothingChanges) {
  const Settings settings = chosen();
  EXPECT_TRUE(settings.server.models.empty());
  EXPECT_TRUE(settings.engine.model.empty());
  EXPECT_EQ(one_model_note(settings), "");
}

TEST_F(UnnamedModelTest, TheUsualModelIsServedAsEver) {
  add(default_model_file(folders_));
  const Settings settings = chosen();
  EXPECT_TRUE(settings.server.models.empty());
  EXPECT_TRUE(settings.engine.model.empty());
}

TEST_F(UnnamedModelTest, AnOnlyModelIsServed) {
  add(other_);
  const Settings settings = chosen();
  EXPECT_TRUE(settings.server.models.empty());
  EXPECT_EQ(settings.engine.model, other_);
  EXPECT_EQ(settings.model_name, "Org/Other-GGUF:Q8_0");
}

TEST_F(UnnamedModelTest, SeveralModelsAreServed) {
  add(default_model_file(folders_));
  add(other_);
  EXPECT_EQ(chosen().server.models, "all");
  EXPECT_EQ(chosen({{"batch-folder", {"b"}}}).server.models, "all");
  EXPECT_EQ(chosen({{"port", {"0"}}, {"threads", {"1"}}, {"speculative", {"ngram"}}}).server.models, "all");
}

TEST_F(UnnamedModelTest, OptionsOfOneModelMeanOne) {
  add(default_model_file(folders_));
  add(other_);
  const std::pair<std::string, std::string> cases[] = {
      {"lora", "adapter.gguf"}, {"remote-drafting", "true"}, {"served-model-name", "a"},
      {"slot-folder", "s"},     {"pooling", "rank"},         {"tensor-parallel", "2"},
      {"kv-pages", "80"},       {"lora-folder", "l"},        {"speculative-model", "head"}};
  for (const auto& [option, value] : cases) {
    const Settings settings = chosen({{option, {value}}});
    EXPECT_TRUE(settings.server.models.empty()) << option;
    EXPECT_TRUE(settings.engine.model.empty()) << option;
    EXPECT_EQ(one_model_note(settings), "one model, because of --" + option);
  }
  const Settings drafted = chosen({{"speculative", {"draft_target,speculative_model=x"}}});
  EXPECT_TRUE(drafted.server.models.empty());
  EXPECT_EQ(one_model_note(drafted), "one model, because of --speculative");
}

TEST_F(UnnamedModelTest, ANameDecides) {
  add(default_model_file(folders_));
  add(other_);
  const Settings named = chosen({{"model", {"builtin"}}, {"lora", {"x"}}});
  EXPECT_TRUE(named.server.models.empty());
  EXPECT_EQ(named.engine.model, "builtin");
  EXPECT_EQ(one_model_note(named), "");
  EXPECT_EQ(chosen({{"models", {"list.yaml"}}}).server.models, "list.yaml");
}

TEST_F(UnnamedModelTest, OptionsOfSeveralModelsMeanAll) {
  EXPECT_EQ(chosen({{"idle-unload", {"5"}}}).server.models, "all");
  add(other_);
  EXPECT_EQ(chosen({{"pin-model", {"Other-GGUF"}}}).server.models, "all");
}

}  // namespace
}  // namespace outrider
