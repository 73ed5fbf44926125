// SPDX-License-Identifier: Apache-2.0
// Medusa in the engine: the same tokens as without it, trees as its heads say, and options from its files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/speculative_config.h"
#include "drafters/registry.h"
#include "engine/engine_parts.h"
#include "heads/head_file.h"
#include "heads/made_up_head.h"
#include "heads/medusa.h"

namespace outrider {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kHidden = 64, kVocab = 288;

std::string target_path() { return OUTRIDER_SOURCE_DIR "/tests/data/models/llama"; }

void make_medusa(MadeUpHead& made, int heads = 3) {
  for (int k = 0; k < heads; ++k) {
    const std::string name = std::to_string(k) + ".";
    made.tensors[name + "0.linear.weight"] = {kHidden, kHidden};
    made.tensors[name + "0.linear.bias"] = {kHidden};
    made.tensors[name + "1.weight"] = {kVocab, kHidden};
  }
  made.config["medusa_num_heads"] = heads;
}

struct Variant {
  std::string speculative = "none";
  int page_size = 16;
  int batch = 4;
  int prefill_chunk = 256;
  int preempt_every = 0;
  WeightPrecision weights = WeightPrecision::kAuto;
  AcceptanceRule acceptance = AcceptanceRule::kCoupled;
};

std::string describe(const Variant& variant) {
  return variant.speculative + ", page " + std::to_string(variant.page_size) + ", batch " +
         std::to_string(variant.batch) + ", chunk " + std::to_string(variant.prefill_chunk) + ", preempts " +
         std::to_string(variant.preempt_every) + ", weights " +
         std::to_string(static_cast<int>(variant.weights));
}

class MedusaTest : public testing::Test {
 protected:
  MedusaTest() {
    make_medusa(made_);
    path_ = made_.write();
  }

  Result<EngineOptions> options_of(const Variant& variant) const {
    EngineOptions options;
    options.model = target_path();
    options.page_size = variant.page_size;
    options.max_batch = variant.batch;
    options.prefill_chunk = variant.prefill_chunk;
    options.weights = variant.weights;
    options.acceptance = variant.acceptance;
    OUTRIDER_TRY(const SpeculativeConfig config, parse_speculative(variant.speculative));
    options.speculation = config.options;
    if (variant.speculative != "none") options.speculation.speculative_model = path_;
    return options;
  }

  Result<std::unique_ptr<EngineParts>> parts_of(const Variant& variant) const {
    OUTRIDER_TRY(EngineOptions options, options_of(variant));
    OUTRIDER_TRY(auto parts, open_parts(std::move(options)));
    parts->preempt_every = variant.preempt_every;
    return parts;
  }

  std::vector<Completion> complete(const Variant& variant, double temperature) const {
    auto parts = parts_of(variant);
    if (!parts.ok()) {
      ADD_FAILURE() << parts.error().message;
      return {};
    }
    const auto engine = Engine::assemble(std::move(*parts));
    std::vector<Completion> completions(5);
    for (size_t i = 0; i < completions.size(); ++i) {
      Request request;
      // The last two begin like the first, and find its pages; one is a single token.
      const size_t length = i == 1 ? 1 : 9 + 13 * (i % 3);
      for (size_t j = 0; j < length; ++j)
        request.prompt.push_back(static_cast<TokenId>((j * j + 3 * j + (i < 3 ? i : 0)) % 280));
      request.max_tokens = 40;
      request.ignore_eos = true;
      request.sampling.temperature = temperature;
      request.sampling.seed = 7 + i;
      const auto id = engine->submit(request, [&completions, i](RequestId, const Progress& progress) {
        if (progress.completion != nullptr) completions[i] = *progress.completion;
      });
      if (!id.ok()) ADD_FAILURE() << id.error().message;
    }
    while (engine->step()) {
    }
    return completions;
  }

  std::string refusal(const Variant& variant) const {
    const auto parts = parts_of(variant);
    return parts.ok() ? "" : parts.error().message;
  }

  MadeUpHead made_;
  std::filesystem::path path_;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const char* shape : {"medusa", "medusa,max_draft_len=3", "medusa,expansion=[8,3]",
                            "medusa,max_draft_len=3,dynamic_tree_max_topK=6,max_total_draft_tokens=40",
                            "combine=[Suffix,Medusa],max_draft_len=3,dynamic_tree_max_topK=6,"
                            "max_total_draft_tokens=40",
                            "combine=[EarlyExit,Medusa],expansion=[4,2],exit_layer=1"}) {
    all.push_back({.speculative = shape});
    all.push_back({.speculative = shape, .page_size = 1, .batch = 1, .prefill_chunk = 4});
    all.push_back({.speculative = shape, .batch = 3, .prefill_chunk = 5, .preempt_every = 5});
  }
  for (const WeightPrecision weights : {WeightPrecision::kF32, WeightPrecision::kQ8, WeightPrecision::kQ4}) {
    all.push_back({.speculative = "medusa", .weights = weights});
    all.push_back({.speculative = "medusa,max_draft_len=2,policy=auto", .weights = weights});
  }
  return all;
}

// Made-up heads are seldom right; that they are now and then makes the test see what acceptance leaves
// behind.
TEST_F(MedusaTest, TokensAreThoseOfPlainDecoding) {
  int64_t accepted = 0;
  for (const double temperature : {0.0, 1.0}) {
    for (const Variant& variant : variants()) {
      const auto plain = complete({.weights = variant.weights}, temperature);
      const auto drafted = complete(variant, temperature);
      ASSERT_EQ(plain.size(), drafted.size());
      for (size_t i = 0; i < plain.size(); ++i) {
        ASSERT_EQ(plain[i].tokens, drafted[i].tokens)
            << describe(variant) << ", temperature " << temperature << ", prompt " << i;
        EXPECT_EQ(drafted[i].speculation.draft_failures, 0) << describe(variant);
        accepted += drafted[i].speculation.accepted;
      }
    }
  }
  EXPECT_GT(accepted, 50);
}

// Drafts depend on a sequence's tokens alone: under rejection, too, a sequence gives the same text in
// company.
TEST_F(MedusaTest, RejectionGivesTheSameTextAloneAndTogether) {
  for (const char* shape : {"medusa", "medusa,expansion=[8,3]"}) {
    const auto together = complete({.speculative = shape, .acceptance = AcceptanceRule::kRejection}, 1.0);
    for (const int batch : {1, 3}) {
      const Variant variant{.speculative = shape,
                            .page_size = 1,
                            .batch = batch,
                            .prefill_chunk = 5,
                            .acceptance = AcceptanceRule::kRejection};
      const auto completions = complete(variant, 1.0);
      for (size_t i = 0; i < together.size(); ++i)
        EXPECT_EQ(together[i].tokens, completions[i].tokens) << describe(variant) << ", prompt " << i;
    }
  }
}

std::vector<TokenId> likeliest(std::span<const float> logits, size_t count) {
  std::vector<TokenId> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
  std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  order.resize(count);
  return order;
}

// One law per level: the node [0, 2] is the third likeliest token of the second head, whatever the path.
TEST_F(MedusaTest, AGreedyTreeHoldsTheListedRanksOfTheHeads) {
  const auto parts =
      parts_of({.speculative = "medusa,medusa_choices=[[0],[1],[1,0],[1,1],[1,2],[0,0],[1,1,0]]"});
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  Drafter& drafter = *(*parts)->drafter;
  const std::vector<TokenId> tokens = {5, 6, 7, 8};
  const std::vector<float> state = made_up_tensor("state", {2, kHidden});
  const std::vector<int> rows = {0, 1};
  const CommittedFeatures committed{
      .sequence = 1, .tokens = tokens, .first = 1, .rows = rows, .features = state.data(), .size = kHidden};
  drafter.begin(1, tokens);
  drafter.absorb({&committed, 1});
  const SamplingParams sampling;
  DraftRequest request{.sequence = 1,
                       .tokens = tokens,
                       .prompt_length = 4,
                       .max_depth = 3,
                       .max_nodes = 7,
                       .sampling = &sampling};
  TokenTree tree(8);
  ASSERT_TRUE(drafter.draft({&request, 1}, {&tree, 1}).ok());

  const auto heads = MedusaHeads::load(*open_head(path_), (*parts)->target->config(),
                                       {.kernels = *select_kernels((*parts)->info.kernels),
                                        .pool = (*parts)->pool.get(),
                                        .weights = std::nullopt});
  (*heads)->start(state.data() + kHidden, 1);
  const auto first = likeliest((*heads)->logits(0), 2);
  const auto second = likeliest((*heads)->logits(1), 3);
  const auto third = likeliest((*heads)->logits(2), 1);
  EXPECT_THAT(tree.tokens(),
              ElementsAre(8, first[0], first[1], second[0], second[0], second[1], second[2], third[0]));
  EXPECT_THAT(tree.parents(), ElementsAre(-1, 0, 0, 1, 2, 2, 2, 5));

  // A token later the state is an old one: nothing to propose.
  const std::vector<TokenId> more = {5, 6, 7, 8, 9};
  request.tokens = more;
  tree.reset(9);
  ASSERT_TRUE(drafter.draft({&request, 1}, {&tree, 1}).ok());
  EXPECT_EQ(tree.drafted(), 0);
  EXPECT_EQ(drafter.known_tokens(tokens), 2);
}

TEST_F(MedusaTest, TheDirectoryAloneSaysWhichMethodItIs) {
  SpeculativeOptions open = parse_speculative("speculative_model=" + path_.string())->options;
  const auto settled_options = settled(open);
  ASSERT_TRUE(settled_options.ok());
  EXPECT_EQ(settled_options->decoding_type, "Medusa");
  EXPECT_THAT(refusal({.speculative = "draft_target"}), AllOf(HasSubstr("kind Medusa"), HasSubstr("leave")));
  const auto automatic = settled(parse_speculative("auto,speculative_model=" + path_.string())->options);
  EXPECT_THAT(automatic->combine, ElementsAre("Suffix", "Medusa"));
}

TEST_F(MedusaTest, ChoicesComeFromTheOptionThenTheConfigThenThePublishedOnes) {
  const auto choices = [&](const std::string& speculative) {
    return settled(parse_speculative(speculative + ",speculative_model=" + path_.string())->options)
        ->medusa_choices;
  };
  EXPECT_EQ(choices("medusa"), first_choices(published_choices(), 3, 63));
  made_.config["medusa_accuracies"] = {{0.6, 0.2}, {0.4}, {0.3}};
  made_.write();
  EXPECT_EQ(choices("medusa,tree=choices,max_total_draft_tokens=3"), (TreeChoices{{0}, {0, 0}, {1}}));
  EXPECT_EQ(choices("medusa,medusa_choices=[[0],[1]]"), (TreeChoices{{0}, {1}}));
  EXPECT_THAT(refusal({.speculative = "medusa,medusa_choices=[[0],[0,0],[0,0,0],[0,0,0,0]]"}),
              AllOf(HasSubstr("heads, 3"), HasSubstr("found 4")));
  EXPECT_THAT(refusal({.speculative = "medusa,medusa_choices=[[1]]"}), HasSubstr("[1] without [0]"));
}

TEST_F(MedusaTest, HeadsOfAnotherTargetAreRefused) {
  made_.config["outrider_target"] = target_fingerprint(*open_model(target_path()));
  made_.write();
  EXPECT_EQ(refusal({.speculative = "medusa"}), "");
  made_.config["outrider_target"] = "0123456789abcdef";
  made_.write();
  EXPECT_THAT(refusal({.speculative = "medusa"}),
              AllOf(HasSubstr("another target"), HasSubstr("0123456789abcdef")));
}

}  // namespace
}  // namespace outrider
