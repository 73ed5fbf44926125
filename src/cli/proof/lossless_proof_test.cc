// SPDX-License-Identifier: Apache-2.0
// A proof is worth what it would notice: lossy rules and planted differences are found.
#include "cli/proof/lossless_proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "open/parts.h"

namespace outrider {
namespace {

using testing::HasSubstr;

SamplingParams sampled(uint64_t seed) {
  SamplingParams sampling;
  sampling.temperature = 1;
  sampling.seed = seed;
  return sampling;
}

std::unique_ptr<Engine> open_with(AcceptanceRule rule) {
  EngineOptions options;
  options.model = OUTRIDER_SOURCE_DIR "/models/outrider-small";
  options.context = 128;
  options.acceptance = rule;
  options.speculation.decoding_type = Method::kDraftTarget;
  options.speculation.speculative_model = OUTRIDER_SOURCE_DIR "/models/outrider-draft";
  options.speculation.max_draft_len = 4;
  auto parts = open_parts(std::move(options));
  EXPECT_TRUE(parts.ok()) << parts.error().message;
  return Engine::assemble(std::move(parts).value());
}

std::vector<Request> two_requests(Engine& engine, const SamplingParams& sampling) {
  std::vector<Request> requests(2);
  requests[0].prompt = engine.tokenize("Once upon a time");
  requests[1].prompt = engine.tokenize("The cat sat on");
  for (Request& request : requests) {
    request.max_tokens = 40;
    request.ignore_eos = true;
    request.sampling = sampling;
  }
  return requests;
}

Proof proof_of(AcceptanceRule rule, const SamplingParams& sampling) {
  const auto engine = open_with(rule);
  int outputs = 0;
  LosslessProver prover(*engine, {"first", "second"}, [&outputs] { ++outputs; });
  const Status status = prover.run({"sampled", sampling}, two_requests(*engine, sampling));
  EXPECT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(outputs, 8);
  return prover.proof();
}

TEST(LosslessProof, HoldsForALosslessRule) {
  const Proof proof = proof_of(AcceptanceRule::kCoupled, sampled(5));
  EXPECT_FALSE(proof.difference);
  EXPECT_EQ(proof.prompts, 2);
  EXPECT_EQ(proof.tokens, 3 * 80);
  EXPECT_GT(proof.accepted, 0);
  EXPECT_TRUE(verdict(proof).ok()) << verdict(proof).error().message;
}

TEST(LosslessProof, SeesALossyRule) {
  const Proof proof = proof_of(AcceptanceRule::kTypical, sampled(5));
  ASSERT_TRUE(proof.difference);
  EXPECT_EQ(proof.difference->mode, "sampled");
  EXPECT_EQ(proof.difference->arrangement, "one at a time");
  EXPECT_NE(proof.difference->plain, proof.difference->other);
  EXPECT_THAT(verdict(proof).error().message, HasSubstr("different: prompt first, sampled, one at a time"));
}

// The rejection rule keeps the distribution. Typical acceptance prefers what is likely.
TEST(LosslessProof, SeesADistributionThatIsNotTheTargets) {
  for (const auto& [rule, is_lossless] :
       {std::pair(AcceptanceRule::kRejection, true), std::pair(AcceptanceRule::kTypical, false)}) {
    const auto engine = open_with(rule);
    LosslessProver prover(*engine, std::vector<std::string>(20, "a prompt"), [] {});
    std::vector<Request> requests;
    for (uint64_t seed = 0; seed < 10; ++seed) {
      for (Request& request : two_requests(*engine, sampled(seed))) requests.push_back(std::move(request));
    }
    ASSERT_TRUE(prover.run_by_distribution(std::move(requests)).ok());
    ASSERT_TRUE(prover.proof().places);
    EXPECT_EQ(prover.proof().places->tokens, 2 * 20 * 40);
    EXPECT_EQ(verdict(prover.proof()).ok(), is_lossless) << prover.proof().places->deviation;
    if (!is_lossless) {
      EXPECT_THAT(verdict(prover.proof()).error().message,
                  HasSubstr("does not follow the target's distribution"));
    }
  }
}

TEST(LosslessProof, FindsTheFirstDifference) {
  const std::vector<TokenId> plain = {4, 5, 6};
  EXPECT_FALSE(first_difference(plain, plain));
  EXPECT_FALSE(first_difference({}, {}));
  struct Case {
    std::vector<TokenId> other;
    size_t position;
    std::optional<TokenId> plain_token, other_token;
  };
  for (const Case& test : {Case{{4, 7, 6}, 1, 5, 7}, Case{{4, 5}, 2, 6, std::nullopt},
                           Case{{4, 5, 6, 8}, 3, std::nullopt, 8}, Case{{}, 0, 4, std::nullopt}}) {
    const auto found = first_difference(plain, test.other);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->position, test.position);
    EXPECT_EQ(found->plain, test.plain_token);
    EXPECT_EQ(found->other, test.other_token);
  }
}

TEST(LosslessProof, TheVerdictNamesWhatIsWrong) {
  Proof proof;
  proof.prompts = 3;
  EXPECT_THAT(verdict(proof).error().message, HasSubstr("nothing was drafted for 3 prompts"));
  proof.drafted = 10;
  EXPECT_TRUE(verdict(proof).ok());
  proof.difference = Difference{.prompt = "code 2",
                                .mode = "greedy",
                                .arrangement = "together",
                                .position = 6,
                                .plain = 9,
                                .other = std::nullopt};
  EXPECT_EQ(verdict(proof).error().message,
            "different: prompt code 2, greedy, together: output token 7 is 9 plainly and the end here");
  const auto json = proof_json(proof, {});
  EXPECT_EQ(json["identical"], false);
  EXPECT_EQ(json["difference"]["position"], 6);
  EXPECT_EQ(json["difference"]["plain"], 9);
  EXPECT_TRUE(json["difference"]["other"].is_null());
}

}  // namespace
}  // namespace outrider
