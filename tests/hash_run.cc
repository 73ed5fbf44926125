// SPDX-License-Identifier: Apache-2.0
#include "hash_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <utility>

#include "base/counter_rng.h"
#include "drafter_wrapper.h"
#include "drafters/registry.h"
#include "sampling/log_probability.h"
#include "sampling/randomness.h"
#include "sampling/target_law.h"
#include "speculation/likeliest_nodes.h"
#include "speculation/tree_growth.h"

namespace outrider {
namespace {

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

// Changes the trees of another drafter, so that they are no longer what it computed.
class Meddler final : public DrafterWrapper {
 public:
  Meddler(std::shared_ptr<Drafter> drafter, uint32_t seed)
      : DrafterWrapper(std::move(drafter)), random_(seed) {}

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    OUTRIDER_RETURN_IF_ERROR(DrafterWrapper::draft(requests, trees));
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

  std::mt19937 random_;
};

// Grows trees as drafters with probabilities do, by the target's own logits, or, at a given rate, by others.
class HashDraft {
 public:
  HashDraft(const SpeculativeOptions& options, double error_rate, int source)
      : policy_(make_tree_policy(options)),
        growth_options_{.policy = policy_.get(), .children = options.children},
        error_rate_(error_rate),
        source_(source) {}

  void draft(DraftRequest request, TokenTree& tree) {
    request.source = source_;
    TokenHistory history;
    const auto prompt = static_cast<size_t>(request.prompt_length);
    history.add_prompt(request.tokens.first(prompt));
    for (const TokenId token : request.tokens.subspan(prompt)) history.push(token);
    growth_.start(growth_options_, request, tree, history);
    while (!growth_.frontier().empty()) {
      const std::vector<int> frontier(growth_.frontier().begin(), growth_.frontier().end());
      growth_.expand([&](size_t i) { return logits_after(request.tokens, tree, frontier[i]); });
    }
  }

 private:
  std::span<const float> logits_after(std::span<const TokenId> tokens, const TokenTree& tree, int node) {
    std::vector<TokenId> text(tokens.begin(), tokens.end());
    for (int at = node; at != 0; at = tree.parent(at))
      text.insert(text.begin() + static_cast<ptrdiff_t>(tokens.size()), tree.token(at));
    const RandomKey key{7, static_cast<uint64_t>(source_), static_cast<int64_t>(text.size()),
                        RandomPurpose::kDraft, static_cast<uint64_t>(text.back())};
    if (random_uniform(key) < error_rate_) text.push_back(0);
    logits_ = model_.logits_after(text);
    return std::span<const float>(logits_).first(kLetters + 1);
  }

  HashModel model_{kLetters + 1 + kPadding};
  std::unique_ptr<TreePolicy> policy_;
  GrowthOptions growth_options_;
  double error_rate_;
  int source_;
  TreeGrowth growth_;
  std::vector<float> logits_;
};

// One or several of them that share a tree.
class HashDrafter final : public Drafter {
 public:
  HashDrafter(const SpeculativeOptions& options, double error_rate, int members) {
    for (int i = 0; i < members; ++i) members_.emplace_back(options, error_rate, i);
  }

  const DrafterTraits& traits() const override { return traits_; }

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      for (size_t member = 0; member < members_.size(); ++member) {
        TokenTree tree(requests[i].tokens.back());
        members_[member].draft(requests[i], tree);
        trees[i].merge(tree, static_cast<int>(member));
      }
      likeliest_.keep(trees[i], requests[i].max_nodes);
    }
    return {};
  }

 private:
  DrafterTraits traits_{.name = "Hash", .emits_probabilities = true};
  std::vector<HashDraft> members_;
  LikeliestNodes likeliest_;
};

// A constraint as plain decoding reads it; where it throws, nothing comes.
class Language {
 public:
  explicit Language(TokenConstraint* constraint) : constraint_(constraint) {
    if (constraint != nullptr) state_ = constraint->start();
  }

  std::span<const float> masked(std::span<const float> logits) {
    if (constraint_ == nullptr) return logits;
    const std::vector<uint64_t> words = allowed();
    masked_.assign(logits.begin(), logits.end());
    for (size_t token = 0; token < masked_.size(); ++token) {
      const bool may_come = token / 64 < words.size() && (words[token / 64] >> token % 64 & 1) != 0;
      if (!may_come) masked_[token] = -std::numeric_limits<float>::infinity();
    }
    return masked_;
  }

  void take(TokenId token) {
    if (constraint_ == nullptr) return;
    try {
      state_ = constraint_->advance(state_, token);
    } catch (...) {
      state_ = TokenConstraint::kDead;
    }
  }

  bool has_ended() {
    if (constraint_ == nullptr) return false;
    try {
      return state_ == TokenConstraint::kDead || constraint_->is_complete(state_);
    } catch (...) {
      return true;
    }
  }

 private:
  std::vector<uint64_t> allowed() {
    try {
      const std::span<const uint64_t> words = constraint_->allowed(state_);
      return {words.begin(), words.end()};
    } catch (...) {
      return {};
    }
  }

  TokenConstraint* constraint_;
  TokenConstraint::State state_ = 0;
  std::vector<float> masked_;
};

}  // namespace

Expected plain_output(const HashModel& model, const Request& request, int64_t context) {
  Expected expected;
  std::vector<TokenId> tokens = request.prompt;
  LawBuilder laws;
  for (size_t i = 1; i < tokens.size() && request.prompt_logprobs >= 0; ++i) {
    const std::vector<float> logits = model.logits_after(std::span(tokens).first(i));
    const auto row = std::span(logits).first(kLetters + 1);
    const LogSoftmax law(row);
    expected.prompt_logprobs.push_back(law.list(tokens[i], request.prompt_logprobs));
    expected.prompt_logprobs.back().rank = law.rank(tokens[i]);
  }
  Language language(request.constraint.get());
  if (language.has_ended()) {
    expected.reason = FinishReason::kStop;
    return expected;
  }
  if (request.max_tokens == 0) return expected;
  while (true) {
    TokenHistory history;
    history.add_prompt(request.prompt);
    for (const TokenId token : expected.tokens) history.push(token);
    const std::vector<float> logits = model.logits_after(tokens);
    const auto row = std::span(logits).first(kLetters + 1);
    const Distribution& law = laws.build(language.masked(row), request.sampling, history);
    if (law.empty()) {
      expected.reason = FinishReason::kStop;
      return expected;
    }
    CounterRandomness randomness(request.sampling.seed, request.stream);
    const TokenId token = randomness.coupled_pick(law, static_cast<int64_t>(tokens.size()));
    language.take(token);
    tokens.push_back(token);
    expected.tokens.push_back(token);
    if (request.logprobs >= 0) expected.logprobs.push_back(LogSoftmax(row).list(token, request.logprobs));
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
    if (language.has_ended()) {
      expected.reason = FinishReason::kStop;
      return expected;
    }
    if (static_cast<int64_t>(expected.tokens.size()) == request.max_tokens ||
        static_cast<int64_t>(tokens.size()) == context) {
      return expected;
    }
  }
}

void OracleDrafter::know(const std::vector<TokenId>& prompt, const std::vector<TokenId>& output) {
  std::vector<TokenId> all = prompt;
  all.insert(all.end(), output.begin(), output.end());
  continuations_.push_back(std::move(all));
}

Status OracleDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  if (hostile_ && random_() % 7 == 0) return input_error("the oracle is silent");
  if (hostile_ && random_() % 7 == 0) throw std::runtime_error("the oracle is angry");
  for (size_t i = 0; i < requests.size(); ++i) grow(requests[i], trees[i]);
  return {};
}

void OracleDrafter::grow(const DraftRequest& request, TokenTree& tree) {
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
    const int parent = !branches_ ? last : static_cast<int>(random_() % static_cast<unsigned>(tree.size()));
    if (tree.depth(parent) >= request.max_depth + extra) continue;
    const size_t place = request.tokens.size() + static_cast<size_t>(tree.depth(parent));
    const bool errs = std::uniform_real_distribution<>()(random_) < error_rate_;
    TokenId token = static_cast<TokenId>(random_() % (kLetters + 1 + (hostile_ ? kPadding + 2 : 0)));
    if (!errs && truth != nullptr && place < truth->size()) token = (*truth)[place];
    last = tree.add(parent, token);
  }
}

std::unique_ptr<EngineParts> hash_parts(const EngineSetup& setup, std::shared_ptr<Drafter> drafter) {
  auto parts = std::make_unique<EngineParts>();
  parts->options.max_batch = setup.max_batch;
  parts->options.prefill_chunk = setup.prefill_chunk;
  parts->options.max_batch_rows = setup.max_batch_rows;
  parts->preempt_every = setup.preempt_every;
  parts->max_preemptions = setup.max_preemptions;
  parts->options.context = setup.context;
  parts->options.acceptance = setup.acceptance;
  parts->options.speculation = setup.speculation;
  parts->tokenizer = letters();
  auto model = std::make_unique<HashModel>(kLetters + 1 + kPadding);
  // The end-of-text id comes from the model's configuration.
  const_cast<ModelConfig&>(model->config()).stop_tokens = {kEos};
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

namespace {

constexpr int64_t kContext = 100;

struct Tree {
  TreeKind kind;
  std::vector<int> expansion;
  int max_draft_len;
  int nodes;  // kDynamic
};
const std::vector<Tree> kTrees = {
    {TreeKind::kChain, {}, 1, 0},         {TreeKind::kChain, {}, 4, 0},
    {TreeKind::kChain, {}, 16, 0},        {TreeKind::kStatic, {2, 2}, 2, 0},
    {TreeKind::kStatic, {4, 2, 1}, 3, 0}, {TreeKind::kStatic, SpeculativeOptions{}.expansion, 8, 0},
    {TreeKind::kDynamic, {}, 3, 8},       {TreeKind::kDynamic, {}, 5, 16},
    {TreeKind::kDynamic, {}, 8, 64},
};

enum class Kind {
  kNone,
  kOracleChain,
  kOracleTree,
  kHostileOracle,
  kHash,
  kMergedHash,
  kMeddled,  // EarlyExit
  kNGram,
  kSuffix,
  kLookahead,
  kEarlyExit,
  kCombined,
};

std::string decoding_type(Kind kind) {
  switch (kind) {
    case Kind::kNone:
      return "None";
    case Kind::kNGram:
      return "NGram";
    case Kind::kSuffix:
      return "Suffix";
    case Kind::kLookahead:
      return "Lookahead";
    case Kind::kMeddled:
    case Kind::kEarlyExit:
      return "EarlyExit";
    case Kind::kCombined:
      return "Combined";
    default:
      return "UserProvided";
  }
}

constexpr double kErrorRates[] = {0, 0.1, 0.5, 0.9, 1};
constexpr int kPageSizes[] = {1, 2, 3, 8, 16, 32, 64};
constexpr int kBatches[] = {1, 2, 7, 16, 4, 3};
constexpr int kRequests[] = {2, 3, 8, 16, 8, 9};
constexpr int kPlainToo = 4;  // batch of requests with and without speculation
constexpr int kArriveLate = 5;
constexpr int kChunks[] = {1, 3, 16, 64};
constexpr double kTemperatures[] = {0, 0.7, 1.3};
constexpr AcceptanceRule kRules[] = {AcceptanceRule::kCoupled, AcceptanceRule::kRejection,
                                     AcceptanceRule::kTypical, AcceptanceRule::kRelaxed};

SpeculativeOptions speculation_of(const HashConfiguration& configuration) {
  const Tree& tree = kTrees[static_cast<size_t>(configuration[kTreeFactor])];
  SpeculativeOptions options;
  const auto kind = static_cast<Kind>(configuration[kDrafterFactor]);
  options.decoding_type = decoding_type(kind);
  if (kind == Kind::kCombined) options.combine = {"NGram", "EarlyExit", "Suffix"};
  options.max_draft_len = tree.max_draft_len;
  options.tree = tree.kind;
  if (!tree.expansion.empty()) options.expansion = tree.expansion;
  if (tree.nodes > 0) {
    options.max_total_draft_tokens = tree.nodes;
    options.dynamic_tree_max_top_k = std::min(4, tree.nodes / tree.max_draft_len);
  }
  return options;
}

std::shared_ptr<Drafter> drafter_of(const HashConfiguration& configuration, const SpeculativeOptions& options,
                                    uint32_t seed) {
  const double error_rate = kErrorRates[configuration[kErrorFactor]];
  const auto kind = static_cast<Kind>(configuration[kDrafterFactor]);
  if (kind == Kind::kHash) return std::make_shared<HashDrafter>(options, error_rate, 1);
  if (kind == Kind::kMergedHash) return std::make_shared<HashDrafter>(options, error_rate, 3);
  if (options.decoding_type != "UserProvided") {
    DrafterContext context;
    context.vocab_size = kLetters + 1;
    context.layer_count = 2;
    context.context = kContext;
    context.max_batch = kBatches[configuration[kBatchFactor]];
    auto made = make_drafter(options, context);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return kind == Kind::kMeddled ? meddled(*made, seed) : *made;
  }
  return std::make_shared<OracleDrafter>(error_rate, kind != Kind::kOracleChain, kind == Kind::kHostileOracle,
                                         seed);
}

void add_features(int level, std::mt19937& random, Request& request) {
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  const auto letter = [&] { return static_cast<TokenId>(below(kLetters)); };
  SamplingParams& sampling = request.sampling;
  switch (level) {
    case 1:
      sampling.repetition_penalty = 1.3;
      sampling.presence_penalty = below(2) == 0 ? 0.5 : 0.0;
      sampling.frequency_penalty = 0.3;
      break;
    case 2:
      request.stop = {{static_cast<char>('a' + letter()), static_cast<char>('a' + letter())}, "abc"};
      break;
    case 3:
      request.stop_tokens = {letter()};
      break;
    case 4:
      sampling.top_k = below(2) == 0 ? 1 + below(8) : 0;
      sampling.top_p = 0.9;
      sampling.min_p = below(2) == 0 ? 0.05 : 0.0;
      break;
    case 5:
      sampling.logit_bias = {{letter(), 2.0f}, {kEos, -2.0f}};
      break;
    default:
      break;
  }
}

Request request_of(const HashConfiguration& configuration, std::mt19937& random) {
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  Request request;
  const int length = 1 + below(below(4) == 0 ? 90 : 12);
  // The same beginnings share pages.
  const unsigned beginnings[] = {1u << 30, 3, 1};
  std::mt19937 shared(random() % beginnings[configuration[kPromptFactor]]);
  for (int i = 0; i < length; ++i) request.prompt.push_back(static_cast<TokenId>(shared() % kLetters));
  if (configuration[kPromptFactor] < 2 && below(2) == 0)
    request.prompt.push_back(static_cast<TokenId>(below(kLetters)));
  request.max_tokens = 1 + below(40);
  request.sampling.seed = random();
  const AcceptanceRule rule = kRules[configuration[kRuleFactor]];
  const bool is_sampled = rule == AcceptanceRule::kCoupled || rule == AcceptanceRule::kRelaxed;
  request.sampling.temperature = is_sampled ? kTemperatures[configuration[kTemperatureFactor]] : 0.0;
  add_features(configuration[kFeatureFactor], random, request);
  request.constraint =
      ToyConstraint::make({.language = static_cast<ToyLanguage>(configuration[kLanguageFactor]),
                           .seed = random(),
                           .vocabulary = kLetters + 1,
                           .eos = kEos});
  request.stream = random() % 3;
  request.logprobs = below(3) - 1;
  if (below(3) == 0) request.prompt_logprobs = below(3);
  if (below(16) == 0) request.max_tokens = 0;
  request.ignore_eos = below(2) == 0;
  request.speculation.enabled = configuration[kBatchFactor] != kPlainToo || below(2) == 0;
  if (below(4) == 0) request.speculation.max_draft_tokens = 1 + below(6);
  if (below(4) == 0) {
    const AcceptanceRule sampled[] = {AcceptanceRule::kCoupled, AcceptanceRule::kRelaxed};
    const bool is_greedy = request.sampling.temperature == 0.0;
    request.speculation.acceptance = is_greedy ? kRules[below(4)] : sampled[below(2)];
  }
  return request;
}

}  // namespace

std::shared_ptr<Drafter> meddled(std::shared_ptr<Drafter> drafter, uint32_t seed) {
  return std::make_shared<Meddler>(std::move(drafter), seed);
}

EngineSetup setup_of(const HashConfiguration& configuration) {
  EngineSetup setup;
  setup.page_size = kPageSizes[configuration[kPageFactor]];
  setup.max_batch = kBatches[configuration[kBatchFactor]];
  setup.prefill_chunk = kChunks[configuration[kChunkFactor]];
  setup.context = kContext;
  setup.acceptance = kRules[configuration[kRuleFactor]];
  setup.speculation = speculation_of(configuration);
  // As few pages as one sequence needs, or half as many again: sequences lose theirs and come back.
  const int64_t pages[] = {0, 1, (kContext + kContext / 2) / setup.page_size};
  setup.kv_pages = pages[configuration[kPagesFactor]];
  return setup;
}

namespace {

struct Run {
  std::vector<RequestId> ids;
  std::vector<Expected> expected;
  std::map<RequestId, Completion> completions;
  std::map<RequestId, std::string> streamed;
  std::map<RequestId, size_t> streamed_logprobs, streamed_prompt_logprobs;
  bool is_traced = false;  // a sink follows every step
  std::map<RequestId, std::vector<TokenId>> traced;
};

void expect_same(const std::vector<TokenLogprobs>& got, const std::vector<TokenLogprobs>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].logprob, expected[i].logprob);
    ASSERT_EQ(got[i].top, expected[i].top);
    ASSERT_EQ(got[i].rank, expected[i].rank);
  }
}

void compare(const Run& run, const std::vector<Request>& requests) {
  for (size_t i = 0; i < run.ids.size(); ++i) {
    ASSERT_TRUE(run.completions.contains(run.ids[i]));
    const Completion& got = run.completions.at(run.ids[i]);
    ASSERT_EQ(got.tokens, run.expected[i].tokens) << "request " << i;
    ASSERT_EQ(got.text, run.expected[i].text);
    ASSERT_EQ(run.streamed.at(run.ids[i]), run.expected[i].text);
    ASSERT_EQ(got.finish_reason, run.expected[i].reason);
    ASSERT_EQ(got.prompt_tokens, static_cast<int64_t>(requests[i].prompt.size()));
    ASSERT_EQ(got.speculation.committed, static_cast<int64_t>(got.tokens.size()));
    ASSERT_EQ(got.origins.size(), got.tokens.size());
    ASSERT_LE(got.speculation.accepted, got.speculation.drafted);
    expect_same(got.logprobs, run.expected[i].logprobs);
    expect_same(got.prompt_logprobs, run.expected[i].prompt_logprobs);
    ASSERT_EQ(run.streamed_prompt_logprobs.at(run.ids[i]), got.prompt_logprobs.size());
    ASSERT_EQ(run.streamed_logprobs.contains(run.ids[i]) ? run.streamed_logprobs.at(run.ids[i]) : 0,
              got.logprobs.size());
    ASSERT_EQ(got.speculation.accepted,
              std::count(got.origins.begin(), got.origins.end(), TokenOrigin::kAccepted));
    if (run.is_traced && !got.tokens.empty()) {
      ASSERT_EQ(run.traced.at(run.ids[i]), got.tokens);
    }
  }
}

}  // namespace

std::string describe(const HashConfiguration& configuration, uint32_t seed) {
  std::string text = "configuration {";
  for (const int level : configuration) text += (text.back() == '{' ? "" : ", ") + std::to_string(level);
  return text + "}, seed " + std::to_string(seed);
}

void run_on_hash_model(const HashConfiguration& configuration, uint32_t seed) {
  RunTotals totals;
  run_on_hash_model(configuration, seed, totals);
}

void run_on_hash_model(const HashConfiguration& configuration, uint32_t seed, RunTotals& totals) {
  EngineSetup setup = setup_of(configuration);
  // Few rows, and pages that are lost without need.
  setup.max_batch_rows = seed % 5 < 2 ? setup.max_batch + static_cast<int>(seed % 9) : 0;
  setup.preempt_every = seed % 4 == 0 ? 1 + static_cast<int>(seed % 3) : 0;
  setup.max_preemptions = seed % 8 == 0 ? 1000 : 8;
  run_on_hash_model(configuration, seed, setup, drafter_of(configuration, setup.speculation, seed), totals);
}

void run_on_hash_model(const HashConfiguration& configuration, uint32_t seed, const EngineSetup& setup,
                       const std::shared_ptr<Drafter>& drafter, RunTotals& totals) {
  SCOPED_TRACE(describe(configuration, seed));
  std::mt19937 random(seed);
  auto* oracle = dynamic_cast<OracleDrafter*>(drafter.get());
  auto parts = hash_parts(setup, drafter);
  KvCache* cache = parts->cache.get();
  const auto engine = Engine::assemble(std::move(parts));
  const int64_t all_pages = engine->free_pages();
  const HashModel model(kLetters + 1 + kPadding);
  Run run;
  run.is_traced = seed % 3 == 0;
  if (run.is_traced) {
    engine->set_trace_sink([&](const StepTrace& trace) {
      auto& tokens = run.traced[trace.request];
      tokens.insert(tokens.end(), trace.tokens.begin(), trace.tokens.end());
    });
  }
  std::vector<Request> requests;
  for (int i = 0; i < kRequests[configuration[kBatchFactor]]; ++i) {
    requests.push_back(request_of(configuration, random));
    requests.back().cache_scope = seed % 2 == 0 ? static_cast<uint64_t>(i % 2) : 0;
    run.expected.push_back(plain_output(model, requests.back(), setup.context));
    if (oracle != nullptr) oracle->know(requests.back().prompt, run.expected.back().tokens);
    const auto id = engine->submit(requests.back(), [&](RequestId from, const Progress& progress) {
      run.streamed[from] += progress.text;
      run.streamed_logprobs[from] += progress.logprobs.size();
      run.streamed_prompt_logprobs[from] += progress.prompt_logprobs.size();
      if (progress.completion != nullptr) run.completions[from] = *progress.completion;
    });
    ASSERT_TRUE(id.ok()) << id.error().message;
    run.ids.push_back(*id);
    const unsigned steps = configuration[kBatchFactor] == kArriveLate ? random() % 6 : 0;
    for (unsigned step = 0; step < steps; ++step) engine->step();
  }
  while (engine->step()) {
    const Status status = cache->check_invariants();
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  ASSERT_NO_FATAL_FAILURE(compare(run, requests));
  for (const auto& [id, completion] : run.completions) {
    totals.steps += completion.speculation.steps;
    totals.committed += completion.speculation.committed;
    totals.drafted += completion.speculation.drafted;
    totals.accepted += completion.speculation.accepted;
  }
  ASSERT_EQ(engine->free_pages(), all_pages);
}

}  // namespace outrider
