// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/doctor_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace outrider {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// `steps` passes that commit `length` tokens each.
ShapeResult shape(std::string keys, double length, double ms_per_token, double draft_share = 0.2) {
  ShapeResult result{.keys = std::move(keys)};
  result.stats.steps = 100;
  result.stats.committed = static_cast<int64_t>(100 * length);
  result.stats.drafted = 400;
  result.tokens = result.stats.committed;
  result.decode_ms = ms_per_token * static_cast<double>(result.tokens);
  result.stats.draft_ms = draft_share * result.decode_ms;
  return result;
}

// Plain decoding takes 2 ms per token.
Diagnosis diagnosis(std::vector<ShapeResult> shapes) {
  Diagnosis diagnosis;
  diagnosis.info.model_path = "MODEL";
  diagnosis.method = "draft_target";
  diagnosis.speculative = "draft_target,speculative_model=DIR";
  diagnosis.plain = {.keys = "", .tokens = 100, .decode_ms = 200.0};
  diagnosis.shapes = std::move(shapes);
  diagnosis.agreement = {.places = 50, .has_distributions = true, .divergence = 0.3, .variation = 0.2};
  diagnosis.agreement.coverage = {0.7, 0.8, 0.85, 0.9, 0.95};
  return diagnosis;
}

TEST(DoctorReport, FiguresByHand) {
  const Diagnosis some = diagnosis({shape("max_draft_len=4", 3.0, 1.0)});
  EXPECT_DOUBLE_EQ(speed_up(some, some.shapes[0]), 2.0);
  EXPECT_DOUBLE_EQ(break_even(some, some.shapes[0]), 1.5);  // a step of 3 ms, a plain token of 2 ms
  const nlohmann::ordered_json json = diagnosis_json(some);
  EXPECT_EQ(json["plain_ms_per_token"], 2.0);
  EXPECT_EQ(json["shapes"][0]["nodes"], 4.0);
  EXPECT_EQ(json["shapes"][0]["acceptance_length"], 3.0);
  EXPECT_NEAR(json["shapes"][0]["draft_ms"].get<double>(), 0.6, 1e-12);
  EXPECT_NEAR(json["shapes"][0]["other_ms"].get<double>(), 2.4, 1e-12);
  EXPECT_EQ(json["shapes"][0]["break_even"], 1.5);
  EXPECT_EQ(json["agreement"]["kl_divergence"], 0.3);
  EXPECT_EQ(json["agreement"]["tree_accuracies"],
            nlohmann::ordered_json::parse("[[0.7,0.1,0.05,0.05,0.05]]"));
  EXPECT_THAT(diagnosis_text(some), HasSubstr("tree_accuracies=[[0.7,0.1,0.05,0.05,0.05]],max_draft_len=5"));
  EXPECT_EQ(json["miswired"], false);
}

TEST(DoctorReport, TheFastestShapeIsAdvisedAsItIsWritten) {
  const Diagnosis some = diagnosis({shape("max_draft_len=1", 1.7, 1.4), shape("max_draft_len=4", 3.0, 1.0),
                                    shape("expansion=[2,2]", 2.5, 1.2)});
  EXPECT_EQ(best_shape(some), &some.shapes[1]);
  EXPECT_EQ(
      verdict_of(some),
      "use it: 2.00x, tree of 4.0 nodes: --speculative draft_target,speculative_model=DIR,max_draft_len=4");
  EXPECT_THAT(diagnosis_text(some), HasSubstr("verdict          use it: 2.00x"));
  EXPECT_THAT(diagnosis_text(some), Not(HasSubstr("mis-wired")));
}

TEST(DoctorReport, ALittleFasterIsNotWorthIt) {
  const Diagnosis some = diagnosis({shape("max_draft_len=1", 1.7, 1.96), shape("max_draft_len=4", 3.0, 2.5)});
  EXPECT_THAT(verdict_of(some), AllOf(StartsWith("do not use it here: 1.02x at best (max_draft_len=1)"),
                                      HasSubstr("too few of its tokens are accepted")));
  EXPECT_THAT(verdict_of(diagnosis({shape("max_draft_len=1", 1.7, 1.9)})), StartsWith("use it: 1.05x"));
}

TEST(DoctorReport, ADrafterThatTakesMostOfTheTimeIsTooLarge) {
  EXPECT_THAT(verdict_of(diagnosis({shape("max_draft_len=4", 4.0, 2.5, 0.6)})),
              AllOf(StartsWith("do not use it here: 0.80x"), HasSubstr("a smaller drafter would help")));
}

// A pass that commits 1.02 tokens cannot be 1.5 times as fast as one that commits one; the machine changed.
TEST(DoctorReport, NoiseIsNotBelieved) {
  const Diagnosis some = diagnosis({shape("max_draft_len=1", 1.02, 1.3), shape("max_draft_len=4", 3.0, 1.9)});
  EXPECT_EQ(best_shape(some), &some.shapes[1]);
  EXPECT_THAT(verdict_of(diagnosis({shape("max_draft_len=1", 1.02, 1.3)})), StartsWith("do not use it here"));
}

TEST(DoctorReport, NoisyTimingsAreNotComparedAndNotAdvised) {
  Diagnosis some = diagnosis({shape("max_draft_len=1", 1.7, 1.4), shape("max_draft_len=4", 3.0, 1.0)});
  some.shapes[1].spread = 0.4;
  EXPECT_EQ(best_shape(some), &some.shapes[0]);
  EXPECT_THAT(verdict_of(some), HasSubstr("max_draft_len=1"));
  EXPECT_EQ(diagnosis_json(some)["shapes"][0]["noisy"], false);
  EXPECT_EQ(diagnosis_json(some)["shapes"][1]["noisy"], true);
  EXPECT_THAT(diagnosis_text(some), AllOf(HasSubstr("noisy     noisy\n"), Not(HasSubstr("2.00x"))));
  some.shapes[0].spread = 0.2;
  EXPECT_EQ(best_shape(some), nullptr);
  EXPECT_THAT(verdict_of(some),
              AllOf(StartsWith("withheld: the machine is busy"), HasSubstr("differ by 20%")));
}

// Without a plain speed there is no comparison.
TEST(DoctorReport, NoisyPlainDecodingWithholdsTheVerdict) {
  Diagnosis some = diagnosis({shape("max_draft_len=1", 1.7, 1.4)});
  some.plain.spread = 0.35;
  EXPECT_THAT(verdict_of(some), AllOf(StartsWith("withheld"), HasSubstr("differ by 35%")));
  some.agreement.coverage = {0.01, 0.02, 0.03, 0.04, 0.05};
  EXPECT_THAT(verdict_of(some), StartsWith("wrong drafter: it never agrees")) << "time has no say in that";
}

TEST(DoctorReport, ADrafterThatNeverAgreesIsMiswired) {
  Diagnosis some = diagnosis({shape("max_draft_len=1", 1.01, 1.0)});
  some.agreement.coverage = {0.01, 0.02, 0.03, 0.04, 0.05};
  EXPECT_EQ(verdict_of(some), "wrong drafter: it never agrees with the target");
  EXPECT_THAT(diagnosis_text(some), AllOf(HasSubstr("wrong rather than weak"), HasSubstr("RoPE"),
                                          HasSubstr("chat template"), HasSubstr("d2t")));
  EXPECT_EQ(diagnosis_json(some)["miswired"], true);
  some.agreement.coverage = {0.01, 0.05, 0.1, 0.2, 0.3};  // weak but possible
  EXPECT_EQ(miswiring(some), "");
  some.agreement = {.places = 8, .has_distributions = true};
  EXPECT_EQ(miswiring(some), "") << "too few places";
}

// A head that agrees little needs a reason to be called wrong: it did better when it was trained, or the
// target's states are of no use to it.
TEST(DoctorReport, AHeadIsWrongThatAgreesLessThanInTrainingOrIgnoresTheStates) {
  Diagnosis some = diagnosis({shape("max_draft_len=1", 1.2, 1.0)});
  some.head = HeadSummary{.target = {}, .agreement = 0.6};
  some.agreement.coverage = {0.5, 0.6, 0.7, 0.75, 0.8};
  EXPECT_EQ(miswiring(some), "") << "other prompts";
  some.agreement.coverage.front() = 0.4;
  EXPECT_THAT(miswiring(some),
              AllOf(HasSubstr("at 40.0% of the places"), HasSubstr("60.0% when it was trained")));
  some.head->agreement = 0.0;
  EXPECT_EQ(miswiring(some), "");
  some.agreement.coverage_with_other_states = 0.1;
  EXPECT_EQ(miswiring(some), "");
  some.agreement.coverage_with_other_states = 0.39;
  EXPECT_THAT(verdict_of(some), AllOf(StartsWith("wrong drafter: "), HasSubstr("states of other places")));
}

TEST(DoctorReport, AHeadIsWrongThatAgreesNoLessWithTheTargetsRope) {
  Diagnosis some = diagnosis({shape("max_draft_len=1", 1.2, 1.0)});
  some.head = HeadSummary{.target = {}, .rope_theta = 100};
  some.agreement.variation = 0.32;
  some.target_rope_theta = 10000;
  some.variation_at_target_rope = 0.35;
  EXPECT_EQ(miswiring(some), "") << "it was trained with another one";
  some.variation_at_target_rope = 0.3;
  EXPECT_THAT(miswiring(some), HasSubstr("its rope_theta is 100; with the target's 10000"));
}

TEST(DoctorReport, ADrafterWithoutDistributionsMaySimplyFindNothing) {
  Diagnosis some = diagnosis({shape("max_draft_len=1", 1.0, 2.0)});
  some.agreement = {.places = 50};
  EXPECT_EQ(miswiring(some), "");
  EXPECT_THAT(verdict_of(some), StartsWith("do not use it here"));
  EXPECT_THAT(diagnosis_text(some), HasSubstr("gives no probabilities"));
  EXPECT_FALSE(diagnosis_json(some)["agreement"].contains("kl_divergence"));
  some.agreement = {};
  EXPECT_EQ(miswiring(some), "");
}

TEST(DoctorReport, NothingMeasuredIsNoDivisionByZero) {
  Diagnosis none;
  EXPECT_EQ(verdict_of(none), "nothing was measured");
  EXPECT_EQ(best_shape(none), nullptr);
  none.shapes.push_back({.keys = "max_draft_len=1"});
  EXPECT_EQ(speed_up(none, none.shapes[0]), 0.0);
  EXPECT_EQ(break_even(none, none.shapes[0]), 0.0);
  EXPECT_EQ(diagnosis_text(none).find("nan"), std::string::npos);
  EXPECT_EQ(diagnosis_json(none).dump().find("null"), std::string::npos);
}

TEST(DoctorReport, ColumnsStandUnderTheirNames) {
  const std::string text =
      diagnosis_text(diagnosis({shape("max_draft_len=1", 1.7, 1.4),
                                shape("max_draft_len=8,max_total_draft_tokens=16,policy=auto", 3.0, 1.0)}));
  std::vector<size_t> ends;
  for (const std::string line_start : {"tree ", "max_draft_len=1 ", "max_draft_len=8,"}) {
    const size_t begin = text.find("\n" + line_start) + 1;
    ends.push_back(text.find('\n', begin) - begin);
  }
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_EQ(ends[1], ends[2]);
}

}  // namespace
}  // namespace outrider
