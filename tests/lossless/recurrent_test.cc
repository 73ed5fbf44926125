// SPDX-License-Identifier: Apache-2.0
// The entries that EAGLE, EAGLE-3 and MTP keep of a sequence, and the targets that they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "config/methods.h"
#include "draft_heads/head_file.h"
#include "draft_heads/recurrent_test_data.h"
#include "models/backend/device/make_backends.h"
#include "open/parts.h"
#include "tests/lossless/lossless.h"
#include "tests/lossless/test_heads.h"

namespace outrider {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::unique_ptr<Engine> open_engine(const std::string& golden) {
  const auto head = make_recurrent(golden);
  const Variant variant{.speculative = "speculative_model=x,max_draft_len=3",
                        .page_size = 4,
                        .batch = 4,
                        .head = head->write()};
  auto parts = open_variant({}, variant, small_target());
  if (!parts.ok()) {
    ADD_FAILURE() << parts.error().message;
    return nullptr;
  }
  return Engine::assemble(std::move(*parts));
}

// A later request finds entries of an earlier one in both caches, and drafts the same from them.
TEST(RecurrentCache, SharedBeginningsAreComputedOnce) {
  const auto engine = open_engine("eagle3");
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
  // Another first token changes the states of all later tokens.
  request.prompt.front() = 5;
  const auto other = engine->generate(request);
  EXPECT_EQ(other->cached_tokens, 0);
}

// A drafter by itself, which gets fake features of fake texts.
class LoneDrafter {
 public:
  explicit LoneDrafter(const std::string& head) : engine_(open_engine(head)) {}

  Drafter& operator*() { return *engine_->parts().drafter; }
  Drafter* operator->() { return engine_->parts().drafter.get(); }

  // Hands over the features of the tokens from `first` on, except the last, which is pending.
  void absorb(uint64_t sequence, std::span<const TokenId> tokens, int first) {
    const int64_t size = (*this)->traits().features.count() * 64;
    std::vector<float> features;
    std::vector<int> rows;
    for (size_t i = static_cast<size_t>(first); i + 1 < tokens.size(); ++i) {
      // The features depend on all tokens up to this one, as the target's do.
      std::string text;
      for (const TokenId token : tokens.first(i + 1)) text += std::to_string(token) + " ";
      const auto row = fake_tensor(text, {size});
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
                               .max_draft_len = 3,
                               .max_nodes = 3,
                               .sampling = &sampling};
    TokenTree tree(tokens.back());
    EXPECT_TRUE((*this)->draft({&request, 1}, {&tree, 1}).ok());
    return {tree.tokens().begin(), tree.tokens().end()};
  }

  // The tree for a text that is handed over at once.
  std::vector<TokenId> draft_afresh(uint64_t sequence, std::span<const TokenId> tokens) {
    (*this)->begin(sequence, tokens);
    absorb(sequence, tokens, 0);
    return draft(sequence, tokens);
  }

 private:
  std::unique_ptr<Engine> engine_;
};

std::vector<TokenId> fake_text(size_t length) {
  std::vector<TokenId> text;
  for (size_t i = 0; i < length; ++i) text.push_back(static_cast<TokenId>((i * i * 5 + i + 9) % 280));
  return text;
}

class RecurrentState : public testing::TestWithParam<const char*> {};

TEST_P(RecurrentState, HowFeaturesCameChangesNoDraft) {
  const std::vector<TokenId> text = fake_text(70);
  const auto until = [&](size_t length) { return std::span(text).first(length); };
  LoneDrafter fresh(GetParam()), paused(GetParam()), steady(GetParam());
  const auto expected = fresh.draft_afresh(1, text);
  ASSERT_EQ(expected.size(), 4u);
  paused->begin(1, until(20));
  steady->begin(1, until(20));
  paused.absorb(1, until(20), 0);
  steady.absorb(1, until(20), 0);
  for (size_t length = 21, had = 20; length <= text.size(); length += 1 + length % 4) {
    // Entries of rejected tokens must leave no trace.
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
  // Hands over features for a second time.
  LoneDrafter again(GetParam());
  again->begin(1, text);
  again.absorb(1, until(40), 0);
  again.absorb(1, text, 11);
  EXPECT_EQ(again.draft(1, text), expected);
}

TEST_P(RecurrentState, MissingFeaturesEndTheDrafting) {
  const std::vector<TokenId> text = fake_text(40);
  LoneDrafter drafter(GetParam());
  drafter->begin(1, text);
  EXPECT_EQ(drafter.draft(1, text).size(), 1u);  // it has no features yet
  drafter.absorb(1, std::span(text).first(10), 0);
  EXPECT_EQ(drafter.draft(1, text).size(), 1u);  // the features end before the pending token
  drafter.absorb(1, text, 12);
  EXPECT_EQ(drafter.draft(1, text).size(), 1u);
  drafter->end(1);
  EXPECT_EQ(drafter.draft_afresh(1, text).size(), 4u);
}

TEST_P(RecurrentState, EntriesAreSharedByTextsThatBeginAlike) {
  std::vector<TokenId> text = fake_text(40);
  LoneDrafter drafter(GetParam());
  const auto expected = drafter.draft_afresh(1, text);
  // Entries for 39 - 1 tokens, in full pages of 4.
  const int64_t known = drafter->known_tokens(text);
  EXPECT_EQ(known, 36);
  // The time of a draft must not tell one scope about the text of another.
  EXPECT_EQ(drafter->known_tokens(text, 7), 0);
  drafter->begin(2, text);
  drafter.absorb(2, text, static_cast<int>(known));
  EXPECT_EQ(drafter.draft(2, text), expected);
  // Drafted tokens are not part of any cached text.
  const auto longer = [&](std::vector<TokenId> tail) {
    auto tokens = text;
    tokens.insert(tokens.end(), tail.begin(), tail.end());
    return tokens;
  };
  const auto drafted = longer({expected.begin() + 1, expected.end()});
  EXPECT_EQ(drafter->known_tokens(drafted), 36);
  // The first token is in every entry's state, though in no entry's tokens.
  text.front() += 1;
  EXPECT_EQ(drafter->known_tokens(text), 0);
  EXPECT_EQ(drafter.draft_afresh(3, text), LoneDrafter(GetParam()).draft_afresh(3, text));
}

INSTANTIATE_TEST_SUITE_P(Heads, RecurrentState, testing::Values("eagle", "eagle3", "mtp_chained", "mtp_qwen"),
                         [](const auto& info) { return std::string(info.param); });

// Modules with the layers of their targets' families: experts, latent and gated attention, beside recurrent
// layers of the target.
TEST(FamilyModules, TokensAreThoseOfPlainDecoding) {
  for (const char* target :
       {"qwen3_5", "qwen3_5_moe", "qwen3_next", "deepseek_v3", "glm4_moe_lite", "glm4_moe"}) {
    FakeHead head;
    fill_head(head, family_module_golden(target));
    head.write();
    int64_t accepted = 0;
    for (const double temperature : {0.0, 1.0}) {
      Workload workload = token_workload(temperature);
      workload.target = std::string(OUTRIDER_SOURCE_DIR "/tests/data/models/") + target;
      const auto plain = run_variant({}, {}, workload);
      const Variant variants[] = {
          {.speculative = "mtp,max_draft_len=3", .page_size = 1, .prefill_chunk = 5},
          {.speculative = "mtp,expansion=[6,2,1]", .page_size = 4, .batch = 3, .preempt_every = 5},
          {.speculative = "mtp,max_draft_len=4,dynamic_tree_max_topK=6,max_total_draft_tokens=40",
           .batch = 4},
          {.speculative = "combine=[suffix,mtp],expansion=[3,2]", .page_size = 4, .batch = 2}};
      for (Variant variant : variants) {
        variant.head = head.path();
        const auto drafted = run_variant({}, variant, workload);
        expect_same(plain, drafted, std::string(target) + ", " + describe(variant));
        if (testing::Test::HasFatalFailure()) return;
        for (const Completion& completion : drafted) accepted += completion.speculation.accepted;
      }
    }
    EXPECT_GT(accepted, 10) << target;
  }
}

// Module k drafts level k, and reads entries from the k-th on.
TEST(FamilyModules, OfSeveralEachDraftsALevel) {
  for (const char* name : {"deepseek_v3_chained", "glm4_moe_chained"}) {
    const nlohmann::json golden = family_module_golden(name);
    FakeHead head;
    fill_head(head, golden);
    head.write();
    int64_t accepted = 0;
    for (const double temperature : {0.0, 1.0}) {
      Workload workload = token_workload(temperature);
      workload.target = OUTRIDER_SOURCE_DIR "/tests/data/models/" + golden["target"].get<std::string>();
      const auto plain = run_variant({}, {}, workload);
      const Variant variants[] = {
          {.speculative = "mtp,max_draft_len=2", .page_size = 1, .prefill_chunk = 5},
          {.speculative = "mtp,expansion=[6,2]", .page_size = 4, .batch = 3, .preempt_every = 5},
          {.speculative = "combine=[suffix,mtp],expansion=[3,2]", .page_size = 4, .batch = 2}};
      for (Variant variant : variants) {
        variant.head = head.path();
        const auto drafted = run_variant({}, variant, workload);
        expect_same(plain, drafted, std::string(name) + ", " + describe(variant));
        if (testing::Test::HasFatalFailure()) return;
        for (const Completion& completion : drafted) accepted += completion.speculation.accepted;
      }
    }
    EXPECT_GT(accepted, 10) << name;
  }
}

// On a device, target and module share what their blocks need.
TEST(FamilyModules, TokensAreThoseOfPlainDecodingOnADevice) {
  const auto table = select_device_kernels();
  if (!table.ok()) GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  const Numerics device{.kernels = std::string((*table)->name), .device = ComputeDevice::kEmulated};
  for (const char* target : {"qwen3_next", "deepseek_v3"}) {
    FakeHead head;
    fill_head(head, family_module_golden(target));
    Workload workload = token_workload(0.0, 12);
    workload.target = std::string(OUTRIDER_SOURCE_DIR "/tests/data/models/") + target;
    const Variant variant{
        .speculative = "mtp,expansion=[6,2,1]", .page_size = 4, .batch = 3, .head = head.write()};
    expect_same(run_variant(device, {}, workload), run_variant(device, variant, workload), target);
  }
}

TEST(RecurrentOptions, OtherKindsAndTargetsAreRefused) {
  FakeHead made;
  fill_head(made, head_golden("eagle"));
  const auto refusal = [&](const std::string& method) {
    EngineOptions options;
    options.model = small_target();
    options.speculation.decoding_type = *find_method(method);
    options.speculation.speculative_model = made.write();
    const auto parts = open_parts(options);
    return parts.ok() ? "" : parts.error().message;
  };
  EXPECT_EQ(refusal("Eagle"), "");
  EXPECT_THAT(refusal("Eagle3"), AllOf(HasSubstr("kind Eagle,"), HasSubstr("found decoding_type Eagle3")));
  EXPECT_THAT(refusal("MTP"), HasSubstr("kind Eagle"));
  made.config["outrider_target"] = "0123456789abcdef";
  EXPECT_THAT(refusal("Eagle"), AllOf(HasSubstr("another target"), HasSubstr("0123456789abcdef")));
  made.config["outrider_target"] = target_fingerprint(*open_model(small_target()));
  EXPECT_EQ(refusal("Eagle"), "");
}

}  // namespace
}  // namespace outrider
