// SPDX-License-Identifier: Apache-2.0
// Traces: they give true probabilities and every cause, and tracing does not change the output.
#include "outrider/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/backend/device/make_backends.h"
#include "outrider/engine.h"
#include "tests/support/toy_constraint.h"

namespace outrider::trace_test {
namespace {

using testing::ElementsAre;

const std::string kModel = OUTRIDER_SOURCE_DIR "/tests/data/models/llama";
const std::string kDefaultModels = OUTRIDER_SOURCE_DIR "/models/";
const std::vector<TokenId> kPrompt = {5};  // no token to prefill, so the first step drafts

// Grows the same tree below every pending token.
class ScriptedDrafter final : public Drafter {
 public:
  struct Node {
    int parent = 0;
    TokenId token = 0;
    double probability = 1.0;
  };
  explicit ScriptedDrafter(std::vector<Node> nodes) : nodes_(std::move(nodes)) {}
  const DrafterTraits& traits() const override { return traits_; }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      wanted_probabilities = requests[i].wants_probabilities;
      for (const Node& node : nodes_) trees[i].add(node.parent, node.token, node.probability);
    }
    return {};
  }

  bool wanted_probabilities = false;

 private:
  std::vector<Node> nodes_;
  DrafterTraits traits_{.name = "Scripted"};
};

Request request_with(const SamplingParams& sampling, int64_t max_tokens = 24) {
  Request request;
  request.prompt = kPrompt;
  request.sampling = sampling;
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  return request;
}

std::unique_ptr<Engine> open(std::shared_ptr<Drafter> drafter) {
  EngineOptions options;
  options.model = kModel;
  options.threads = 1;
  options.context = 128;
  if (drafter != nullptr) options.speculation.decoding_type = Method::kUserProvided;
  options.speculation.max_draft_len = 3;
  options.user_drafter = std::move(drafter);
  auto engine = Engine::open(std::move(options));
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  return std::move(engine).value();
}

std::vector<TokenId> plain_tokens(const Request& request) { return open(nullptr)->generate(request)->tokens; }

// The first step that drafted.
StepTrace first_tree(const std::vector<ScriptedDrafter::Node>& nodes, const Request& request) {
  const auto drafter = std::make_shared<ScriptedDrafter>(nodes);
  const auto engine = open(drafter);
  StepTrace first;
  engine->set_trace_sink([&](const StepTrace& trace) {
    if (first.nodes.size() < 2) first = trace;
  });
  EXPECT_TRUE(engine->generate(request).ok());
  EXPECT_TRUE(drafter->wanted_probabilities);
  return first;
}

double scored(std::vector<TokenId> after, TokenId token) {
  after.push_back(token);
  return std::exp(open(nullptr)->score(after)->back());
}

TEST(Trace, GreedyTreeWithProbabilitiesRanksAndCauses) {
  const Request request = request_with({});
  const std::vector<TokenId> right = plain_tokens(request);
  const TokenId wrong = right[0] == 7 ? 8 : 7, late = right[0] == 11 ? 12 : 11;
  const StepTrace trace =
      first_tree({{0, wrong, 0.5}, {1, 3, 0.25}, {0, right[0], 0.75}, {0, late}, {3, right[1]}}, request);
  ASSERT_EQ(trace.nodes.size(), 6u);
  EXPECT_EQ(trace.nodes[0].token, kPrompt.back());
  EXPECT_EQ(trace.nodes[1].cause, NodeCause::kLostArgMax);
  EXPECT_EQ(trace.nodes[1].fate, NodeFate::kRejected);
  EXPECT_EQ(trace.nodes[1].draft_probability, 0.5);
  EXPECT_NEAR(trace.nodes[1].target_probability, scored(kPrompt, wrong), 1e-6);
  EXPECT_EQ(trace.nodes[2].cause, NodeCause::kNotReached);
  EXPECT_EQ(trace.nodes[2].target_probability, TraceNode::kUnknown);
  EXPECT_EQ(trace.nodes[3].cause, NodeCause::kNone);
  EXPECT_EQ(trace.nodes[3].fate, NodeFate::kAccepted);
  EXPECT_NEAR(trace.nodes[3].target_probability, scored(kPrompt, right[0]), 1e-6);
  EXPECT_EQ(trace.nodes[4].cause, NodeCause::kNotReached);
  EXPECT_NEAR(trace.nodes[4].target_probability, scored(kPrompt, late), 1e-6);
  EXPECT_EQ(trace.nodes[5].fate, NodeFate::kAccepted);
  EXPECT_THAT(trace.tokens, ElementsAre(right[0], right[1], right[2]));
  EXPECT_THAT(trace.origins,
              ElementsAre(TokenOrigin::kAccepted, TokenOrigin::kAccepted, TokenOrigin::kBonus));
  EXPECT_THAT(trace.ranks, ElementsAre(1, 0, -1));
  EXPECT_NEAR(trace.probabilities[2], scored({5, right[0], right[1]}, right[2]), 1e-6);
  EXPECT_EQ(trace.context, 1);
  EXPECT_EQ(trace.rows, 6);
  EXPECT_EQ(trace.sequences, 1);
  EXPECT_GT(trace.verify_ms, 0.0);
  EXPECT_GE(trace.other_ms, 0.0);
}

TEST(Trace, WhatTheConstraintCutIsForbidden) {
  const auto even = [] {
    return ToyConstraint::make({.language = ToyLanguage::kEven, .seed = 0, .vocabulary = 288, .eos = 287});
  };
  Request request = request_with({});
  request.constraint = even();
  const std::vector<TokenId> right = plain_tokens(request);
  request.constraint = even();
  const StepTrace trace = first_tree({{0, 7}, {1, 4}, {0, right[0]}, {3, right[1]}}, request);
  ASSERT_EQ(trace.nodes.size(), 5u);
  for (const size_t cut : {1, 2}) {
    EXPECT_EQ(trace.nodes[cut].fate, NodeFate::kOverBudget);
    EXPECT_EQ(trace.nodes[cut].cause, NodeCause::kForbidden);
  }
  EXPECT_EQ(trace.nodes[4].fate, NodeFate::kAccepted);
  EXPECT_EQ(trace.rows, 3);
  EXPECT_EQ(trace.tokens.size(), 3u);
}

TEST(Trace, SampledCausesNameTheFilter) {
  SamplingParams softmax;
  softmax.temperature = 1.0;
  softmax.seed = 3;
  SamplingParams top_k = softmax, top_p = softmax, min_p = softmax, forbidden = softmax, all = softmax;
  top_k.top_k = 1;
  top_p.top_p = 1e-6;
  min_p.min_p = 1.0;
  all.top_k = 1000;
  all.top_p = 0.999999;
  all.min_p = 1.0;
  const std::pair<SamplingParams, NodeCause> cases[] = {
      {softmax, NodeCause::kSampledOut}, {top_k, NodeCause::kCutByTopK}, {top_p, NodeCause::kCutByTopP},
      {min_p, NodeCause::kCutByMinP},    {all, NodeCause::kCutByMinP},   {forbidden, NodeCause::kForbidden}};
  for (const auto& [sampling, cause] : cases) {
    SCOPED_TRACE(cause_name(cause));
    Request request = request_with(sampling);
    const TokenId right = plain_tokens(request)[0];
    const TokenId wrong = right == 7 ? 8 : 7;
    if (cause == NodeCause::kForbidden) request.sampling.logit_bias = {{wrong, -INFINITY}};
    const StepTrace trace = first_tree({{0, wrong}}, request);
    EXPECT_EQ(trace.nodes.at(1).cause, cause);
    EXPECT_EQ(trace.nodes.at(1).target_probability > 0.0, cause == NodeCause::kSampledOut);
    EXPECT_THAT(trace.ranks, ElementsAre(-1));
    EXPECT_THAT(trace.origins, ElementsAre(TokenOrigin::kRecovered));
  }
}

TEST(Trace, NodesPastAStopAndBeyondTheLimits) {
  Request request = request_with({});
  const std::vector<TokenId> right = plain_tokens(request);
  request.stop_tokens = {right[0]};
  const TokenId wrong = right[2] == 7 ? 8 : 7;
  const StepTrace stopped = first_tree({{0, right[0]}, {1, right[1]}, {2, wrong}, {2, right[2]}}, request);
  EXPECT_EQ(stopped.nodes.at(1).cause, NodeCause::kNone);
  EXPECT_EQ(stopped.nodes.at(2).cause, NodeCause::kPastStop);
  EXPECT_EQ(stopped.nodes.at(3).fate, NodeFate::kPastStop);  // the sequence had ended there
  EXPECT_EQ(stopped.nodes.at(4).fate, NodeFate::kPastStop);
  EXPECT_THAT(stopped.tokens, ElementsAre(right[0]));

  request.stop_tokens.clear();
  const TokenId foreign = 1 << 20;
  const StepTrace cut =
      first_tree({{0, foreign}, {0, right[0]}, {2, right[1]}, {3, right[2]}, {4, right[3]}, {2, 3}}, request);
  EXPECT_EQ(cut.nodes.size(), 7u);
  EXPECT_EQ(cut.nodes[1].cause, NodeCause::kOutsideVocabulary);
  EXPECT_EQ(cut.nodes[5].cause, NodeCause::kOverBudget);  // depth 4 of 3
  EXPECT_EQ(cut.nodes[5].fate, NodeFate::kOverBudget);
  EXPECT_NEAR(cut.nodes[5].target_probability, cut.probabilities.back(), 1e-12);
  EXPECT_THAT(cut.tokens, ElementsAre(right[0], right[1], right[2], right[3]));
  EXPECT_THAT(cut.ranks, ElementsAre(1, 0, 0, 0));  // the cut node held the right token
  EXPECT_EQ(cut.rows, 5);
}

struct Outcome {
  std::vector<Completion> completions;
  std::map<RequestId, std::vector<TokenId>> traced;
  std::map<int64_t, double> start_ms;
};

Outcome run_both(const EngineOptions& options, const SamplingParams& sampling, bool traces) {
  Outcome run;
  auto engine = Engine::open(options);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  if (traces) {
    (*engine)->set_trace_sink([&](const StepTrace& trace) {
      auto& tokens = run.traced[trace.request];
      tokens.insert(tokens.end(), trace.tokens.begin(), trace.tokens.end());
      run.start_ms[trace.step] = trace.start_ms;
    });
  }
  run.completions.resize(2);
  for (size_t i = 0; i < 2; ++i) {
    Request request = request_with(sampling, 60);
    request.prompt = (*engine)->tokenize(i == 0 ? "Once upon a time" : "def add(a, b):");
    EXPECT_TRUE((*engine)
                    ->submit(request,
                             [&run, i](RequestId, const Progress& progress) {
                               if (progress.completion != nullptr) run.completions[i] = *progress.completion;
                             })
                    .ok());
  }
  while ((*engine)->step()) {
  }
  return run;
}

TEST(Trace, LeavesOutputAndTreesAlone) {
  EngineOptions options;
  options.model = kDefaultModels + "outrider-small";
  options.threads = 1;
  options.context = 256;
  options.speculation.speculative_model = kDefaultModels + "outrider-draft";
  SamplingParams sampled;
  sampled.temperature = 0.9;
  sampled.top_p = 0.95;
  sampled.repetition_penalty = 1.1;
  for (const Method drafter : {Method::kNGram, Method::kDraftTarget}) {
    for (const TreeKind tree : {TreeKind::kChain, TreeKind::kStatic}) {
      if (drafter == Method::kNGram && tree == TreeKind::kStatic) continue;
      options.speculation.decoding_type = drafter;
      options.speculation.tree.kind = tree;
      options.speculation.tree.expansion = {2, 2};
      options.speculation.max_draft_len = tree == TreeKind::kStatic ? 2 : 4;
      for (const SamplingParams& sampling : {SamplingParams(), sampled}) {
        for (const AcceptanceRule rule : {AcceptanceRule::kCoupled, AcceptanceRule::kRejection}) {
          options.acceptance = rule;
          const Outcome with = run_both(options, sampling, true),
                        without = run_both(options, sampling, false);
          for (size_t i = 0; i < 2; ++i) {
            const Completion &a = with.completions[i], &b = without.completions[i];
            EXPECT_EQ(a.tokens, b.tokens);
            EXPECT_EQ(a.origins, b.origins);
            EXPECT_EQ(a.speculation.drafted_per_position, b.speculation.drafted_per_position);
            EXPECT_EQ(a.speculation.steps, b.speculation.steps);
            EXPECT_EQ(with.traced.at(i + 1), a.tokens);
          }
          double last = -1;
          for (const auto& [step, start] : with.start_ms) EXPECT_GT(start, std::exchange(last, start));
        }
      }
    }
  }
}

TEST(Trace, OrdersToTheDevice) {
  if (!select_device_kernels().ok())
    GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  for (const ComputeDevice device : {ComputeDevice::kCpu, ComputeDevice::kEmulated}) {
    EngineOptions options;
    options.model = kModel;
    options.threads = 1;
    options.context = 128;
    options.device = device;
    options.speculation.decoding_type = Method::kNGram;
    const auto engine = Engine::open(std::move(options));
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    int steps = 0;
    (*engine)->set_trace_sink([&](const StepTrace& trace) {
      ++steps;
      ASSERT_EQ(trace.device.has_value(), device == ComputeDevice::kEmulated);
      if (!trace.device) return;
      EXPECT_GT(trace.device->lists + trace.device->launches, 0);
      EXPECT_GT(trace.device->bytes_from, 0);
      EXPECT_GT(trace.device->waited_ms, 0);
      EXPECT_LE(trace.device->waited_ms, trace.draft_ms + trace.verify_ms + trace.other_ms);
    });
    ASSERT_TRUE((*engine)->generate(request_with({}, 8)).ok());
    EXPECT_GT(steps, 1);
  }
}

TEST(Trace, AnEmptySinkEndsIt) {
  const auto engine = open(std::make_shared<ScriptedDrafter>(std::vector<ScriptedDrafter::Node>{{0, 7}}));
  int traces = 0;
  engine->set_trace_sink([&](const StepTrace&) { ++traces; });
  ASSERT_TRUE(engine->generate(request_with({}, 3)).ok());
  EXPECT_GT(traces, 0);
  const int before = traces;
  engine->set_trace_sink(nullptr);
  ASSERT_TRUE(engine->generate(request_with({}, 3)).ok());
  EXPECT_EQ(traces, before);
}

TEST(Trace, NamesTheSources) {
  EXPECT_THAT(open(std::make_shared<ScriptedDrafter>(std::vector<ScriptedDrafter::Node>{}))->info().sources,
              ElementsAre("Scripted"));
}

}  // namespace
}  // namespace outrider::trace_test
