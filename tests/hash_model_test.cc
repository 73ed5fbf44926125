// SPDX-License-Identifier: Apache-2.0
// Scheduler, KV, trees, acceptance and commit together, on a model that notices every wrong entry: random
// requests with random drafters must give what a token-by-token reference gives, which shares no code with
// the engine's loop.
#include "hash_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "drafters/registry.h"
#include "engine/engine_parts.h"
#include "sampling/randomness.h"
#include "sampling/target_law.h"
#include "speculation/tree_policy.h"

namespace outrider {
namespace {

constexpr int kLetters = 20;
constexpr TokenId kEos = kLetters;
constexpr int kPadding = 3;  // rows of the output head without a token

std::shared_ptr<const Tokenizer> letters() {
  TokenizerSpec spec;
  for (int i = 0; i < kLetters; ++i) {
    spec.pieces.emplace_back(1, static_cast<char>('a' + i));
    spec.attributes.push_back(TokenAttribute::kNormal);
  }
  spec.pieces.emplace_back("<eos>");
  spec.attributes.push_back(TokenAttribute::kControl);
  spec.eos = kEos;
  spec.split_patterns.push_back({.pattern = "[a-z]+"});
  auto made = Tokenizer::create(std::move(spec));
  EXPECT_TRUE(made.ok()) << made.error().message;
  return *made;
}

struct Expected {
  std::vector<TokenId> tokens;
  std::string text;
  FinishReason reason = FinishReason::kLength;
};

// Plain decoding, one token at a time, over whole texts: no pages, no trees, no incremental state.
Expected reference(const HashModel& model, const Request& request, int64_t context) {
  Expected expected;
  std::vector<TokenId> tokens = request.prompt;
  LawBuilder laws;
  while (true) {
    TokenHistory history;
    history.add_prompt(request.prompt);
    for (const TokenId token : expected.tokens) history.push(token);
    const std::vector<float> logits = model.logits_after(tokens);
    const Distribution& law = laws.build(std::span(logits).first(kLetters + 1), request.sampling, history);
    CounterRandomness randomness(request.sampling.seed, 0);
    const TokenId token = randomness.coupled_pick(law, static_cast<int64_t>(tokens.size()));
    tokens.push_back(token);
    expected.tokens.push_back(token);
    const bool is_stop =
        std::find(request.stop_tokens.begin(), request.stop_tokens.end(), token) != request.stop_tokens.end();
    if (is_stop || (token == kEos && !request.ignore_eos)) {
      if (token != kEos) expected.text += static_cast<char>('a' + token);
      expected.reason = FinishReason::kStop;
      // A stop token is part of the output, its text is not.
      if (token != kEos) expected.text.pop_back();
      return expected;
    }
    if (token != kEos) expected.text += static_cast<char>('a' + token);
    size_t cut = std::string::npos;
    for (const std::string& stop : request.stop) cut = std::min(cut, expected.text.find(stop));
    if (cut != std::string::npos) {
      expected.text.resize(cut);
      expected.reason = FinishReason::kStop;
      return expected;
    }
    if (static_cast<int64_t>(expected.tokens.size()) == request.max_tokens ||
        static_cast<int64_t>(tokens.size()) == context) {
      return expected;
    }
  }
}

// Knows the right continuations and errs at a given rate; grows chains or random trees, and misbehaves on
// demand.
class OracleDrafter final : public Drafter {
 public:
  OracleDrafter(double error_rate, int branching, bool hostile, uint32_t seed)
      : error_rate_(error_rate), branching_(branching), hostile_(hostile), random_(seed) {}

  void know(const std::vector<TokenId>& prompt, const std::vector<TokenId>& output) {
    std::vector<TokenId> all = prompt;
    all.insert(all.end(), output.begin(), output.end());
    continuations_.push_back(std::move(all));
  }

  const DrafterTraits& traits() const override { return traits_; }

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    if (hostile_ && random_() % 7 == 0) return input_error("the oracle is silent");
    if (hostile_ && random_() % 7 == 0) throw std::runtime_error("the oracle is angry");
    for (size_t i = 0; i < requests.size(); ++i) grow(requests[i], trees[i]);
    return {};
  }

 private:
  void grow(const DraftRequest& request, TokenTree& tree) {
    const std::vector<TokenId>* truth = nullptr;
    for (const auto& one : continuations_) {
      const bool fits = one.size() >= request.tokens.size() &&
                        std::equal(request.tokens.begin(), request.tokens.end(), one.begin());
      if (fits) truth = &one;
    }
    const int extra = hostile_ ? 3 : 0;
    const int nodes = static_cast<int>(random_() % static_cast<unsigned>(request.max_nodes + 1 + extra));
    if (hostile_ && random_() % 9 == 0) tree.reset(static_cast<TokenId>(random_() % kLetters));
    int last = 0;
    for (int i = 0; i < nodes; ++i) {
      const int parent =
          branching_ == 0 ? last : static_cast<int>(random_() % static_cast<unsigned>(tree.size()));
      if (tree.depth(parent) >= request.max_depth + extra) continue;
      const size_t place = request.tokens.size() + static_cast<size_t>(tree.depth(parent));
      const bool errs = std::uniform_real_distribution<>()(random_) < error_rate_;
      TokenId token = static_cast<TokenId>(random_() % (kLetters + 1 + (hostile_ ? kPadding + 2 : 0)));
      if (!errs && truth != nullptr && place < truth->size()) token = (*truth)[place];
      last = tree.add(parent, token);
    }
  }

  DrafterTraits traits_{.name = "Oracle"};
  double error_rate_;
  int branching_;
  bool hostile_;
  std::mt19937 random_;
  std::vector<std::vector<TokenId>> continuations_;
};

// Changes the trees of another drafter, so that they are no longer what it computed.
class Meddler final : public Drafter {
 public:
  Meddler(std::shared_ptr<Drafter> drafter, uint32_t seed) : drafter_(std::move(drafter)), random_(seed) {}

  const DrafterTraits& traits() const override { return drafter_->traits(); }
  void begin(uint64_t sequence, std::span<const TokenId> prompt) override {
    drafter_->begin(sequence, prompt);
  }
  void observe(uint64_t sequence, const TokenTree& tree, const Verdict& verdict) override {
    drafter_->observe(sequence, tree, verdict);
  }
  void end(uint64_t sequence) override { drafter_->end(sequence); }

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    OUTRIDER_RETURN_IF_ERROR(drafter_->draft(requests, trees));
    if (random_() % 9 == 0) throw std::runtime_error("the meddler is angry");
    for (TokenTree& tree : trees) {
      switch (random_() % 6) {
        case 0:
          tree = with_rival(tree);
          break;
        case 1:
          tree = flattened(tree);
          break;
        case 2: {
          std::vector<uint8_t> kept(static_cast<size_t>(tree.size()));
          for (uint8_t& keeps : kept) keeps = random_() % 3 != 0 ? 1 : 0;
          tree.keep(kept);
          break;
        }
        default:
          break;
      }
    }
    return {};
  }

 private:
  TokenTree with_rival(const TokenTree& tree) {
    TokenTree other(tree.token(0));
    other.add(0, static_cast<TokenId>(random_() % kLetters));
    other.merge(tree, 1);
    return other;
  }

  // The same tokens in the same places, as children of the root.
  static TokenTree flattened(const TokenTree& tree) {
    TokenTree other(tree.token(0));
    for (int node = 1; node < tree.size(); ++node) other.add(0, tree.token(node));
    return other;
  }

  std::shared_ptr<Drafter> drafter_;
  std::mt19937 random_;
};

Request random_request(std::mt19937& random) {
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  Request request;
  const int length = 1 + below(below(4) == 0 ? 90 : 12);
  // Few different beginnings, so that pages are shared.
  std::mt19937 shared(random() % 3);
  for (int i = 0; i < length; ++i) request.prompt.push_back(static_cast<TokenId>(shared() % kLetters));
  if (below(2) == 0) request.prompt.push_back(static_cast<TokenId>(below(kLetters)));
  request.max_tokens = 1 + below(60);
  SamplingParams& sampling = request.sampling;
  sampling.seed = random();
  if (below(3) != 0) sampling.temperature = below(2) == 0 ? 0.7 : 1.3;
  if (below(3) == 0) sampling.top_k = 1 + below(8);
  if (below(3) == 0) sampling.top_p = 0.9;
  if (below(4) == 0) sampling.min_p = 0.05;
  if (below(3) == 0) sampling.repetition_penalty = 1.3;
  if (below(4) == 0) sampling.presence_penalty = 0.5;
  if (below(4) == 0) sampling.frequency_penalty = 0.3;
  if (below(4) == 0) sampling.logit_bias = {{static_cast<TokenId>(below(kLetters)), 2.0f}, {kEos, -2.0f}};
  if (below(3) == 0)
    request.stop = {
        std::string{static_cast<char>('a' + below(kLetters)), static_cast<char>('a' + below(kLetters))},
        "abc"};
  if (below(4) == 0) request.stop_tokens = {static_cast<TokenId>(below(kLetters))};
  request.ignore_eos = below(2) == 0;
  request.speculate = below(8) != 0;
  return request;
}

struct Setup {
  int page_size = 16;
  int64_t kv_pages = 0;  // 0: plenty
  int max_batch = 4;
  int prefill_chunk = 16;
  int max_draft_len = 4;
  int64_t context = 100;
  SpeculativeOptions speculation = user_provided();

  static SpeculativeOptions user_provided() {
    SpeculativeOptions options;
    options.decoding_type = "UserProvided";
    return options;
  }
  bool traces = false;  // a sink follows every step
};

std::unique_ptr<EngineParts> make_parts(const Setup& setup, std::shared_ptr<Drafter> drafter) {
  auto parts = std::make_unique<EngineParts>();
  parts->options.max_batch = setup.max_batch;
  parts->options.prefill_chunk = setup.prefill_chunk;
  parts->options.context = setup.context;
  parts->options.speculation = setup.speculation;
  parts->options.speculation.max_draft_len = setup.max_draft_len;
  parts->tokenizer = letters();
  auto model = std::make_unique<HashModel>(kLetters + 1 + kPadding);
  KvShape shape = model->kv_shape();
  shape.page_size = setup.page_size;
  const int64_t least = (setup.context + 1 + setup.page_size - 1) / setup.page_size;
  shape.page_count = setup.kv_pages == 0 ? least * setup.max_batch * 2 : std::max(least, setup.kv_pages);
  parts->cache = std::make_unique<KvCache>(shape);
  parts->target = std::move(model);
  parts->drafter = std::move(drafter);
  parts->vocab_size = kLetters + 1;
  return parts;
}

Setup random_setup(std::mt19937& random) {
  constexpr int kPageSizes[] = {1, 2, 16, 64};
  Setup setup;
  setup.page_size = kPageSizes[random() % 4];
  setup.max_batch = 1 + static_cast<int>(random() % 8);
  setup.prefill_chunk = 1 + static_cast<int>(random() % 40);
  setup.max_draft_len = 1 + static_cast<int>(random() % 16);
  if (random() % 2 == 0) setup.kv_pages = 1;  // as few as one sequence needs: preemption
  setup.traces = random() % 3 == 0;
  return setup;
}

// `oracle`: null, or the drafter to tell the right output.
struct RoundTotals {
  int64_t steps = 0;
  int64_t committed = 0;
};
void run_round(std::mt19937& random, const Setup& setup, const std::shared_ptr<Drafter>& drafter,
               OracleDrafter* oracle, RoundTotals& totals) {
  const HashModel model(kLetters + 1 + kPadding);
  auto parts = make_parts(setup, drafter);
  parts->target = std::make_unique<HashModel>(model);
  // The end-of-text id comes from the model's configuration.
  const_cast<ModelConfig&>(parts->target->config()).stop_tokens = {kEos};
  KvCache* cache = parts->cache.get();
  const auto engine = Engine::assemble(std::move(parts));
  const int64_t all_pages = engine->free_pages();

  std::vector<Expected> expected;
  std::map<RequestId, Completion> completions;
  std::map<RequestId, std::string> streamed;
  std::map<RequestId, std::vector<TokenId>> traced;
  if (setup.traces) {
    engine->set_trace_sink([&](const StepTrace& trace) {
      auto& tokens = traced[trace.request];
      tokens.insert(tokens.end(), trace.tokens.begin(), trace.tokens.end());
    });
  }
  std::vector<RequestId> ids;
  const int count = 1 + static_cast<int>(random() % 12);
  for (int i = 0; i < count; ++i) {
    Request request = random_request(random);
    request.prompt.resize(std::min<size_t>(request.prompt.size(), 99));
    expected.push_back(reference(model, request, setup.context));
    if (oracle != nullptr) oracle->know(request.prompt, expected.back().tokens);
    const auto id = engine->submit(request, [&](RequestId from, const Progress& progress) {
      streamed[from] += progress.text;
      if (progress.completion != nullptr) completions[from] = *progress.completion;
    });
    ASSERT_TRUE(id.ok()) << id.error().message;
    ids.push_back(*id);
    for (unsigned steps = random() % 4; steps > 0; --steps) engine->step();
  }
  while (engine->step()) {
    const Status status = cache->check_invariants();
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_TRUE(completions.contains(ids[i]));
    const Completion& got = completions[ids[i]];
    ASSERT_EQ(got.tokens, expected[i].tokens) << "request " << i;
    ASSERT_EQ(got.text, expected[i].text);
    ASSERT_EQ(streamed[ids[i]], expected[i].text);
    ASSERT_EQ(got.finish_reason, expected[i].reason);
    ASSERT_EQ(got.speculation.committed, static_cast<int64_t>(got.tokens.size()));
    ASSERT_EQ(got.origins.size(), got.tokens.size());
    ASSERT_LE(got.speculation.accepted, got.speculation.drafted);
    ASSERT_EQ(got.speculation.accepted,
              std::count(got.origins.begin(), got.origins.end(), TokenOrigin::kAccepted));
    if (setup.traces) {
      ASSERT_EQ(traced[ids[i]], got.tokens);
    }
    totals.steps += got.speculation.steps;
    totals.committed += got.speculation.committed;
  }
  ASSERT_EQ(engine->free_pages(), all_pages);
}

TEST(HashModel, EveryRequestGetsWhatPlainDecodingGives) {
  constexpr double kErrorRates[] = {0, 0.1, 0.5, 0.9, 1};
  RoundTotals totals;
  for (uint32_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto setup = random_setup(random);
    const auto drafter =
        std::make_shared<OracleDrafter>(kErrorRates[random() % 5], static_cast<int>(random() % 2),
                                        random() % 3 == 0, static_cast<uint32_t>(random()));
    run_round(random, setup, drafter, drafter.get(), totals);
    if (HasFatalFailure()) return;
  }
}

SpeculativeOptions random_early_exit(std::mt19937& random, int max_draft_len) {
  SpeculativeOptions options;
  options.decoding_type = "EarlyExit";
  options.max_draft_len = max_draft_len;
  options.tree = static_cast<TreeKind>(random() % 3);
  options.expansion.assign(static_cast<size_t>(max_draft_len), 1);
  for (int& width : options.expansion)
    width = largest_tree(options) < 100 ? 1 + static_cast<int>(random() % 3) : 1;
  options.dynamic_tree_max_top_k = 1 + static_cast<int>(random() % 4);
  options.max_total_draft_tokens =
      options.dynamic_tree_max_top_k * max_draft_len + static_cast<int>(random() % 8);
  options.children = static_cast<ChildrenChoice>(random() % 3);
  if (random() % 2 == 0) options.assistant_confidence_threshold = 0.05;
  if (random() % 4 == 0) options.entropy_threshold = 0.5;
  if (random() % 4 == 0) options.skip_mlp_layers = {1};
  if (random() % 4 == 0) {
    options.decoding_type = "Combined";
    options.combine = {"EarlyExit", "NGram"};
    if (random() % 2 == 0) std::swap(options.combine[0], options.combine[1]);
  }
  return options;
}

// Keys and values of the first layer and the states that enter the second are the drafter's.
TEST(HashModel, TheTargetTakesUpWhatEarlyExitComputed) {
  RoundTotals totals;
  for (uint32_t seed = 1; seed <= 250; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    auto setup = random_setup(random);
    setup.speculation = random_early_exit(random, setup.max_draft_len);
    DrafterContext context;
    context.vocab_size = kLetters + 1;
    context.layer_count = 2;
    context.context = setup.context;
    context.max_batch = setup.max_batch;
    auto made = make_drafter(setup.speculation, context);
    ASSERT_TRUE(made.ok()) << made.error().message;
    std::shared_ptr<Drafter> drafter = *made;
    if (random() % 3 == 0) drafter = std::make_shared<Meddler>(drafter, static_cast<uint32_t>(random()));
    run_round(random, setup, drafter, nullptr, totals);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(totals.committed, totals.steps * 5 / 4);
}

TEST(HashModel, AGoodDrafterNeedsFewerPasses) {
  auto drafter = std::make_shared<OracleDrafter>(0.0, 0, false, 7);
  auto parts = make_parts({.max_draft_len = 4}, drafter);
  const HashModel model(kLetters + 1 + kPadding);
  Request request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 60;
  request.ignore_eos = true;
  const Expected expected = reference(model, request, 100);
  drafter->know(request.prompt, expected.tokens);
  const auto engine = Engine::assemble(std::move(parts));
  const auto completion = engine->generate(request);
  ASSERT_TRUE(completion.ok());
  EXPECT_EQ(completion->tokens, expected.tokens);
  EXPECT_LT(completion->speculation.steps, 40);
  EXPECT_EQ(completion->speculation.accepted, completion->speculation.drafted);
}

TEST(HashModel, CancelFreesThePagesAndSparesTheOthers) {
  auto parts = make_parts({}, std::make_shared<OracleDrafter>(1.0, 0, false, 7));
  const HashModel model(kLetters + 1 + kPadding);
  const auto engine = Engine::assemble(std::move(parts));
  const int64_t all_pages = engine->free_pages();
  Request request;
  request.prompt = {4, 5, 6};
  request.max_tokens = 50;
  request.ignore_eos = true;
  FinishReason reason = FinishReason::kLength;
  const auto doomed = engine->submit(request, [&](RequestId, const Progress& progress) {
    if (progress.completion != nullptr) reason = progress.completion->finish_reason;
  });
  request.prompt = {7, 8};
  std::vector<TokenId> survivor;
  const auto other = engine->submit(request, [&](RequestId, const Progress& progress) {
    if (progress.completion != nullptr) survivor = progress.completion->tokens;
  });
  ASSERT_TRUE(doomed.ok() && other.ok());
  for (int i = 0; i < 5; ++i) engine->step();
  engine->cancel(*doomed);
  while (engine->step()) {
  }
  EXPECT_EQ(reason, FinishReason::kCancelled);
  EXPECT_EQ(survivor, reference(model, request, 100).tokens);
  EXPECT_EQ(engine->free_pages(), all_pages);
}

}  // namespace
}  // namespace outrider
