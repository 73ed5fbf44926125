// SPDX-License-Identifier: Apache-2.0
// Two engines, of which one makes several steps in a call on its device, and random requests for both.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "models/backend/device/make_backends.h"
#include "tests/lossless/lossless.h"

namespace outrider::device_steps {

#define OUTRIDER_REQUIRE_DEVICE()    \
  if (!select_device_kernels().ok()) \
  GTEST_SKIP() << "this machine has no table with the arithmetic of devices"

struct EngineCase {
  int device_steps = 0;
  int batch = 3;
  int page_size = 16;
  int64_t kv_pages = 0;
  int preempt_every = 0;
  std::string model = small_target();
  SpeculativeOptions speculation = {};
  int longest_prompt = 40;
  int64_t context = 96;
  std::optional<int> gpu_layers = std::nullopt;
};

#ifdef OUTRIDER_SLOW_TEST
constexpr int kLeastRequests = 1000;  // of a comparison
#else
constexpr int kLeastRequests = 0;
#endif

inline std::string model_of(const std::string& name) {
  return std::string(OUTRIDER_SOURCE_DIR) + "/tests/data/models/" + name;
}

// A chain of a draft model with the target's vocabulary.
inline SpeculativeOptions chains_of(const std::string& draft, int levels, double temperature = 1.0) {
  SpeculativeOptions options;
  options.decoding_type = Method::kDraftTarget;
  options.speculative_model = model_of(draft);
  options.max_draft_len = levels;
  options.draft_temperature = temperature;
  return options;
}

inline std::unique_ptr<Engine> open_case(const EngineCase& one) {
  EngineOptions options;
  options.model = one.model;
  options.device = ComputeDevice::kEmulated;
  options.device_steps = one.device_steps;
  options.threads = 1;
  options.context = one.context;
  options.max_batch = one.batch;
  options.page_size = one.page_size;
  options.kv_pages = one.kv_pages;
  options.speculation = one.speculation;
  options.gpu_layers = one.gpu_layers;
  return open_engine(options, one.preempt_every);
}

// A message to a sink: step, request, tokens and text.
using Event = std::tuple<int64_t, size_t, std::vector<TokenId>, std::string>;

struct Record {
  std::vector<Event> events = {};
  std::vector<Completion> completions = {};
  EngineStatus status = {};
  int calls = 0;     // of step()
  int64_t rows = 0;  // of target passes, and tokens of prompts that were found in the cache
  bool reads_again = false;
  // In calls that made several steps:
  int64_t steps_on_device = 0, drafts_on_device = 0;
};

struct Plan {
  std::vector<Request> requests;
  std::vector<size_t> cancelled_after;  // tokens, by request; 0: never
};

// Rows of a text that is read again, after a slide or a preemption, depend on the pages that the cache still
// has. A run stages its entries at its start, so that other pages may have left.
inline void count_rows(const Plan& plan, const EngineStatus& before, Record& record) {
  const EngineStatus& after = record.status;
  record.rows = after.rows - before.rows + after.cached_tokens - before.cached_tokens;
  record.reads_again =
      after.preemptions > before.preemptions ||
      std::ranges::any_of(plan.requests, [](const Request& request) { return request.slide >= 0; });
}

inline Record run_plan(Engine& engine, const Plan& plan) {
  Record record;
  const EngineStatus first = engine.status();
  record.completions.resize(plan.requests.size());
  std::vector<size_t> received(plan.requests.size());
  for (size_t i = 0; i < plan.requests.size(); ++i) {
    const auto sink = [&, i](RequestId id, const Progress& progress) {
      record.events.emplace_back(engine.status().steps, i,
                                 std::vector<TokenId>(progress.tokens.begin(), progress.tokens.end()),
                                 std::string(progress.text));
      if (progress.completion != nullptr) record.completions[i] = *progress.completion;
      received[i] += progress.tokens.size();
      if (plan.cancelled_after[i] != 0 && received[i] >= plan.cancelled_after[i]) engine.cancel(id);
    };
    const auto id = engine.submit(plan.requests[i], sink);
    EXPECT_TRUE(id.ok()) << id.error().message;
  }
  for (bool goes_on = true; goes_on; ++record.calls) {
    const EngineStatus before = engine.status();
    goes_on = engine.step();
    const EngineStatus after = engine.status();
    if (after.steps <= before.steps + 1) continue;
    record.steps_on_device += after.steps - before.steps;
    record.drafts_on_device += after.speculation.drafts - before.speculation.drafts;
  }
  record.status = engine.status();
  count_rows(plan, first, record);
  return record;
}

inline int below(std::mt19937& random, int end) {
  return static_cast<int>(random() % static_cast<unsigned>(end));
}

inline SamplingParams random_params(std::mt19937& random) {
  SamplingParams sampling;
  const double temperatures[] = {0.0, 0.0, 0.7, 1.0, 1.5};
  sampling.temperature = temperatures[below(random, 5)];
  sampling.seed = random();
  if (below(random, 3) == 0) sampling.top_k = 1 + below(random, 30);
  if (below(random, 3) == 0) sampling.min_p = 0.02;
  if (below(random, 12) == 0) sampling.top_p = 0.9;  // these two need this machine
  if (below(random, 12) == 0) sampling.repetition_penalty = 1.2;
  return sampling;
}

inline Request random_request(std::mt19937& random, const Engine& engine, int longest_prompt) {
  Request request;
  const auto vocab = static_cast<int>(engine.info().vocab_size);
  const int length = 1 + below(random, longest_prompt);
  for (int i = 0; i < length; ++i) request.prompt.push_back(below(random, vocab));
  request.max_tokens = below(random, 10) == 0 ? 200 : 1 + below(random, 30);  // 200: the context ends it
  request.sampling = random_params(random);
  request.ignore_eos = below(random, 2) == 0;
  if (below(random, 3) == 0) request.stop_tokens = {below(random, vocab), below(random, vocab)};
  if (below(random, 3) == 0) request.stop = {std::string(1, static_cast<char>('a' + below(random, 26)))};
  if (below(random, 10) == 0) request.logprobs = 2;
  if (below(random, 12) == 0 && length < 30) request.slide = 4;
  request.speculation.enabled = below(random, 8) != 0;
  if (below(random, 5) == 0) request.speculation.max_draft_len = 1 + below(random, 3);
  if (below(random, 8) == 0) request.speculation.max_children = 1 + below(random, 2);
  return request;
}

inline Plan random_plan(std::mt19937& random, const Engine& engine, int count, int longest_prompt = 40) {
  Plan plan;
  for (int i = 0; i < count; ++i) {
    plan.requests.push_back(random_request(random, engine, longest_prompt));
    plan.cancelled_after.push_back(below(random, 6) == 0 ? 1 + random() % 9 : 0);
  }
  return plan;
}

inline void expect_same_counts(const SpeculationStats& host, const SpeculationStats& device) {
  EXPECT_EQ(host.steps, device.steps);
  EXPECT_EQ(host.drafts, device.drafts);
  EXPECT_EQ(host.drafted, device.drafted);
  EXPECT_EQ(host.accepted, device.accepted);
  EXPECT_EQ(host.drafted_per_position, device.drafted_per_position);
  EXPECT_EQ(host.accepted_per_position, device.accepted_per_position);
}

inline void expect_same_records(const Record& host, const Record& device) {
  EXPECT_EQ(host.events, device.events);
  EXPECT_EQ(host.status.steps, device.status.steps);
  EXPECT_EQ(host.status.preemptions, device.status.preemptions);
  if (!host.reads_again) {
    EXPECT_EQ(host.rows, device.rows);
  }
  EXPECT_EQ(host.status.output_tokens, device.status.output_tokens);
  ASSERT_EQ(host.completions.size(), device.completions.size());
  for (size_t i = 0; i < host.completions.size(); ++i) {
    EXPECT_EQ(host.completions[i].tokens, device.completions[i].tokens) << i;
    EXPECT_EQ(host.completions[i].text, device.completions[i].text) << i;
    EXPECT_EQ(host.completions[i].finish_reason, device.completions[i].finish_reason) << i;
    EXPECT_EQ(host.completions[i].origins, device.completions[i].origins) << i;
    expect_same_counts(host.completions[i].speculation, device.completions[i].speculation);
  }
}

// Both engines run the same requests, several times over. Returns how many drafts were accepted.
inline int64_t expect_same_engines(EngineCase one, int device_steps, int plans, int requests) {
  SCOPED_TRACE(std::to_string(device_steps) + " steps, batch " + std::to_string(one.batch) + ", pages of " +
               std::to_string(one.page_size) + ", preemption every " + std::to_string(one.preempt_every));
  const auto host = open_case(one);
  one.device_steps = device_steps;
  const auto device = open_case(one);
  EXPECT_EQ(device->info().device_steps, device_steps) << device->info().device_steps_reason;
  std::mt19937 random(static_cast<unsigned>(device_steps + one.batch + one.preempt_every));
  int64_t calls = 0, drafts = 0;
  for (int turn = 0; turn < plans || turn * requests < kLeastRequests; ++turn) {
    const Plan plan = random_plan(random, *host, requests, one.longest_prompt);
    const Record expected = run_plan(*host, plan), found = run_plan(*device, plan);
    expect_same_records(expected, found);
    calls += found.calls;
    drafts += found.drafts_on_device;
    if (testing::Test::HasFailure()) return 0;
  }
  EXPECT_LT(calls, device->status().steps);  // some calls made several steps
  EXPECT_EQ(drafts > 0, one.speculation.decoding_type != Method::kNone);
  return device->status().speculation.accepted;
}

// A request, and one that goes on with its text, whose entries the caches of target and draft still have.
// There are pages for all of them. Returns how many drafts were accepted.
inline int64_t expect_same_continuations(EngineCase one) {
  one.batch = 4;
  one.kv_pages = 2000;
  const auto host = open_case(one);
  one.device_steps = 8;
  const auto device = open_case(one);
  int64_t drafts = 0;
  for (int length = 5; length < 12; ++length) {
    Plan plan{.requests = {Request{.prompt = {length, 3 * length, 7, 9}}}, .cancelled_after = {0}};
    Request& request = plan.requests.front();
    request.max_tokens = length;
    request.ignore_eos = true;
    for (int part = 0; part < 3; ++part) {
      const Record expected = run_plan(*host, plan), found = run_plan(*device, plan);
      expect_same_records(expected, found);
      drafts += found.drafts_on_device;
      const std::vector<TokenId>& text = expected.completions.front().tokens;
      request.prompt.insert(request.prompt.end(), text.begin(), text.end());
    }
  }
  EXPECT_GT(drafts, 0);
  return device->status().speculation.accepted;
}

inline SpeculativeOptions with_tree(SpeculativeOptions options, const std::vector<int>& expansion) {
  options.tree.kind = TreeKind::kStatic;
  options.tree.expansion = expansion;
  return options;
}
inline SpeculativeOptions with_tree(SpeculativeOptions options, int width, int nodes) {
  options.tree.kind = TreeKind::kDynamic;
  options.tree.dynamic_tree_max_top_k = width;
  options.tree.max_total_draft_tokens = nodes;
  return options;
}

// The policy decides by what it has observed, and on a device once for a run: drafts differ, and tokens do
// not. Returns the sums of what the device did.
inline Record expect_same_tokens(EngineCase one) {
  const auto host = open_case(one);
  one.device_steps = 8;
  const auto device = open_case(one);
  EXPECT_EQ(device->info().device_steps, 8) << device->info().device_steps_reason;
  std::mt19937 random(static_cast<unsigned>(one.batch));
  Record sums;
  for (int turn = 0; turn < 3 || turn * 10 < kLeastRequests; ++turn) {
    Plan plan = random_plan(random, *host, 10);
    plan.cancelled_after.assign(plan.requests.size(), 0);
    for (Request& request : plan.requests) request.speculation.enabled = true;
    const Record expected = run_plan(*host, plan), found = run_plan(*device, plan);
    for (size_t i = 0; i < plan.requests.size(); ++i) {
      EXPECT_EQ(expected.completions[i].tokens, found.completions[i].tokens) << i;
      EXPECT_EQ(expected.completions[i].text, found.completions[i].text) << i;
      EXPECT_EQ(expected.completions[i].finish_reason, found.completions[i].finish_reason) << i;
    }
    sums.steps_on_device += found.steps_on_device;
    sums.drafts_on_device += found.drafts_on_device;
  }
  return sums;
}

inline SpeculativeOptions automatic(SpeculativeOptions options) {
  options.is_auto = true;
  return options;
}
inline SpeculativeOptions with_schedule(SpeculativeOptions options) {
  options.draft_len_schedule = LengthSchedule::kHeuristic;
  return options;
}

}  // namespace outrider::device_steps
