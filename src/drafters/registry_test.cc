// SPDX-License-Identifier: Apache-2.0
#include "drafters/registry.h"

#include <gtest/gtest.h>

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

  Result<SpeculativeOptions> settle(SpeculativeOptions options = {}) {
    options.method_unset = true;
    options.speculative_model = head_.write();
    return settled(std::move(options));
  }

  FakeHead head_;
};

TEST_F(RankingTemperature, IsTheDraftersOwn) {
  head_.config["outrider_ranking_temperature"] = 0.4;
  const auto options = settle();
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->decoding_type, "Medusa");
  EXPECT_EQ(options->ranking_temperature, 0.4);
  EXPECT_EQ(growth_options(*options, nullptr).ranking_temperature, 0.4);
}

TEST_F(RankingTemperature, GivenByHandGoesBeforeIt) {
  head_.config["outrider_ranking_temperature"] = 0.4;
  SpeculativeOptions given;
  given.ranking_temperature = 1.0;
  const auto options = settle(given);
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options->ranking_temperature, 1.0);
}

TEST_F(RankingTemperature, IsNotThatOfOthersInItsTree) {
  head_.config["outrider_ranking_temperature"] = 0.4;
  for (const char* method : {"Combined", "EarlyExit"}) {
    SpeculativeOptions given;
    given.decoding_type = method;
    given.combine = {"Medusa", "EarlyExit"};
    given.speculative_model = head_.write();
    const auto options = settled(std::move(given));
    ASSERT_TRUE(options.ok()) << options.error().message;
    EXPECT_EQ(growth_options(*options, nullptr).ranking_temperature, 1.0) << method;
  }
}

TEST_F(RankingTemperature, IsOneWhereNobodyNamesIt) {
  const auto options = settle();
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(growth_options(*options, nullptr).ranking_temperature, 1.0);
}

TEST_F(RankingTemperature, OfAnotherTypeIsAnError) {
  head_.config["outrider_ranking_temperature"] = "low";
  const auto options = settle();
  ASSERT_FALSE(options.ok());
  EXPECT_NE(options.error().message.find("outrider_ranking_temperature"), std::string::npos);
}

}  // namespace
}  // namespace outrider
