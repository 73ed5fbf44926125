// SPDX-License-Identifier: Apache-2.0
#include "open/resolved.h"

#include <gtest/gtest.h>

#include "config/methods.h"
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

}  // namespace
}  // namespace outrider
