// SPDX-License-Identifier: Apache-2.0
#include "open/drafters/drafter_search.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "draft_heads/fake_head.h"
#include "draft_heads/head_file.h"
#include "formats/model_file.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

const fs::path kTests = OUTRIDER_SOURCE_DIR "/tests/data/models/llama";
const fs::path kModels = OUTRIDER_SOURCE_DIR "/models";

// A folder with a target, and a user who has no cache.
class OwnDrafter : public ::testing::Test {
 protected:
  OwnDrafter() : folder_(fs::temp_directory_path() / ("outrider_own_drafter_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    target_ = copy(kTests, "beside/target");
  }
  ~OwnDrafter() override { fs::remove_all(folder_); }

  fs::path copy(const fs::path& model, const std::string& name) const {
    fs::create_directories((folder_ / name).parent_path());
    fs::copy(model, folder_ / name, fs::copy_options::recursive);
    return folder_ / name;
  }

  // A Medusa head that fits the target by its shapes.
  fs::path add_head(const std::string& name, const nlohmann::json& config, int64_t hidden = 64) const {
    FakeHead head;
    head.config = config;
    head.tensors["0.0.linear.weight"] = {hidden, hidden};
    head.tensors["0.0.linear.bias"] = {hidden};
    head.tensors["0.1.weight"] = {288, hidden};
    fs::create_directories((folder_ / name).parent_path());
    fs::rename(head.write(), folder_ / name);
    return folder_ / name;
  }

  // Gives the model another fingerprint.
  static void change_norms(const fs::path& model) {
    const auto file = open_model(model);
    const auto place = file->tensors.at("model.norm.weight").data - file->files.front()->bytes().data();
    std::fstream(model / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary)
        .seekp(place)
        .write("\0\0", 2);
  }

  fs::path found() const {
    const DrafterSearch search = find_drafters(*open_model(target_));
    return search.found.empty() ? "none" : search.found.front().path;
  }
  std::string fingerprint() const { return target_fingerprint(*open_model(target_)); }

  fs::path folder_, target_;
};

// Others may write to it.
TEST_F(OwnDrafter, IsNotLookedForInTheCurrentDirectory) {
  add_head("models/planted", {{"outrider_target", fingerprint()}});
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  EXPECT_EQ(found(), "none");
  fs::current_path(before);
}

TEST_F(OwnDrafter, IsAHeadThatNamesTheTarget) {
  EXPECT_EQ(found(), "none");
  add_head("beside/wrong-size", nlohmann::json::object(), 32);
  add_head("beside/wrong-target", {{"outrider_target", "0123456789abcdef"}});
  EXPECT_EQ(found(), "none");
  const fs::path nameless = add_head("beside/nameless", nlohmann::json::object());
  EXPECT_EQ(found(), nameless);
  const fs::path weak =
      add_head("beside/weak", {{"outrider_target", fingerprint()}, {"outrider_agreement", 0.3}});
  EXPECT_EQ(found(), weak);
  const fs::path strong = add_head("cache/outrider/models/org/strong",
                                   {{"outrider_target", fingerprint()}, {"outrider_agreement", 0.5}});
  EXPECT_EQ(found(), strong);
}

TEST_F(OwnDrafter, OfAMethodIsFoundElsewhere) {
  const auto named = [&](double agreement) {
    return nlohmann::json{{"outrider_target", fingerprint()}, {"outrider_agreement", agreement}};
  };
  const auto found_for = [&](Method method) {
    const auto head = find_trained_head(*open_model(target_), method);
    return head ? head->path : fs::path("none");
  };
  add_head("cache/outrider/models/org/nameless", nlohmann::json::object());
  EXPECT_EQ(found_for(Method::kMedusa), "none");
  add_head("cache/outrider/models/org/weak", named(0.3));
  const fs::path strong = add_head("cache/outrider/models/org/strong", named(0.5));
  EXPECT_EQ(found_for(Method::kMedusa), strong);
  EXPECT_EQ(found_for(Method::kEagle3), "none");
  target_ = copy(kModels / "outrider-small", "target");
  EXPECT_EQ(found_for(Method::kEagle3), kModels / "outrider-eagle3");
}

// Files elsewhere may be anybody's.
TEST_F(OwnDrafter, ElsewhereAHeadMustNameTheTarget) {
  add_head("cache/outrider/models/org/nameless", nlohmann::json::object());
  EXPECT_EQ(found(), "none");
}

TEST_F(OwnDrafter, IsElseTheSmallestDraftWithItsVocabulary) {
  target_ = copy(kModels / "outrider-small", "target");
  change_norms(target_);  // a model that nobody trained a head for
  EXPECT_EQ(found(), "none");
  copy(kTests, "another-vocabulary");
  copy(kModels / "outrider-draft", "too-large");
  EXPECT_EQ(found(), "none");
  const fs::path cached = copy(kModels / "outrider-draft-b", "cache/outrider/models/org/draft");
  EXPECT_EQ(found(), cached);
}

TEST_F(OwnDrafter, ComesWithTheProgram) {
  target_ = copy(kModels / "outrider-small", "target");
  EXPECT_EQ(found().parent_path(), kModels);
}

}  // namespace
}  // namespace outrider
