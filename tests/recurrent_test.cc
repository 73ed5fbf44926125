// SPDX-License-Identifier: Apache-2.0
// EAGLE, EAGLE-3 and MTP in the engine: the same tokens as without them, and drafts that depend on a
// sequence's tokens alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/speculative_config.h"
#include "engine/engine_parts.h"
#include "heads/head_file.h"
#include "heads/recurrent_test_data.h"

namespace outrider {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string target_path() { return OUTRIDER_SOURCE_DIR "/tests/data/models/llama"; }

struct Variant {
  std::string head = "";  // a golden's name; none: plain decoding
  std::string shape = "max_draft_len=3";
  int page_size = 16;
  int batch = 4;
  int prefill_chunk = 256;
  int preempt_every = 0;
  WeightPrecision weights = WeightPrecision::kAuto;
  AcceptanceRule acceptance = AcceptanceRule::kCoupled;
  std::string kernels = "";
};

std::string describe(const Variant& variant) {
  return variant.head + " " + variant.shape + ", page " + std::to_string(variant.page_size) + ", batch " +
         std::to_string(variant.batch) + ", chunk " + std::to_string(variant.prefill_chunk) + ", preempts " +
         std::to_string(variant.preempt_every) + ", weights " +
         std::to_string(static_cast<int>(variant.weights)) + " " + variant.kernels;
}

std::unique_ptr<Engine> open_engine(const Variant& variant) {
  EngineOptions options;
  options.model = target_path();
  options.threads = 2;
  options.page_size = variant.page_size;
  options.max_batch = variant.batch;
  options.prefill_chunk = variant.prefill_chunk;
  options.weights = variant.weights;
  options.acceptance = variant.acceptance;
  options.kernels = variant.kernels;
  MadeUpHead made;
  if (!variant.head.empty()) {
    fill_head(made, head_golden(variant.head));
    const auto config = parse_speculative("speculative_model=x," + variant.shape);
    if (!config.ok()) ADD_FAILURE() << config.error().message;
    options.speculation = config->options;
    options.speculation.speculative_model = made.write();
  }
  auto parts = open_parts(std::move(options));
  if (!parts.ok()) {
    ADD_FAILURE() << parts.error().message;
    return nullptr;
  }
  (*parts)->preempt_every = variant.preempt_every;
  return Engine::assemble(std::move(*parts));
}

std::vector<Completion> complete(const Variant& variant, double temperature) {
  const auto engine = open_engine(variant);
  std::vector<Completion> completions(6);
  for (size_t i = 0; i < completions.size(); ++i) {
    Request request;
    // The last three begin like the first ones, and find their pages; one is a single token.
    const size_t length = i == 1 ? 1 : 9 + 25 * (i % 3);
    for (size_t j = 0; j < length; ++j)
      request.prompt.push_back(static_cast<TokenId>((j * j + 3 * j + (i < 3 ? i : 2)) % 280));
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

// Of plain decoding, which no other choice changes.
const std::vector<Completion>& plain_completions(WeightPrecision weights, double temperature) {
  static std::map<std::pair<WeightPrecision, double>, std::vector<Completion>> known;
  auto& completions = known[{weights, temperature}];
  if (completions.empty()) completions = complete({.weights = weights}, temperature);
  return completions;
}

const char* const kChain = "max_draft_len=3";
const char* const kStatic = "expansion=[3,2,1]";
const char* const kDynamic = "max_draft_len=4,dynamic_tree_max_topK=5,max_total_draft_tokens=24";

std::vector<Variant> variants_of(const std::string& head) {
  std::vector<Variant> all;
  for (const char* shape : {kChain, kStatic, kDynamic}) {
    all.push_back({.head = head, .shape = shape});
    all.push_back({.head = head, .shape = shape, .page_size = 1, .batch = 1, .prefill_chunk = 4});
    all.push_back(
        {.head = head, .shape = shape, .page_size = 4, .batch = 3, .prefill_chunk = 5, .preempt_every = 5});
  }
  all.push_back({.head = head, .shape = std::string("decoding_type=auto,") + kDynamic, .batch = 3});
  all.push_back({.head = head, .shape = std::string(kChain) + ",policy=auto", .preempt_every = 7});
  for (const WeightPrecision weights :
       {WeightPrecision::kF32, WeightPrecision::kQ8_0, WeightPrecision::kQ8, WeightPrecision::kQ4}) {
    all.push_back({.head = head, .shape = kDynamic, .weights = weights});
  }
  return all;
}

class Recurrent : public testing::TestWithParam<const char*> {};

// Made-up heads are seldom right; that they are now and then makes the test see what acceptance leaves
// behind.
TEST_P(Recurrent, TokensAreThoseOfPlainDecoding) {
  int64_t accepted = 0;
  for (const double temperature : {0.0, 1.0}) {
    for (const Variant& variant : variants_of(GetParam())) {
      const auto& plain = plain_completions(variant.weights, temperature);
      const auto drafted = complete(variant, temperature);
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

// Drafts are a function of a sequence's tokens: neither company, chunks, pages nor what the caches hold
// changes how many pass, nor what rejection makes of the same draws.
TEST_P(Recurrent, DraftsDependOnTheTokensAlone) {
  for (const char* shape : {kChain, kStatic, kDynamic}) {
    for (const AcceptanceRule rule : {AcceptanceRule::kCoupled, AcceptanceRule::kRejection}) {
      const auto expected =
          complete({.head = GetParam(), .shape = shape, .batch = 1, .acceptance = rule}, 1.0);
      int64_t drafted = 0;
      for (const Variant& variant :
           {Variant{.head = GetParam(), .shape = shape, .acceptance = rule},
            Variant{.head = GetParam(), .shape = shape, .page_size = 1, .batch = 6, .acceptance = rule},
            Variant{.head = GetParam(),
            .shape = shape,
            .page_size = 4,
            .batch = 3,
            .prefill_chunk = 5,
            .acceptance = rule},
            Variant{
                .head = GetParam(), .shape = shape, .batch = 2, .prefill_chunk = 19, .acceptance = rule}}) {
        const auto found = complete(variant, 1.0);
        for (size_t i = 0; i < expected.size(); ++i) {
          ASSERT_EQ(expected[i].tokens, found[i].tokens) << describe(variant) << ", prompt " << i;
          ASSERT_EQ(expected[i].speculation.drafted_per_position, found[i].speculation.drafted_per_position)
              << describe(variant) << ", prompt " << i;
          ASSERT_EQ(expected[i].speculation.accepted_per_position, found[i].speculation.accepted_per_position)
              << describe(variant) << ", prompt " << i;
          drafted += found[i].speculation.drafted;
        }
      }
      EXPECT_GT(drafted, 500);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, Recurrent,
                         testing::Values("eagle", "eagle_two_layers", "eagle3", "eagle3_one_tap",
                                         "eagle3_speculators", "mtp", "mtp_chained", "mtp_qwen"),
                         [](const auto& info) { return std::string(info.param); });

// A later request finds entries of an earlier one in both caches, and drafts the same from them.
TEST(RecurrentCache, SharedBeginningsAreComputedOnce) {
  const auto engine = open_engine({.head = "eagle3", .page_size = 4});
  Request request;
  for (TokenId j = 0; j < 60; ++j) request.prompt.push_back((j * j + 3 * j) % 280);
  request.max_tokens = 30;
  request.ignore_eos = true;
  const auto first = engine->generate(request);
  const auto again = engine->generate(request);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first->cached_tokens, 0);
  EXPECT_EQ(again->cached_tokens, 56);  // entry 58 and the features of token 58 are the root's
  EXPECT_EQ(first->tokens, again->tokens);
  EXPECT_EQ(first->speculation.drafted, again->speculation.drafted);
  EXPECT_EQ(first->speculation.accepted, again->speculation.accepted);
  // Another first token with the same tokens behind it has other states.
  request.prompt.front() = 5;
  const auto other = engine->generate(request);
  EXPECT_EQ(other->cached_tokens, 0);
}

// A drafter by itself, told made-up features of made-up texts.
class LoneDrafter {
 public:
  explicit LoneDrafter(const std::string& head) : engine_(open_engine({.head = head, .page_size = 4})) {}

  Drafter& operator*() { return *engine_->parts().drafter; }
  Drafter* operator->() { return engine_->parts().drafter.get(); }

  // Tokens first.. of a text become known, the last one pending.
  void absorb(uint64_t sequence, std::span<const TokenId> tokens, int first) {
    const int64_t size = (*this)->traits().features.count() * 64;
    std::vector<float> features;
    std::vector<int> rows;
    for (size_t i = static_cast<size_t>(first); i + 1 < tokens.size(); ++i) {
      // Of all tokens up to this one, as the target's are.
      std::string text;
      for (const TokenId token : tokens.first(i + 1)) text += std::to_string(token) + " ";
      const auto row = made_up_tensor(text, {size});
      features.insert(features.end(), row.begin(), row.end());
      rows.push_back(static_cast<int>(rows.size()));
    }
    const CommittedFeatures committed{.sequence = sequence,
                                      .tokens = tokens,
                                      .first = first,
                                      .rows = rows,
                                      .features = features.data(),
                                      .size = size};
    (*this)->absorb({&committed, 1});
  }

  std::vector<TokenId> draft(uint64_t sequence, std::span<const TokenId> tokens) {
    const SamplingParams sampling;
    const DraftRequest request{.sequence = sequence,
                               .tokens = tokens,
                               .prompt_length = static_cast<int>(tokens.size()),
                               .max_depth = 3,
                               .max_nodes = 3,
                               .sampling = &sampling};
    TokenTree tree(tokens.back());
    EXPECT_TRUE((*this)->draft({&request, 1}, {&tree, 1}).ok());
    return {tree.tokens().begin(), tree.tokens().end()};
  }

  // What is drafted for a text that is known at once.
  std::vector<TokenId> draft_afresh(uint64_t sequence, std::span<const TokenId> tokens) {
    (*this)->begin(sequence, tokens);
    absorb(sequence, tokens, 0);
    return draft(sequence, tokens);
  }

 private:
  std::unique_ptr<Engine> engine_;
};

std::vector<TokenId> made_up_text(size_t length) {
  std::vector<TokenId> text;
  for (size_t i = 0; i < length; ++i) text.push_back(static_cast<TokenId>((i * i * 5 + i + 9) % 280));
  return text;
}

class RecurrentState : public testing::TestWithParam<const char*> {};

TEST_P(RecurrentState, HowFeaturesCameChangesNoDraft) {
  const std::vector<TokenId> text = made_up_text(70);
  const auto until = [&](size_t length) { return std::span(text).first(length); };
  LoneDrafter fresh(GetParam()), paused(GetParam()), steady(GetParam());
  const auto expected = fresh.draft_afresh(1, text);
  ASSERT_EQ(expected.size(), 4u);
  paused->begin(1, until(20));
  steady->begin(1, until(20));
  paused.absorb(1, until(20), 0);
  steady.absorb(1, until(20), 0);
  for (size_t length = 21, had = 20; length <= text.size(); length += 1 + length % 4) {
    // Drafted entries of wrong tokens must leave nothing behind.
    EXPECT_EQ(steady.draft(1, until(had)).size(), 4u);
    paused.absorb(1, until(length), static_cast<int>(had) - 1);
    steady.absorb(1, until(length), static_cast<int>(had) - 1);
    had = length;
    if (length + 1 + length % 4 > text.size()) {
      const auto last = LoneDrafter(GetParam()).draft_afresh(1, until(length));
      EXPECT_EQ(paused.draft(1, until(length)), last);
      EXPECT_EQ(steady.draft(1, until(length)), last);
    }
  }
  // What was told before is told again.
  LoneDrafter again(GetParam());
  again->begin(1, text);
  again.absorb(1, until(40), 0);
  again.absorb(1, text, 11);
  EXPECT_EQ(again.draft(1, text), expected);
}

TEST_P(RecurrentState, MissingFeaturesEndTheDrafting) {
  const std::vector<TokenId> text = made_up_text(40);
  LoneDrafter drafter(GetParam());
  drafter->begin(1, text);
  EXPECT_EQ(drafter.draft(1, text).size(), 1u);  // nothing was told yet
  drafter.absorb(1, std::span(text).first(10), 0);
  EXPECT_EQ(drafter.draft(1, text).size(), 1u);  // not up to the pending token
  drafter.absorb(1, text, 12);
  EXPECT_EQ(drafter.draft(1, text).size(), 1u);
  drafter->end(1);
  EXPECT_EQ(drafter.draft_afresh(1, text).size(), 4u);
}

TEST_P(RecurrentState, EntriesAreSharedByTextsThatBeginAlike) {
  std::vector<TokenId> text = made_up_text(40);
  LoneDrafter drafter(GetParam());
  const auto expected = drafter.draft_afresh(1, text);
  const bool carries = std::string(GetParam()) == "mtp_chained";
  // Entries for 39 - 1 tokens, in full pages of 4.
  const int64_t known = drafter->known_tokens(text);
  EXPECT_EQ(known, carries ? 0 : 36);
  // Nobody learns by the time a draft takes what another wrote.
  EXPECT_EQ(drafter->known_tokens(text, 7), 0);
  drafter->begin(2, text);
  drafter.absorb(2, text, static_cast<int>(known));
  EXPECT_EQ(drafter.draft(2, text), expected);
  // Drafted tokens are nobody's text.
  const auto longer = [&](std::vector<TokenId> tail) {
    auto tokens = text;
    tokens.insert(tokens.end(), tail.begin(), tail.end());
    return tokens;
  };
  const auto drafted = longer({expected.begin() + 1, expected.end()});
  EXPECT_EQ(drafter->known_tokens(drafted), carries ? 0 : 36);
  // The first token is in every entry's state, though in no entry's tokens.
  text.front() += 1;
  EXPECT_EQ(drafter->known_tokens(text), 0);
  EXPECT_EQ(drafter.draft_afresh(3, text), LoneDrafter(GetParam()).draft_afresh(3, text));
}

INSTANTIATE_TEST_SUITE_P(Heads, RecurrentState, testing::Values("eagle", "eagle3", "mtp_chained", "mtp_qwen"),
                         [](const auto& info) { return std::string(info.param); });

TEST(RecurrentOptions, OtherKindsAndTargetsAreRefused) {
  MadeUpHead made;
  fill_head(made, head_golden("eagle"));
  const auto refusal = [&](const std::string& method) {
    EngineOptions options;
    options.model = target_path();
    options.speculation.decoding_type = method;
    options.speculation.speculative_model = made.write();
    const auto parts = open_parts(options);
    return parts.ok() ? "" : parts.error().message;
  };
  EXPECT_EQ(refusal("Eagle"), "");
  EXPECT_THAT(refusal("Eagle3"), AllOf(HasSubstr("found Eagle"), HasSubstr("use decoding_type Eagle")));
  EXPECT_THAT(refusal("MTP"), HasSubstr("found Eagle"));
  made.config["outrider_target"] = "0123456789abcdef";
  EXPECT_THAT(refusal("Eagle"), AllOf(HasSubstr("another target"), HasSubstr("0123456789abcdef")));
  made.config["outrider_target"] = target_fingerprint(*open_model(target_path()));
  EXPECT_EQ(refusal("Eagle"), "");
}

}  // namespace
}  // namespace outrider
