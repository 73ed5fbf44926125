// SPDX-License-Identifier: Apache-2.0
// PARD: agreement with an independent PyTorch version (tools/head_goldens/pard.py), how its models are
// recognised, and which are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/speculative_config.h"
#include "engine/engine_parts.h"
#include "tests/lossless/lossless.h"
#include "tests/lossless/test_heads.h"

namespace outrider {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Result<std::unique_ptr<EngineParts>> open_pard(const std::string& speculative, const FakeHead& made) {
  return open_variant({.weights = WeightPrecision::kF32, .kv_cache_type = KvCacheType::kF32},
                      {.speculative = speculative, .head = made.path()}, small_target());
}

// The distributions that the places of a chain after the tokens were drawn from.
std::vector<Distribution> drafted_after(Drafter& drafter, std::span<const TokenId> tokens) {
  SamplingParams sampling;
  sampling.temperature = 1.0;
  const DraftRequest request{.sequence = 1,
                             .tokens = tokens,
                             .prompt_length = 1,
                             .max_draft_len = 6,
                             .max_nodes = 6,
                             .sampling = &sampling,
                             .acceptance = AcceptanceRule::kRejection};
  TokenTree tree(tokens.back());
  EXPECT_TRUE(drafter.draft({&request, 1}, {&tree, 1}).ok());
  std::vector<Distribution> found;
  for (const Proposal& proposal : tree.proposals())
    found.push_back(tree.distribution_at(proposal.distribution));
  return found;
}

void expect_places(const std::vector<Distribution>& found, const nlohmann::json& places, TokenId stride) {
  ASSERT_EQ(found.size(), places.size());
  for (size_t place = 0; place < found.size(); ++place) {
    std::vector<double> by_token(288, 0.0);
    for (size_t i = 0; i < found[place].tokens.size(); ++i)
      by_token[static_cast<size_t>(found[place].tokens[i])] = found[place].probabilities[i];
    for (size_t i = 0; i < places[place].size(); ++i) {
      const double log = std::log(by_token[i * static_cast<size_t>(stride)]);
      ASSERT_NEAR(log, places[place][i].get<double>(), 1e-4) << "place " << place << ", token " << i * 9;
    }
  }
}

// Each text is read whole, and in steps with a draft at each of them.
TEST(Pard, AgreesWithPyTorch) {
  std::ifstream stream(OUTRIDER_SOURCE_DIR "/tests/data/heads/pard.json");
  const auto golden = nlohmann::json::parse(stream);
  const auto made = make_pard(kSmallTarget);
  made->write();
  for (const auto& text : golden["texts"]) {
    const auto tokens = text["tokens"].get<std::vector<TokenId>>();
    for (const size_t step : {tokens.size(), size_t{3}}) {
      const auto parts = open_pard("pard,max_draft_len=6", *made);
      ASSERT_TRUE(parts.ok()) << parts.error().message;
      Drafter& drafter = *(*parts)->drafter;
      drafter.begin(1, std::span(tokens).first(1));
      for (size_t count = step; count < tokens.size(); count += step)
        drafted_after(drafter, std::span(tokens).first(count));
      expect_places(drafted_after(drafter, tokens), text["places"], golden["stride"]);
      if (HasFatalFailure()) return;
      drafter.end(1);
    }
  }
}

TEST(Pard, ModelsAreRecognisedByTheirToken) {
  const auto made = make_pard(kSmallTarget);
  made->write();
  const std::string model = "speculative_model=" + made->path().string();
  const auto method = [](const std::string& text) {
    return *resolved_by_files(parse_speculative(text)->options);
  };
  EXPECT_EQ(method(model).decoding_type, Method::kPard);
  EXPECT_EQ(method(model).max_draft_len, 8);
  EXPECT_EQ(method("pard," + model).decoding_type, Method::kPard);
  EXPECT_EQ(method("draft_model," + model).decoding_type, Method::kPard);
  EXPECT_EQ(method("draft_model,speculative_model=" + small_target()).decoding_type, Method::kDraftTarget);
}

TEST(Pard, ModelsWithoutATokenOfTheirsAreRefused) {
  const auto made = make_pard(kSmallTarget);
  for (const nlohmann::json& token : {nlohmann::json(), nlohmann::json(288), nlohmann::json(-1)}) {
    made->config["pard_token"] = token;
    if (token.is_null()) made->config.erase("pard_token");
    made->write();
    const auto parts = open_pard("pard", *made);
    ASSERT_FALSE(parts.ok());
    EXPECT_THAT(parts.error().message,
                AllOf(HasSubstr("pard_token, 0 to 287"), HasSubstr(token.is_null() ? "none" : token.dump())));
  }
}

}  // namespace
}  // namespace outrider
