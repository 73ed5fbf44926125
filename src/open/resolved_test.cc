// SPDX-License-Identifier: Apache-2.0
#include "open/resolved.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/methods.h"
#include "config/speculative_config.h"
#include "draft_heads/fake_head.h"
#include "speculation/tree/tree_growth.h"

namespace outrider {
namespace {

// A Medusa head, which may name a temperature to rank its trees by.
class RankingTemperature : public testing::Test {
 protected:
  RankingTemperature() {
    head_.tensors = {{"0.0.linear.weight", {8, 8}}, {"0.0.linear.bias", {8}}, {"0.1.weight", {12, 8}}};
  }

  Result<SpeculativeOptions> resolved(SpeculativeOptions options = {}) {
    options.method_unset = true;
    options.speculative_model = head_.write();
    OUTRIDER_TRY(const DraftFiles files, open_draft_files(options));
    return resolve_speculation(std::move(options), files);
  }

  FakeHead head_;
};

TEST_F(RankingTemperature, IsTheDraftersOwn) {
  head_.config["outrider_ranking_temperature"] = 0.4;
  const auto options = resolved();
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->decoding_type, Method::kMedusa);
  EXPECT_EQ(options->ranking_temperature, 0.4);
  EXPECT_EQ(growth_options(*options, nullptr).ranking_temperature, 0.4);
}

TEST_F(RankingTemperature, GivenByHandGoesBeforeIt) {
  head_.config["outrider_ranking_temperature"] = 0.4;
  SpeculativeOptions given;
  given.ranking_temperature = 1.0;
  const auto options = resolved(given);
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->ranking_temperature, 1.0);
}

TEST_F(RankingTemperature, IsNotThatOfOthersInItsTree) {
  head_.config["outrider_ranking_temperature"] = 0.4;
  for (const Method method : {Method::kCombined, Method::kEarlyExit}) {
    SpeculativeOptions given;
    given.decoding_type = method;
    given.combine = {Method::kMedusa, Method::kEarlyExit};
    given.speculative_model = head_.write();
    const auto files = open_draft_files(given);
    ASSERT_TRUE(files.ok()) << files.error().message;
    const auto all = resolve_speculation(std::move(given), *files);
    ASSERT_TRUE(all.ok()) << all.error().message;
    EXPECT_EQ(growth_options(*all, nullptr).ranking_temperature, 1.0) << method_name(method);
  }
}

TEST_F(RankingTemperature, IsOneWhereNobodyNamesIt) {
  const auto options = resolved();
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(growth_options(*options, nullptr).ranking_temperature, 1.0);
}

TEST_F(RankingTemperature, OfAnotherTypeIsAnError) {
  head_.config["outrider_ranking_temperature"] = "low";
  const auto options = resolved();
  ASSERT_FALSE(options.ok());
  EXPECT_NE(options.error().message.find("outrider_ranking_temperature"), std::string::npos);
}

// Files name their method late, which changes no shape: the same keys ask for the same tree.
TEST(MeasuredTree, HasTheNodesWithTheLargestProducts) {
  SpeculativeOptions given;
  given.decoding_type = Method::kEarlyExit;
  given.tree = {.kind = TreeKind::kChoices,
                .max_total_draft_tokens = 5,
                .choices = {},
                .accuracies = {{0.5, 0.3}, {0.6, 0.1}}};
  given.max_draft_len = 3;
  const auto options = resolve_speculation(given, DraftFiles());
  ASSERT_TRUE(options.ok()) << options.error().message;
  // 0.5, 0.3, 0.3 (0.5 * 0.6), 0.18 (0.3 * 0.6), 0.18 (0.5 * 0.6 * 0.6)
  EXPECT_EQ(options->tree.choices, (std::vector<std::vector<int>>{{0}, {1}, {0, 0}, {1, 0}, {0, 0, 0}}));
  EXPECT_EQ(options->max_draft_len, 3);
  EXPECT_TRUE(options->tree.accuracies.empty());
}

TEST(UsualTree, DependsNotOnWhoNamesTheMethod) {
  FakeHead head;
  head.tensors = {{"Ekv2E.weight", {8, 8}}};
  const std::string model = ",speculative_model=" + head.write().string();
  for (const std::string keys : {"", ",max_total_draft_tokens=24", ",tree=dynamic,max_draft_len=4",
                                 ",max_draft_len=3", ",expansion=[2,1]"}) {
    std::vector<SpeculativeOptions> resolved;
    for (const std::string& text : {"moa" + keys + model, model.substr(1) + keys}) {
      const auto given = parse_speculative(text);
      ASSERT_TRUE(given.ok()) << given.error().message;
      const auto files = open_draft_files(given->options);
      ASSERT_TRUE(files.ok()) << files.error().message;
      resolved.push_back(*resolve_speculation(given->options, *files));
    }
    EXPECT_EQ(resolved[0].decoding_type, Method::kMoa) << keys;
    EXPECT_EQ(resolved[1].decoding_type, Method::kMoa) << keys;
    EXPECT_EQ(resolved[0].tree.kind, resolved[1].tree.kind) << keys;
    EXPECT_EQ(resolved[0].max_draft_len, resolved[1].max_draft_len) << keys;
    EXPECT_EQ(resolved[0].tree.dynamic_tree_max_top_k, resolved[1].tree.dynamic_tree_max_top_k) << keys;
    EXPECT_EQ(resolved[0].tree.max_total_draft_tokens, resolved[1].tree.max_total_draft_tokens) << keys;
  }
}

}  // namespace
}  // namespace outrider
