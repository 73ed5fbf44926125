// SPDX-License-Identifier: Apache-2.0
#include "tests/lossless/hash_configuration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "corpus/test_corpus.h"
#include "drafters/combined/combined.h"
#include "drafters/registry.h"
#include "tests/lossless/hash_model.h"

namespace outrider {
namespace {

struct Tree {
  TreeKind kind;
  std::vector<int> expansion;
  int max_draft_len;
  int nodes;  // kDynamic
};
const std::vector<Tree> kTrees = {
    {TreeKind::kChain, {}, 1, 0},         {TreeKind::kChain, {}, 4, 0},
    {TreeKind::kChain, {}, 16, 0},        {TreeKind::kStatic, {2, 2}, 2, 0},
    {TreeKind::kStatic, {4, 2, 1}, 3, 0}, {TreeKind::kStatic, SpeculativeOptions{}.tree.expansion, 8, 0},
    {TreeKind::kDynamic, {}, 3, 8},       {TreeKind::kDynamic, {}, 5, 16},
    {TreeKind::kDynamic, {}, 8, 64},
};

Method decoding_type(DrafterKind kind) {
  switch (kind) {
    case DrafterKind::kNone:
      return Method::kNone;
    case DrafterKind::kNGram:
      return Method::kNGram;
    case DrafterKind::kSuffix:
    case DrafterKind::kCorpus:
      return Method::kSuffix;
    case DrafterKind::kLookahead:
      return Method::kLookahead;
    case DrafterKind::kMeddled:
    case DrafterKind::kEarlyExit:
      return Method::kEarlyExit;
    case DrafterKind::kCombined:
    case DrafterKind::kMixedDrafts:
      return Method::kCombined;
    case DrafterKind::kDraftTarget:
      return Method::kDraftTarget;
    default:
      return Method::kUserProvided;
  }
}

constexpr double kErrorRates[] = {0, 0.1, 0.5, 0.9, 1};
constexpr int kPageSizes[] = {1, 2, 3, 8, 16, 32, 64};
constexpr int kBatches[] = {1, 2, 7, 16, 4, 3};
constexpr int kRequests[] = {2, 3, 8, 16, 8, 9};
constexpr int kPlainToo = 4;  // batch of requests with and without speculation
constexpr int kArriveLate = 5;
// Policies: none, auto with cheap or expensive rows, or the choice of each request.
constexpr int kAutoCheap = 1;
constexpr int kAutoDear = 2;
constexpr int kAutoByRequest = 3;
constexpr int kChunks[] = {1, 3, 16, 64};
constexpr double kTemperatures[] = {0, 0.7, 1.3};
constexpr AcceptanceRule kRules[] = {AcceptanceRule::kCoupled, AcceptanceRule::kRejection,
                                     AcceptanceRule::kTypical, AcceptanceRule::kRelaxed,
                                     AcceptanceRule::kBlock};

// Texts of letters, many of them longer than what the drafter looks at.
std::shared_ptr<const Corpus> letter_corpus() {
  static const std::shared_ptr<const Corpus> corpus = [] {
    std::mt19937 random(1);
    TokenDocuments documents(40);
    for (std::vector<TokenId>& document : documents) {
      for (unsigned left = random() % 500; left > 0; --left)
        document.push_back(static_cast<TokenId>(random() % (kLetters + 1)));
    }
    return test_corpus(documents, kLetters + 1);
  }();
  return corpus;
}

SpeculativeOptions speculation_of(const HashConfiguration& configuration) {
  const Tree& tree = kTrees[static_cast<size_t>(configuration[kTreeFactor])];
  SpeculativeOptions options;
  const auto kind = static_cast<DrafterKind>(configuration[kDrafterFactor]);
  options.decoding_type = decoding_type(kind);
  if (kind == DrafterKind::kCombined) options.combine = {Method::kNGram, Method::kEarlyExit, Method::kSuffix};
  if (kind == DrafterKind::kMixedDrafts)
    options.combine = {Method::kDraftTarget, Method::kNGram, Method::kDraftTarget};
  options.is_auto = configuration[kPolicyFactor] == kAutoCheap || configuration[kPolicyFactor] == kAutoDear;
  options.max_draft_len = tree.max_draft_len;
  options.tree.kind = tree.kind;
  if (!tree.expansion.empty()) options.tree.expansion = tree.expansion;
  if (tree.nodes > 0) {
    options.tree.max_total_draft_tokens = tree.nodes;
    options.tree.dynamic_tree_max_top_k = std::min(4, tree.nodes / tree.max_draft_len);
  }
  return options;
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
      sampling.dry.multiplier = below(2) == 0 ? 1.0 : 0.0;
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
      sampling.top_n_sigma = below(3) == 0 ? 1.5 : -1.0;
      sampling.typical_p = below(3) == 0 ? 0.8 : 1.0;
      sampling.xtc_probability = below(3) == 0 ? 0.5 : 0.0;
      break;
    case 5:
      sampling.logit_bias = {{letter(), 2.0f}, {kEos, -2.0f}};
      break;
    default:
      break;
  }
}

}  // namespace

DrafterContext context_of(const EngineSetup& setup) {
  DrafterContext context;
  context.vocab_size = kLetters + 1;
  context.layer_count = 2;
  context.context = setup.context;
  context.max_batch = setup.max_batch;
  context.prefill_chunk = setup.prefill_chunk;
  context.page_size = setup.page_size;
  context.kv_type = DType::kF32;
  return context;
}

std::shared_ptr<Drafter> drafter_of(const HashConfiguration& configuration, const EngineSetup& setup,
                                    uint32_t seed, DraftComparison& comparison) {
  const SpeculativeOptions& options = setup.speculation;
  const double error_rate = kErrorRates[configuration[kErrorFactor]];
  const auto kind = static_cast<DrafterKind>(configuration[kDrafterFactor]);
  const auto made = [&](Method method) {
    SpeculativeOptions own = options;
    own.decoding_type = method;
    DrafterContext context = context_of(setup);
    if (kind == DrafterKind::kCorpus || kind == DrafterKind::kCombined) context.corpus = letter_corpus();
    auto drafter = make_drafter(own, context);
    EXPECT_TRUE(drafter.ok()) << drafter.error().message;
    return *drafter;
  };
  const auto draft_model = [&](uint64_t number) {
    SpeculativeOptions own = options;
    own.decoding_type = Method::kDraftTarget;
    auto model = std::make_unique<HashModel>(error_rate, number, setup.has_state);
    if (seed % 4 == 3) model = std::make_unique<FailingModel>(error_rate, number, setup.has_state);
    return hash_draft_target(std::move(model), own, context_of(setup), comparison);
  };
  switch (kind) {
    case DrafterKind::kHash:
      return hash_drafter(options, error_rate, 1, setup.has_state);
    case DrafterKind::kMergedHash:
      return hash_drafter(options, error_rate, 3, setup.has_state);
    case DrafterKind::kDraftTarget:
      return draft_model(0);
    case DrafterKind::kMixedDrafts:
      return combine_drafters("Mixed", {.drafters = {draft_model(0), made(Method::kNGram), draft_model(1)}});
    case DrafterKind::kOracleChain:
    case DrafterKind::kOracleTree:
    case DrafterKind::kHostileOracle:
      return std::make_shared<OracleDrafter>(error_rate, kind != DrafterKind::kOracleChain,
                                             kind == DrafterKind::kHostileOracle, seed);
    case DrafterKind::kMeddled:
      return meddled(made(options.decoding_type), seed);
    default:
      return made(options.decoding_type);
  }
}

Request request_of(const HashConfiguration& configuration, std::mt19937& random) {
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  Request request;
  const int length = 1 + below(below(4) == 0 ? 90 : 12);
  // Requests with a common beginning share pages.
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
  request.sample_index = random() % 3;
  request.logprobs = below(3) - 1;
  if (below(3) == 0) request.prompt_logprobs = below(3);
  if (below(16) == 0) request.max_tokens = 0;
  request.ignore_eos = below(2) == 0;
  request.speculation.enabled = configuration[kBatchFactor] != kPlainToo || below(2) == 0;
  if (configuration[kPolicyFactor] == kAutoByRequest && below(3) > 0)
    request.speculation.is_auto = below(2) == 0;
  if (below(4) == 0) request.speculation.max_draft_tokens = 1 + below(6);
  if (below(4) == 0) request.speculation.max_draft_len = 1 + below(6);
  if (below(4) == 0) request.speculation.max_children = 1 + below(2);
  if (below(4) == 0) {
    const AcceptanceRule sampled[] = {AcceptanceRule::kCoupled, AcceptanceRule::kRelaxed};
    const bool is_greedy = request.sampling.temperature == 0.0;
    request.speculation.acceptance =
        is_greedy ? kRules[below(static_cast<unsigned>(std::size(kRules)))] : sampled[below(2)];
    // Without thinking tokens of the model, only an engine opened with the rule knows it.
    if (rule != AcceptanceRule::kRelaxed && request.speculation.acceptance == AcceptanceRule::kRelaxed)
      request.speculation.acceptance = AcceptanceRule::kCoupled;
  }
  return request;
}

std::vector<TokenId> prediction_of(const HashConfiguration& configuration, std::span<const TokenId> answer,
                                   uint32_t seed) {
  enum Kind { kAbsent, kRight, kWrong, kEdited, kLured, kLonger };
  const int kind = configuration[kPredictionFactor];
  std::mt19937 random(seed);
  const auto letter = [&] { return static_cast<TokenId>(random() % kLetters); };
  std::vector<TokenId> text;
  if (kind == kRight || kind == kLonger) text.assign(answer.begin(), answer.end());
  if (kind == kWrong || kind == kLonger) {
    for (unsigned i = 1 + random() % 60; i > 0; --i) text.push_back(letter());
  }
  if (kind == kEdited) {  // tokens are left out, changed or inserted
    for (const TokenId token : answer) {
      const unsigned edit = random() % 20;
      if (edit > 0) text.push_back(edit == 1 ? letter() : token);
      if (edit == 2) text.push_back(letter());
    }
  }
  if (kind == kLured) {  // wrong after every few tokens that are right
    for (size_t i = 0; i + 5 <= answer.size(); ++i) {
      text.insert(text.end(), answer.begin() + static_cast<ptrdiff_t>(i),
                  answer.begin() + static_cast<ptrdiff_t>(i) + 5);
      text.push_back(letter());
    }
  }
  return text;
}

std::string describe(const HashConfiguration& configuration, uint32_t seed) {
  std::string text = "configuration {";
  for (const int level : configuration) text += (text.back() == '{' ? "" : ", ") + std::to_string(level);
  return text + "}, seed " + std::to_string(seed);
}

int requests_in(const HashConfiguration& configuration) { return kRequests[configuration[kBatchFactor]]; }

bool arrive_late(const HashConfiguration& configuration) {
  return configuration[kBatchFactor] == kArriveLate;
}

EngineSetup setup_of(const HashConfiguration& configuration) {
  EngineSetup setup;
  setup.page_size = kPageSizes[configuration[kPageFactor]];
  setup.max_batch = kBatches[configuration[kBatchFactor]];
  setup.prefill_chunk = kChunks[configuration[kChunkFactor]];
  setup.context = kContext;
  setup.acceptance = kRules[configuration[kRuleFactor]];
  setup.speculation = speculation_of(configuration);
  if (configuration[kPolicyFactor] > 0) {
    const double row_ms = configuration[kPolicyFactor] == kAutoDear ? 0.02 : 0.0001;
    setup.costs = PassCosts({{.rows = 1, .ms = 0.02}, {.rows = 64, .ms = 0.02 + 63 * row_ms}});
  }
  // The pages that one sequence needs, or half as many again, so that sequences are preempted.
  const int64_t pages[] = {0, 1, (kContext + kContext / 2) / setup.page_size};
  setup.kv_pages = pages[configuration[kPagesFactor]];
  return setup;
}

}  // namespace outrider
