// SPDX-License-Identifier: Apache-2.0
// Options of requests, on the built-in models: log-probabilities, several answers to one prompt, constraints
// and speculation by request. The output must equal plain decoding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"
#include "config/methods.h"
#include "engine/engine_parts.h"
#include "open/parts.h"
#include "outrider/engine.h"
#include "outrider/trace.h"
#include "tests/support/toy_constraint.h"

namespace outrider {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::string kModels = std::string(OUTRIDER_SOURCE_DIR) + "/models/";
constexpr const char* kPrompt = "Once upon a time, Lily found a red ball. Lily and the red ball";

EngineOptions options_for(const std::string& drafter, bool is_auto = false) {
  EngineOptions options;
  options.model = kModels + "outrider-small";
  options.threads = 2;
  options.context = 512;
  options.speculation.decoding_type = *find_method(drafter);
  options.speculation.speculative_model = kModels + "outrider-draft";
  options.speculation.speculative_models = {kModels + "outrider-draft", kModels + "outrider-draft"};
  options.speculation.combine = {Method::kNGram, Method::kEarlyExit};
  options.speculation.is_auto = is_auto;
  return options;
}

std::unique_ptr<Engine> open(const EngineOptions& options) {
  auto engine = Engine::open(options);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  return std::move(engine).value();
}

std::unique_ptr<Engine> open(const std::string& drafter, bool is_auto = false) {
  return open(options_for(drafter, is_auto));
}

Request request_for(const Engine& engine, double temperature = 0.0) {
  Request request;
  request.prompt = engine.tokenize(kPrompt);
  request.max_tokens = 24;
  request.sampling.temperature = temperature;
  request.sampling.seed = 11;
  request.ignore_eos = true;
  return request;
}

Completion completion_of(Engine& engine, const Request& request) {
  auto completion = engine.generate(request);
  EXPECT_TRUE(completion.ok()) << completion.error().message;
  return completion.ok() ? *completion : Completion();
}

std::string refusal_of(Engine& engine, const Request& request) {
  const auto id = engine.submit(request);
  return id.ok() ? "accepted" : id.error().message;
}

// Runs all requests together.
std::vector<Completion> run_all(Engine& engine, const std::vector<Request>& requests) {
  std::vector<Completion> completions(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto id = engine.submit(requests[i], [&completions, i](RequestId, const Progress& progress) {
      if (progress.completion != nullptr) completions[i] = *progress.completion;
    });
    EXPECT_TRUE(id.ok()) << id.error().message;
  }
  while (engine.step()) {
  }
  return completions;
}

TEST(Logprobs, AreThoseOfScoringTheSameTextWhateverDrafts) {
  for (const std::string drafter : {"None", "NGram", "DraftTarget", "EarlyExit", "Lookahead", "SpecInfer"}) {
    const auto engine = open(drafter);
    for (const double temperature : {0.0, 0.9}) {
      Request request = request_for(*engine, temperature);
      request.sampling.top_k = 40;
      request.sampling.repetition_penalty = 1.1;
      request.logprobs = 4;
      const Completion completion = completion_of(*engine, request);
      std::vector<TokenId> text = request.prompt;
      text.insert(text.end(), completion.tokens.begin(), completion.tokens.end());
      const auto scores = engine->score(text);
      ASSERT_TRUE(scores.ok()) << scores.error().message;
      ASSERT_EQ(completion.logprobs.size(), completion.tokens.size());
      for (size_t i = 0; i < completion.tokens.size(); ++i) {
        const TokenLogprobs& logprobs = completion.logprobs[i];
        ASSERT_EQ(logprobs.logprob, static_cast<float>((*scores)[request.prompt.size() + i])) << drafter;
        ASSERT_EQ(logprobs.top.size(), 4u);
        for (size_t j = 1; j < 4; ++j) ASSERT_GE(logprobs.top[j - 1].second, logprobs.top[j].second);
        ASSERT_LE(logprobs.logprob, logprobs.top[0].second);
      }
    }
  }
}

TEST(Streams, DifferAndEachIsWhatItIsAlone) {
  const auto plain = open("None");
  for (const std::string drafter : {"DraftTarget", "EarlyExit", "Combined"}) {
    const auto engine = open(drafter);
    std::vector<Request> requests(4, request_for(*engine, 1.0));
    for (size_t i = 0; i < requests.size(); ++i) requests[i].sample_index = i;
    std::set<std::vector<TokenId>> different;
    const std::vector<Completion> together = run_all(*engine, requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(together[i].tokens, completion_of(*plain, requests[i]).tokens) << drafter << " " << i;
      different.insert(together[i].tokens);
    }
    EXPECT_EQ(different.size(), requests.size());
  }
}

TEST(Requests, WhatIsOutOfRangeIsRefusedInOneLine) {
  const auto engine = open("NGram");
  const auto with = [&](auto change) {
    Request request = request_for(*engine);
    change(request);
    return refusal_of(*engine, request);
  };
  EXPECT_THAT(with([](Request& r) { r.logprobs = 21; }), HasSubstr("logprobs must be 0 to 20"));
  EXPECT_THAT(with([](Request& r) { r.logprobs = -2; }), HasSubstr("found -2"));
  EXPECT_THAT(with([](Request& r) { r.speculation.max_draft_tokens = -1; }),
              HasSubstr("max draft tokens must be 0 or more, found -1"));
  EXPECT_THAT(with([](Request& r) { r.speculation.max_draft_len = -1; }),
              HasSubstr("max draft len must be 0 or more, found -1"));
  EXPECT_THAT(with([](Request& r) { r.speculation.max_children = -2; }),
              HasSubstr("max children must be 0 or more, found -2"));
  EXPECT_THAT(with([](Request& r) {
                r.speculation.methods = {"n_gram", "mtp"};
              }),
              HasSubstr("the method 'mtp', but the engine drafts with NGram"));
  EXPECT_EQ(with([](Request& r) { r.speculation.methods = {"n-gram"}; }), "accepted");
  EXPECT_THAT(with([](Request& r) { r.speculation.acceptance = AcceptanceRule::kRelaxed; }),
              HasSubstr("begin_thinking_phase_token: expected the id of a token that this model has"));
  EXPECT_THAT(with([](Request& r) { r.speculation.is_auto = true; }), HasSubstr("policy=auto"));
  EXPECT_EQ(with([](Request& r) { r.speculation.is_auto = false; }), "accepted");
  EXPECT_EQ(with([](Request& r) {
              r.speculation.is_auto = true;
              r.speculation.enabled = false;
            }),
            "accepted");
}

// The trees of a request.
struct Shape {
  Completion completion;
  int levels = 0, children = 0;  // of the deepest tree, and of the node with most
  uint32_t sources = 0;          // drafters with a node in any
};

// A prompt in which drafters without a model find what they need.
Request repeating_request(const Engine& engine) {
  Request request = request_for(engine);
  const std::vector<TokenId> once = request.prompt;
  for (int i = 0; i < 3; ++i) request.prompt.insert(request.prompt.end(), once.begin(), once.end());
  return request;
}

Shape shape_of(Engine& engine, const Request& request) {
  Shape shape;
  engine.set_trace_sink([&](const StepTrace& step) {
    std::vector<int> children(step.nodes.size(), 0), depths(step.nodes.size(), 0);
    for (size_t i = 1; i < step.nodes.size(); ++i) {
      if (step.nodes[i].fate == NodeFate::kOverBudget) continue;  // it was cut
      const auto parent = static_cast<size_t>(step.nodes[i].parent);
      shape.children = std::max(shape.children, ++children[parent]);
      shape.levels = std::max(shape.levels, depths[i] = depths[parent] + 1);
      shape.sources |= step.nodes[i].sources;
    }
  });
  shape.completion = completion_of(engine, request);
  engine.set_trace_sink({});
  return shape;
}

TEST(Requests, NarrowTheTreesOfTheEngine) {
  for (const char* drafter : {"DraftTarget", "NGram", "Suffix", "Combined", "SpecInfer"}) {
    EngineOptions options = options_for(drafter);
    options.speculation.tree.kind = TreeKind::kDynamic;
    options.acceptance = AcceptanceRule::kRejection;
    const auto engine = open(options);
    Request request = repeating_request(*engine);
    const Shape as_engine = shape_of(*engine, request);
    EXPECT_GE(as_engine.levels, std::string(drafter) == "Suffix" ? 1 : 3) << drafter;
    for (const double temperature : {0.0, 0.9}) {
      request.sampling.temperature = temperature;
      request.speculation = {};
      request.speculation.max_draft_len = 2;
      const Shape flat = shape_of(*engine, request);
      EXPECT_GE(flat.levels, 1) << drafter;
      EXPECT_LE(flat.levels, 2) << drafter;
      request.speculation = {};
      request.speculation.max_children = 1;
      const Shape chain = shape_of(*engine, request);
      EXPECT_EQ(chain.children, 1) << drafter << " at " << temperature;
      if (temperature > 0.0) continue;
      EXPECT_EQ(flat.completion.tokens, as_engine.completion.tokens) << drafter;
      EXPECT_EQ(chain.completion.tokens, as_engine.completion.tokens) << drafter;
    }
  }
}

TEST(Requests, NameTheDraftersThatDraft) {
  EngineOptions options = options_for("Combined");
  options.speculation.combine = {Method::kSuffix, Method::kNGram, Method::kDraftTarget};
  options.speculation.tree.kind = TreeKind::kDynamic;
  const auto engine = open(options);
  for (const double temperature : {0.0, 0.9}) {
    Request request = repeating_request(*engine);
    request.sampling.temperature = temperature;
    const Shape all = shape_of(*engine, request);
    EXPECT_EQ(all.sources, 7u);
    for (uint32_t asked = 1; asked < 7; ++asked) {
      request.speculation.methods.clear();
      const char* const names[] = {"suffix", "NGram", "draft_target"};
      for (size_t i = 0; i < 3; ++i)
        if ((asked >> i & 1) != 0) request.speculation.methods.emplace_back(names[i]);
      const Shape some = shape_of(*engine, request);
      EXPECT_EQ(some.sources, asked) << temperature;
      EXPECT_EQ(some.completion.tokens, all.completion.tokens) << temperature;
    }
  }
}

TEST(Requests, SpeculateWithinTheirOwnLimits) {
  const auto engine = open("DraftTarget");
  Request request = request_for(*engine);
  const Completion as_engine = completion_of(*engine, request);
  request.speculation.max_draft_tokens = 2;
  const Completion limited = completion_of(*engine, request);
  request.speculation.max_draft_tokens = 100;
  const Completion unlimited = completion_of(*engine, request);
  request.speculation.enabled = false;
  const Completion plain = completion_of(*engine, request);
  EXPECT_EQ(as_engine.speculation.drafted_per_position.size(), 4u);
  EXPECT_EQ(limited.speculation.drafted_per_position.size(), 2u);
  EXPECT_EQ(unlimited.speculation.drafted, as_engine.speculation.drafted);
  EXPECT_EQ(plain.speculation.drafted, 0);
  EXPECT_EQ(plain.speculation.method, "None");
  for (const Completion* completion : {&limited, &unlimited, &plain})
    EXPECT_EQ(completion->tokens, as_engine.tokens);
}

// The engine knows its costs, but this request drafts as far as its limits allow in every step.
TEST(Requests, OfAnEngineWithCostsMayDraftRegardless) {
  const auto engine = open("NGram", /*is_auto=*/true);
  Request request = request_for(*engine);
  request.speculation.is_auto = true;
  const Completion decided = completion_of(*engine, request);
  request.speculation.is_auto = false;
  const Completion fixed = completion_of(*engine, request);
  const Completion reference = completion_of(*open("NGram"), request);
  EXPECT_EQ(fixed.tokens, decided.tokens);
  EXPECT_EQ(fixed.speculation.drafted, reference.speculation.drafted);
  EXPECT_EQ(fixed.speculation.steps, reference.speculation.steps);
}

// The long request drafts again when the short one has left.
TEST(Requests, DraftNothingWhereTheBatchIsTooLarge) {
  const auto plain = open("None");
  for (const std::string drafter : {"NGram", "DraftTarget", "EarlyExit"}) {
    EngineOptions options = options_for(drafter);
    options.speculation.draft_len_by_batch = {{1, 4}, {2, 0}};
    const auto engine = open(options);
    Request shorter = request_for(*engine), longer = shorter;
    shorter.max_tokens = 4;
    longer.max_tokens = 48;
    const std::vector<Completion> both = run_all(*engine, {shorter, longer});
    EXPECT_EQ(both[0].speculation.drafts, 0) << drafter;
    EXPECT_GT(both[1].speculation.drafts, 0) << drafter;
    EXPECT_EQ(both[1].tokens, completion_of(*plain, longer).tokens) << drafter;
  }
}

TEST(Requests, DraftNothingAfterTooLittleWasAccepted) {
  EngineOptions options = options_for("DraftTarget");
  options.speculation.acceptance_window = 2;
  options.speculation.acceptance_length_threshold = 50.0;
  const auto engine = open(options);
  const Request request = request_for(*engine);
  for (const bool drafts : {true, true, false, false})
    EXPECT_EQ(completion_of(*engine, request).speculation.drafts > 0, drafts);
}

TEST(Requests, HaveTheAcceptanceRuleTheyAskFor) {
  const auto engine = open("DraftTarget");
  std::vector<Request> requests(3, request_for(*engine, 1.0));
  requests[1].speculation.acceptance = AcceptanceRule::kTypical;
  requests[2].speculation.acceptance = AcceptanceRule::kRejection;
  const std::vector<Completion> completions = run_all(*engine, requests);
  EXPECT_EQ(completions[0].tokens, completion_of(*open("None"), requests[0]).tokens);
  EXPECT_TRUE(completions[0].speculation.lossless);
  EXPECT_FALSE(completions[1].speculation.lossless);
  EXPECT_TRUE(completions[2].speculation.lossless);
  EXPECT_NE(completions[1].tokens, completions[0].tokens);
  EXPECT_NE(completions[2].tokens, completions[0].tokens);
  // The engine's own rule gives the same.
  EngineOptions options;
  options.model = kModels + "outrider-small";
  options.threads = 2;
  options.context = 512;
  options.speculation.decoding_type = Method::kDraftTarget;
  options.speculation.speculative_model = kModels + "outrider-draft";
  options.acceptance = AcceptanceRule::kRejection;
  const auto rejecting = Engine::open(options);
  ASSERT_TRUE(rejecting.ok());
  EXPECT_EQ(completion_of(**rejecting, requests[0]).tokens, completions[2].tokens);
}

TEST(Requests, SayWhatTheCacheHadOfTheirPrompt) {
  const auto engine = open("None");
  Request request = request_for(*engine);
  request.prompt.insert(request.prompt.end(), request.prompt.begin(), request.prompt.end());  // some pages
  const Completion first = completion_of(*engine, request);
  EXPECT_EQ(first.cached_tokens, 0);
  const Completion second = completion_of(*engine, request);
  EXPECT_GT(second.cached_tokens, 0);
  EXPECT_LT(second.cached_tokens, second.prompt_tokens);
  EXPECT_EQ(second.tokens, first.tokens);
  EXPECT_GE(second.queue_ms, 0.0);
  // The engine holds 8: the last one waits until another is done.
  std::vector<Request> many(9, request);
  for (size_t i = 0; i < many.size(); ++i) many[i].prompt.front() += static_cast<TokenId>(i);
  const std::vector<Completion> completions = run_all(*engine, many);
  EXPECT_GT(completions[8].queue_ms, completions[0].queue_ms + completions[0].decode_ms / 2);
}

// A prompt of one token, or one that is in the cache, has no separate step.
TEST(Requests, SayWhenTheFirstTokenCame) {
  const auto engine = open("None");
  Request request = request_for(*engine);
  request.prompt.resize(1);
  request.max_tokens = 8;
  const double start = now_ms();
  const Completion completion = completion_of(*engine, request);
  EXPECT_LT(completion.first_token_ms, now_ms() - start);
  EXPECT_GT(completion.first_token_ms, completion.queue_ms);
}

// Remembers the scopes that it was given.
class ScopedDrafter final : public Drafter {
 public:
  const DrafterTraits& traits() const override { return traits_; }
  void begin(uint64_t, std::span<const TokenId>, uint64_t scope) override { begun.insert(scope); }
  int64_t known_tokens(std::span<const TokenId> tokens, uint64_t scope) override {
    asked.insert(scope);
    return std::ssize(tokens);
  }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree>) override {
    for (const DraftRequest& request : requests) drafted.insert(request.scope);
    return {};
  }
  std::set<uint64_t> begun, asked, drafted;

 private:
  DrafterTraits traits_{.name = "Scoped"};
};

TEST(Requests, TellTheDrafterWhoseTheyAre) {
  const auto drafter = std::make_shared<ScopedDrafter>();
  EngineOptions options;
  options.model = kModels + "outrider-small";
  options.context = 512;
  options.speculation.decoding_type = Method::kUserProvided;
  options.user_drafter = drafter;
  const auto engine = Engine::open(options);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  Request request = request_for(**engine);
  for (const uint64_t scope : {3, 9}) {
    request.cache_scope = scope;
    completion_of(**engine, request);
  }
  const std::set<uint64_t> scopes = {3, 9};
  EXPECT_EQ(drafter->begun, scopes);
  EXPECT_EQ(drafter->asked, scopes);
  EXPECT_EQ(drafter->drafted, scopes);
}

class Angry final : public TokenConstraint {
 public:
  State start() override { throw std::runtime_error("no start"); }
  State advance(State, TokenId) override { throw 1; }
  std::span<const uint64_t> allowed(State) override { throw 2; }
  bool is_complete(State) override { throw 3; }
};

TEST(Constraints, ThatFailEndTheirOwnOutputAlone) {
  const auto engine = open("DraftTarget");
  Request good = request_for(*engine);
  Request bad = good;
  bad.constraint = std::make_shared<Angry>();
  Request hostile = good;
  hostile.constraint = ToyConstraint::make({.language = ToyLanguage::kHostile,
                                            .seed = 5,
                                            .vocabulary = static_cast<TokenId>(engine->info().vocab_size)});
  const std::vector<Completion> completions = run_all(*engine, {good, bad, hostile, good});
  EXPECT_THAT(completions[1].tokens, IsEmpty());
  EXPECT_EQ(completions[1].finish_reason, FinishReason::kStop);
  EXPECT_EQ(completions[2].finish_reason, FinishReason::kStop);
  EXPECT_EQ(completions[0].tokens, completion_of(*open("None"), good).tokens);
  EXPECT_EQ(completions[3].tokens, completions[0].tokens);
  EXPECT_EQ(engine->free_pages(), engine->parts().cache->shape().page_count);
}

// Allows only the ids of a text, one after the other, and no token after them.
class Phrase final : public TokenConstraint {
 public:
  Phrase(std::vector<TokenId> tokens, int64_t vocabulary)
      : tokens_(std::move(tokens)), words_(static_cast<size_t>(vocabulary) / 64 + 1) {}
  State start() override { return 0; }
  State advance(State state, TokenId token) override {
    return !is_complete(state) && token == tokens_[static_cast<size_t>(state)] ? state + 1 : kDead;
  }
  std::span<const uint64_t> allowed(State state) override {
    std::ranges::fill(words_, 0);
    if (is_complete(state)) return words_;
    const auto token = static_cast<size_t>(tokens_[static_cast<size_t>(state)]);
    words_[token / 64] = uint64_t{1} << token % 64;
    return words_;
  }
  bool is_complete(State state) override { return static_cast<size_t>(state) == tokens_.size(); }

 private:
  std::vector<TokenId> tokens_;
  std::vector<uint64_t> words_;
};

TEST(Constraints, OfOnePhraseGiveItWithFewPassesAndEndByThemselves) {
  for (const std::string drafter : {"None", "DraftTarget", "EarlyExit", "SpecInfer"}) {
    const auto engine = open(drafter);
    for (const double temperature : {0.0, 1.0}) {
      for (const AcceptanceRule rule : {AcceptanceRule::kCoupled, AcceptanceRule::kRejection}) {
        Request request = request_for(*engine, temperature);
        request.logprobs = 0;
        request.speculation.acceptance = rule;
        const std::vector<TokenId> phrase = engine->tokenize("{\"name\": \"Lily\", \"age\": 7}", false);
        request.constraint = std::make_shared<Phrase>(phrase, engine->info().vocab_size);
        const Completion completion = completion_of(*engine, request);
        EXPECT_EQ(completion.tokens, phrase) << drafter;
        EXPECT_EQ(completion.finish_reason, FinishReason::kStop);
        // Log-probabilities come from the unmasked logits.
        EXPECT_LT(completion.logprobs[0].logprob, -1.0f);
        const auto size = static_cast<int64_t>(phrase.size());
        EXPECT_EQ(completion.speculation.accepted, completion.speculation.drafted) << drafter;
        if (drafter != "None") {
          EXPECT_LT(completion.speculation.steps, size / 2) << drafter;
        }
        request.max_tokens = size;  // the end comes before the length rule
        EXPECT_EQ(completion_of(*engine, request).finish_reason, FinishReason::kStop);
        request.max_tokens = size - 1;
        EXPECT_EQ(completion_of(*engine, request).finish_reason, FinishReason::kLength);
      }
    }
  }
}

// The first end that plain decoding chooses comes before min_tokens, and so do stop strings.
TEST(UnusedIds, AreNeverChosenWhateverDrafts) {
  for (const double temperature : {0.0, 0.9}) {
    std::vector<TokenId> unused;
    std::vector<TokenId> plain;
    for (const std::string drafter : {"None", "None", "NGram", "DraftTarget"}) {
      auto parts = open_parts(options_for(drafter));
      ASSERT_TRUE(parts.ok()) << parts.error().message;
      (*parts)->unused_tokens = unused;
      const auto engine = Engine::assemble(std::move(parts).value());
      Request request = request_for(*engine, temperature);
      if (!unused.empty()) request.rules.min_tokens = 4;  // beside a constraint
      const std::vector<TokenId> tokens = completion_of(*engine, request).tokens;
      for (const TokenId token : unused) EXPECT_EQ(std::ranges::count(tokens, token), 0) << drafter;
      if (unused.empty()) {
        unused.assign(tokens.begin(), tokens.begin() + 8);
      } else if (plain.empty()) {
        plain = tokens;
      }
      if (plain.empty()) continue;
      EXPECT_EQ(tokens, plain) << drafter;
    }
  }
}

TEST(Rules, HoldWhateverDrafts) {
  const auto plain = open("None");
  const std::vector<TokenId> ends = {plain->parts().target->config().stop_tokens};
  for (const double temperature : {0.0, 1.0}) {
    Request request = request_for(*plain, temperature);
    request.ignore_eos = false;
    request.max_tokens = 60;
    const Completion free = completion_of(*plain, request);
    ASSERT_GE(free.tokens.size(), 12u);
    request.stop_tokens = {free.tokens[5]};
    request.stop = {plain->detokenize({{free.tokens[7]}})};
    request.rules = {.min_tokens = 20,
                     .forbidden = {{free.tokens[2]}, {free.tokens[8], free.tokens[9]}, {free.tokens[3]}}};
    const Completion ruled = completion_of(*plain, request);
    EXPECT_GE(ruled.tokens.size(), 20u);
    for (size_t i = 0; i < ruled.tokens.size(); ++i) {
      const TokenId token = ruled.tokens[i];
      EXPECT_FALSE(i < 20 && (token == free.tokens[5] || std::ranges::find(ends, token) != ends.end())) << i;
      EXPECT_NE(token, free.tokens[2]);
      EXPECT_NE(token, free.tokens[3]);
      EXPECT_FALSE(i > 0 && ruled.tokens[i - 1] == free.tokens[8] && token == free.tokens[9]) << i;
    }
    Request narrow = request;
    narrow.rules = {.allowed = ruled.tokens};
    narrow.stop = {};
    narrow.stop_tokens = {};
    const Completion allowed = completion_of(*plain, narrow);
    for (const TokenId token : allowed.tokens)
      EXPECT_NE(std::ranges::find(ruled.tokens, token), ruled.tokens.end());
    for (const std::string drafter :
         {"NGram", "DraftTarget", "EarlyExit", "Lookahead", "SpecInfer", "Combined", "Suffix"}) {
      const auto engine = open(drafter);
      const std::vector<Completion> both = run_all(*engine, {request, narrow});
      EXPECT_EQ(both[0].tokens, ruled.tokens) << drafter;
      EXPECT_EQ(both[0].text, ruled.text) << drafter;
      EXPECT_EQ(both[0].finish_reason, ruled.finish_reason) << drafter;
      EXPECT_EQ(both[1].tokens, allowed.tokens) << drafter;
    }
  }
}

TEST(Rules, AreCheckedBeforeTheRequestIsQueued) {
  const auto engine = open("None");
  const auto refusal = [&](TokenRules rules) {
    Request request = request_for(*engine);
    request.rules = std::move(rules);
    return refusal_of(*engine, request);
  };
  EXPECT_THAT(refusal({.min_tokens = 25}), HasSubstr("min tokens must be 0 to max tokens, 24, found 25"));
  EXPECT_THAT(refusal({.min_tokens = -1}), HasSubstr("min tokens"));
  EXPECT_THAT(refusal({.allowed = {-1}}), HasSubstr("outside the vocabulary"));
  EXPECT_THAT(refusal({.forbidden = {{}}}), HasSubstr("a token or more"));
  EXPECT_THAT(refusal({.forbidden = {{5, 1 << 30}}}), HasSubstr("outside the vocabulary"));
  EXPECT_EQ(refusal({.min_tokens = 24}), "accepted");
}

}  // namespace
}  // namespace outrider
