// SPDX-License-Identifier: Apache-2.0
// A draft model with a ranking temperature in its config grows the trees of that temperature, and the output
// does not change.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/lossless/lossless.h"
#include "tests/lossless/test_heads.h"
#include "tests/support/tree_recorder.h"

namespace outrider::ranking_temperature_test {
namespace {

namespace fs = std::filesystem;

// A copy of a draft model with one more key in its config, removed at the end of the test.
class SharpDraft {
 public:
  explicit SharpDraft(const fs::path& draft)
      : path_(fs::temp_directory_path() / ("outrider_sharp_draft_" + std::to_string(::getpid()))) {
    fs::copy(draft, path_);
    nlohmann::json config = nlohmann::json::parse(std::ifstream(path_ / "config.json"));
    config["outrider_ranking_temperature"] = 0.2;
    std::ofstream(path_ / "config.json") << config.dump();
  }
  ~SharpDraft() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  SharpDraft(const SharpDraft&) = delete;
  SharpDraft& operator=(const SharpDraft&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

struct Recording {
  Trees trees;
  std::vector<Completion> completions;
};

Recording run_with(const fs::path& drafter, const std::string& method, const std::string& keys) {
  const Workload workload = token_workload(0.0);
  const Variant variant{
      .speculative = method + ",max_draft_len=5,dynamic_tree_max_topK=4,max_total_draft_tokens=20" + keys,
      .head = drafter};
  Recording run;
  auto parts = open_variant({.weights = WeightPrecision::kF32}, variant, workload.target);
  if (!parts.ok()) {
    ADD_FAILURE() << parts.error().message;
    return run;
  }
  (*parts)->drafter = std::make_shared<TreeRecorder>((*parts)->drafter, run.trees);
  run.completions = run_engine(*Engine::assemble(std::move(*parts)), workload, describe(variant));
  return run;
}

TEST(RankingTemperature, OfADraftModelIsReadFromItsConfig) {
  const fs::path draft = small_target() + "_tied";
  const SharpDraft sharp(draft);
  const std::string method = "draft_target";
  const Recording usual = run_with(draft, method, ""), named = run_with(sharp.path(), method, "");
  ASSERT_FALSE(usual.trees.empty());
  EXPECT_FALSE(named.trees == usual.trees);
  EXPECT_TRUE(named.trees == run_with(draft, method, ",ranking_temperature=0.2").trees);
  EXPECT_TRUE(
      usual.trees ==
      run_with(sharp.path(), method, ",ranking_temperature=1").trees);  // the option overrides the config
  expect_same(usual.completions, named.completions, "at another ranking temperature");
}

// Each draft model ranks its own nodes; the option applies to all of them.
TEST(RankingTemperature, OfAHeadIsNotThatOfOthersInItsTree) {
  const auto head = make_medusa(kSmallTarget, 5), sharp = make_medusa(kSmallTarget, 5);
  sharp->config["outrider_ranking_temperature"] = 0.2;
  const fs::path usual = head->write(), named = sharp->write();
  const auto trees = [](const fs::path& path, const std::string& method, const std::string& keys = "") {
    return run_with(path, "combine=[" + method + "]", keys).trees;
  };
  const std::string by_hand = ",ranking_temperature=0.2";
  ASSERT_FALSE(trees(usual, "medusa").empty());
  EXPECT_FALSE(trees(usual, "medusa") == trees(usual, "medusa", by_hand));
  EXPECT_TRUE(trees(named, "medusa") == trees(usual, "medusa", by_hand));
  EXPECT_FALSE(trees(usual, "early_exit") == trees(usual, "early_exit", by_hand));
  EXPECT_TRUE(trees(named, "early_exit") == trees(usual, "early_exit"));
}

}  // namespace
}  // namespace outrider::ranking_temperature_test
