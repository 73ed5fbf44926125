// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/advice.h"

#include <gtest/gtest.h>

#include "config/speculative_config.h"

namespace outrider {
namespace {

PromptMeasurement measured(double plain, double speculative) {
  PromptMeasurement result;
  result.plain_rate = plain;
  result.speculative_rate = speculative;
  result.stats.steps = 10;
  result.stats.committed = 20;
  result.stats.drafted = 20;
  result.stats.accepted = 10;
  return result;
}

BenchSetup setup() {
  BenchSetup setup;
  setup.info.model_path = "/models/my model.gguf";
  setup.info.sources = {"Suffix", "Eagle3"};
  setup.is_unasked = true;
  setup.speculation.decoding_type = Method::kEagle3;
  return setup;
}

TEST(Advice, OfWhatTheCommandChoseByItselfNeedsNoOption) {
  const std::vector<PromptMeasurement> prompts(6, measured(10, 18));
  const std::string text = advice_text(advice_of(setup(), prompts));
  EXPECT_EQ(text,
            "\nuse                  Suffix+Eagle3, which Outrider chooses by itself\n"
            "gain                 1.80 times plain speed (1.80 to 1.80: 95% over prompts), the same text\n"
            "command              outrider chat '/models/my model.gguf'\n");
}

TEST(Advice, OfAnAskedDrafterRepeatsTheOption) {
  BenchSetup asked = setup();
  asked.is_unasked = false;
  asked.asked = parse_speculative("eagle3,speculative_model=/heads/it's,expansion=[3,2]")->options;
  const auto advice = advice_of(asked, {measured(10, 12)});
  ASSERT_TRUE(advice);
  EXPECT_EQ(advice->use, "Suffix+Eagle3");
  EXPECT_EQ(advice->gain, "1.20 times plain speed, the same text");
  EXPECT_EQ(advice->command,
            "outrider chat '/models/my model.gguf' --speculative "
            "'eagle3,tree=static,expansion=[3,2],speculative_model=/heads/it'\\''s'");
  asked.asked = parse_speculative("combine=[suffix,ngram],max_draft_len=12")->options;
  EXPECT_EQ(advice_of(asked, {measured(10, 12)})->command,
            "outrider chat '/models/my model.gguf' --speculative 'max_draft_len=12,combine=[suffix,ngram]'");
}

TEST(Advice, IsPlainDecodingWhereDraftsDoNotPay) {
  const auto slower = advice_of(setup(), {measured(10, 9.9)});
  ASSERT_TRUE(slower);
  EXPECT_EQ(slower->use, "plain decoding: drafts gain nothing on these prompts");
  EXPECT_EQ(slower->gain, "0.99 times plain speed, the same text with drafts");
  EXPECT_EQ(slower->command, "outrider chat '/models/my model.gguf' --speculative none");
  PromptMeasurement idle = measured(10, 10);
  idle.stats.drafted = 0;
  EXPECT_EQ(advice_of(setup(), {idle})->gain, "nothing was drafted");
}

TEST(Advice, IsNotGivenOnTextsThatDifferNorOnSyntheticDrafts) {
  PromptMeasurement different = measured(10, 30);
  different.identical = false;
  EXPECT_FALSE(advice_of(setup(), {different}));
  EXPECT_FALSE(advice_of(setup(), {}));
  BenchSetup plain = setup();
  plain.speculation.decoding_type = Method::kNone;
  EXPECT_FALSE(advice_of(plain, {measured(10, 20)}));
  BenchSetup synthetic = setup();
  synthetic.synthetic_acceptance = 0.5;
  EXPECT_FALSE(advice_of(synthetic, {measured(10, 20)}));
  BenchSetup random = setup();
  random.is_random = true;
  EXPECT_FALSE(advice_of(random, {measured(10, 20)}));
  EXPECT_EQ(advice_text(std::nullopt), "");
}

ContenderResult contender(std::string name, double rate) {
  ContenderResult result;
  result.contender.drafter = name;
  result.contender.tree = "chain";
  result.contender.options =
      parse_speculative(name + ",tree=chain,max_draft_len=8,policy=fixed,speculative_model=/heads/a")
          ->options;
  result.prompts = {std::vector{measured(10, rate)}, std::vector{measured(10, 50)}};
  return result;
}

TEST(Advice, OfAComparisonIsItsFastestDrafterUnderTheUsualPolicy) {
  Comparison comparison;
  comparison.info.model_path = "m.gguf";
  EXPECT_FALSE(advice_of(comparison));
  comparison.results = {contender("medusa", 12), contender("eagle3", 15), contender("pard", 14)};
  comparison.results[2].prompts[0][0].identical = false;
  const auto advice = advice_of(comparison);
  ASSERT_TRUE(advice);
  EXPECT_EQ(advice->use, "eagle3, chain trees");
  EXPECT_EQ(
      advice->command,
      "outrider chat m.gguf --speculative eagle3,max_draft_len=8,tree=chain,speculative_model=/heads/a");
  comparison.results = {contender("medusa", 9)};
  EXPECT_EQ(advice_of(comparison)->gain, "0.90 times plain speed, the same text with medusa");
}

}  // namespace
}  // namespace outrider
