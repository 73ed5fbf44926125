// SPDX-License-Identifier: Apache-2.0
// Medusa in the engine: its trees follow the distributions of its heads, and its files set options.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/speculative_config.h"
#include "draft_heads/head_file.h"
#include "draft_heads/medusa.h"
#include "engine/engine_parts.h"
#include "tests/lossless/lossless.h"
#include "tests/lossless/test_heads.h"

namespace outrider {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kHidden = kSmallTarget.hidden;

class MedusaTest : public testing::Test {
 protected:
  Result<std::unique_ptr<EngineParts>> parts_of(const std::string& speculative) const {
    return open_variant({}, {.speculative = speculative, .head = path_}, small_target());
  }

  std::string refusal(const std::string& speculative) const {
    const auto parts = parts_of(speculative);
    return parts.ok() ? "" : parts.error().message;
  }

  std::unique_ptr<FakeHead> made_ = make_medusa(kSmallTarget, 3);
  std::filesystem::path path_ = made_->write();
};

std::vector<TokenId> likeliest(std::span<const float> logits, size_t count) {
  std::vector<TokenId> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
  std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  order.resize(count);
  return order;
}

// There is one distribution per level: the node [0, 2] is the third likeliest token of the second head on
// every path.
TEST_F(MedusaTest, AGreedyTreeHoldsTheListedRanksOfTheHeads) {
  const auto parts = parts_of("medusa,medusa_choices=[[0],[1],[1,0],[1,1],[1,2],[0,0],[1,1,0]]");
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  Drafter& drafter = *(*parts)->drafter;
  const std::vector<TokenId> tokens = {5, 6, 7, 8};
  const std::vector<float> state = fake_tensor("state", {2, kHidden});
  const std::vector<int> rows = {0, 1};
  const CommittedFeatures committed{
      .sequence = 1, .tokens = tokens, .first = 1, .rows = rows, .features = state.data(), .size = kHidden};
  drafter.begin(1, tokens);
  drafter.absorb({&committed, 1});
  const SamplingParams sampling;
  DraftRequest request{.sequence = 1,
                       .tokens = tokens,
                       .prompt_length = 4,
                       .max_draft_len = 3,
                       .max_nodes = 7,
                       .sampling = &sampling};
  TokenTree tree(8);
  ASSERT_TRUE(drafter.draft({&request, 1}, {&tree, 1}).ok());

  LayerBackend& backend = (*parts)->target->backend();
  const auto heads = MedusaHeads::load(*open_head(path_), (*parts)->target->config(), backend,
                                       {.kernels = *select_kernels((*parts)->info.kernels),
                                        .pool = (*parts)->pool.get(),
                                        .weights = std::nullopt});
  BackendRows states(backend);
  states.reserve(1, kHidden);
  states.write(std::span(state).last(kHidden), 0);
  (*heads)->start(states.data(), 1);
  const auto first = likeliest((*heads)->logits(0), 2);
  const auto second = likeliest((*heads)->logits(1), 3);
  const auto third = likeliest((*heads)->logits(2), 1);
  EXPECT_THAT(tree.tokens(),
              ElementsAre(8, first[0], first[1], second[0], second[0], second[1], second[2], third[0]));
  EXPECT_THAT(tree.parents(), ElementsAre(-1, 0, 0, 1, 2, 2, 2, 5));

  // After another token the state is out of date, so the drafter proposes nothing.
  const std::vector<TokenId> more = {5, 6, 7, 8, 9};
  request.tokens = more;
  tree.reset(9);
  ASSERT_TRUE(drafter.draft({&request, 1}, {&tree, 1}).ok());
  EXPECT_EQ(tree.drafted(), 0);
  EXPECT_EQ(drafter.known_tokens(tokens), 2);
}

TEST_F(MedusaTest, TheDirectoryAloneSaysWhichMethodItIs) {
  SpeculativeOptions open = parse_speculative("speculative_model=" + path_.string())->options;
  const auto resolved = resolved_by_files(open);
  ASSERT_TRUE(resolved.ok());
  EXPECT_EQ(resolved->decoding_type, Method::kMedusa);
  EXPECT_EQ(resolved->tree.choices, first_choices(published_choices(), 3, 63));
  EXPECT_THAT(refusal("draft_target"), AllOf(HasSubstr("kind Medusa"), HasSubstr("leave")));
  const auto automatic =
      resolved_by_files(parse_speculative("auto,speculative_model=" + path_.string())->options);
  EXPECT_THAT(automatic->combine, ElementsAre(Method::kSuffix, Method::kNGram, Method::kMedusa));
}

TEST_F(MedusaTest, ChoicesComeFromTheOptionThenTheConfigThenThePublishedOnes) {
  const auto choices = [&](const std::string& speculative) {
    return resolved_by_files(parse_speculative(speculative + ",speculative_model=" + path_.string())->options)
        ->tree.choices;
  };
  EXPECT_EQ(choices("medusa"), first_choices(published_choices(), 3, 63));
  made_->config["medusa_accuracies"] = {{0.6, 0.2}, {0.4}, {0.3}};
  made_->write();
  EXPECT_EQ(choices("medusa,tree=choices,max_total_draft_tokens=3"), (TreeChoices{{0}, {0, 0}, {1}}));
  EXPECT_EQ(choices("medusa,medusa_choices=[[0],[1]]"), (TreeChoices{{0}, {1}}));
  EXPECT_THAT(refusal("medusa,medusa_choices=[[0],[0,0],[0,0,0],[0,0,0,0]]"),
              AllOf(HasSubstr("heads, 3"), HasSubstr("found 4")));
  EXPECT_THAT(refusal("medusa,medusa_choices=[[1]]"), HasSubstr("[1] without [0]"));
}

TEST_F(MedusaTest, HeadsOfAnotherTargetAreRefused) {
  made_->config["outrider_target"] = target_fingerprint(*open_model(small_target()));
  made_->write();
  EXPECT_EQ(refusal("medusa"), "");
  made_->config["outrider_target"] = "0123456789abcdef";
  made_->write();
  EXPECT_THAT(refusal("medusa"), AllOf(HasSubstr("another target"), HasSubstr("0123456789abcdef")));
}

}  // namespace
}  // namespace outrider
