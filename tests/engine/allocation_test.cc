// SPDX-License-Identifier: Apache-2.0
// A steady engine step allocates nothing, on any thread. The exceptions are drafters that learn from the text
// (NGram's pool grows with it), sinks, and the rejection rule's residual distributions. Others are tokens
// that stand for more than 15 bytes of text, and sequences that grow beyond 65536 tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <optional>
#include <set>
#include <vector>

#include "config/methods.h"
#include "draft_heads/recurrent_test_data.h"
#include "open/parts.h"
#include "outrider/engine.h"
#include "tests/support/drafter_wrapper.h"

namespace {
std::atomic<bool> counting{false};
std::atomic<int> allocations{0};

void* counted(size_t bytes, size_t alignment) {
  if (counting) ++allocations;
  bytes = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, bytes == 0 ? alignment : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<size_t>(alignment));
}
// Sanitizers replace the forms that are not replaced here.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return counted(bytes, alignof(std::max_align_t));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](size_t bytes, const std::nothrow_t& tag) noexcept { return operator new(bytes, tag); }
void* operator new[](size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace outrider {
namespace {

// Notes which sequences draft, and does not count the allocations of its drafter unless is_counted.
class Watched final : public DrafterWrapper {
 public:
  Watched(std::shared_ptr<Drafter> drafter, bool is_counted)
      : DrafterWrapper(std::move(drafter)), is_counted_(is_counted) {}

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    const bool was_counting = counting.exchange(false);
    for (const DraftRequest& request : requests) has_first_draft |= drafting_.insert(request.sequence).second;
    counting = was_counting && is_counted_;
    Status status = DrafterWrapper::draft(requests, trees);
    counting = was_counting;
    drafts += static_cast<int>(requests.size());
    return status;
  }

  // Both are cleared by the test.
  bool has_first_draft = false;  // a sequence drafted for the first time
  int drafts = 0;                // requests to draft

 private:
  bool is_counted_;
  std::set<uint64_t> drafting_;
};

struct WatchedEngine {
  std::unique_ptr<Engine> engine;
  std::shared_ptr<Watched> drafter;
};

WatchedEngine open_watched(EngineOptions options) {
  const bool is_counted = options.speculation.decoding_type != Method::kNGram;
  auto parts = open_parts(std::move(options));
  EXPECT_TRUE(parts.ok()) << parts.error().message;
  auto drafter = std::make_shared<Watched>((*parts)->drafter, is_counted);
  (*parts)->drafter = drafter;
  return {.engine = Engine::assemble(std::move(parts).value()), .drafter = std::move(drafter)};
}

EngineOptions options_with(const std::string& drafter) {
  const std::string models = std::string(OUTRIDER_SOURCE_DIR) + "/models/";
  EngineOptions options;
  options.model = models + "outrider-small";
  options.threads = 2;
  options.context = 1024;
  options.speculation.decoding_type = *find_method(drafter);
  options.speculation.speculative_model = models + "outrider-draft";
  // Drafts of full length from the start, so that no depth is reached for the first time later.
  if (drafter == "EarlyExit") options.speculation.stop.assistant_confidence_threshold = 1e-300;
  return options;
}

// Options of a learned drafter with fake weights, on the small target that they fit.
EngineOptions options_with_head(const FakeHead& head) {
  EngineOptions options;
  options.model = OUTRIDER_SOURCE_DIR "/tests/data/models/llama";
  options.threads = 2;
  options.speculation.method_unset = true;
  options.speculation.speculative_model = head.write();
  return options;
}

// Two requests that run until they are dropped.
class Pair {
 public:
  Pair(Engine& engine, const SamplingParams& sampling, std::optional<bool> is_auto) : engine_(engine) {
    for (const char* text : {"Once upon a time there was", "def add(a, b):"}) {
      Request request;
      request.prompt = engine.tokenize(text);
      request.sampling = sampling;
      request.max_tokens = 900;
      request.ignore_eos = true;
      request.speculation.is_auto = is_auto;
      const auto id = engine.submit(std::move(request));
      EXPECT_TRUE(id.ok());
      ids_.push_back(*id);
    }
  }
  ~Pair() {
    for (const RequestId id : ids_) engine_.cancel(id);
    while (engine_.step()) {
    }
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void run(int steps) {
    for (int i = 0; i < steps; ++i) EXPECT_TRUE(engine_.step());
  }

 private:
  Engine& engine_;
  std::vector<RequestId> ids_;
};

constexpr int kWarmUp = 20;

// Leaves out the steps of first drafts, in which a drafter makes room for a sequence.
int allocations_of_steps(Pair& pair, Watched& drafter) {
  int steady = 0;
  for (int step = 0; step < 60; ++step) {
    drafter.has_first_draft = false;
    allocations = 0;
    counting = true;
    pair.run(1);
    counting = false;
    if (!drafter.has_first_draft) steady += allocations;
  }
  return steady;
}

int allocations_of_steady_steps(const WatchedEngine& watched, const SamplingParams& sampling) {
  Pair pair(*watched.engine, sampling, {});
  pair.run(kWarmUp);
  return allocations_of_steps(pair, *watched.drafter);
}

TEST(Allocation, SteadyStepsAllocateNothing) {
  SamplingParams softmax;
  softmax.temperature = 0.8;
  SamplingParams cut = softmax;
  cut.top_k = 40;
  cut.top_p = 0.9;
  cut.repetition_penalty = 1.1;
  for (const std::string drafter : {"None", "NGram", "DraftTarget", "EarlyExit"}) {
    const WatchedEngine watched = open_watched(options_with(drafter));
    for (const SamplingParams& sampling : {SamplingParams(), softmax, cut}) {
      EXPECT_EQ(allocations_of_steady_steps(watched, sampling), 0)
          << drafter << ", temperature " << sampling.temperature << ", top k " << sampling.top_k;
    }
  }
}

// The policy decides anew in every step which sequences draft and how much, by measured times: on a busy
// machine a sequence may not draft at all.
TEST(Allocation, ThePolicyAllocatesNothingEither) {
  SamplingParams softmax;
  softmax.temperature = 0.8;
  int drafts = 0;
  for (const std::string drafter : {"NGram", "DraftTarget", "EarlyExit"}) {
    for (const TreeKind tree : {TreeKind::kChain, TreeKind::kDynamic}) {
      EngineOptions options = options_with(drafter);
      options.speculation.is_auto = true;
      options.speculation.tree.kind = tree;
      const WatchedEngine watched = open_watched(options);
      for (const SamplingParams& sampling : {SamplingParams(), softmax}) {
        // Trees as large as the policy may ask for at any time.
        Pair(*watched.engine, sampling, false).run(kWarmUp);
        Pair pair(*watched.engine, sampling, true);
        pair.run(kWarmUp);
        watched.drafter->drafts = 0;
        EXPECT_EQ(allocations_of_steps(pair, *watched.drafter), 0)
            << drafter << ", temperature " << sampling.temperature << ", tree " << static_cast<int>(tree);
        drafts += watched.drafter->drafts;
      }
    }
  }
  EXPECT_GT(drafts, 0);
}

TEST(Allocation, LearnedDraftersAllocateNothingEither) {
  SamplingParams softmax;
  softmax.temperature = 0.8;
  for (const char* name : {"eagle", "eagle3", "mtp", "mtp_chained"}) {
    FakeHead head;
    fill_head(head, head_golden(name));
    for (const TreeKind tree : {TreeKind::kChain, TreeKind::kDynamic}) {
      EngineOptions options = options_with_head(head);
      options.speculation.tree.kind = tree;
      const WatchedEngine watched = open_watched(options);
      for (const SamplingParams& sampling : {SamplingParams(), softmax})
        EXPECT_EQ(allocations_of_steady_steps(watched, sampling), 0) << name;
    }
  }
}

// The policy keeps copies of trees that a drafter grew larger and cut.
TEST(Allocation, ACopyOfACutTreeTakesNoMoreRoomThanItsNodes) {
  TokenTree grown(0);
  for (int node = 0; node < 40; ++node) grown.add(0, node, 0.5);
  std::vector<uint8_t> kept(41, 0);
  std::fill_n(kept.begin(), 6, uint8_t{1});
  grown.keep(kept);
  TokenTree copy(0);
  copy.reserve(6);
  allocations = 0;
  counting = true;
  copy = grown;
  counting = false;
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(copy.size(), 6);
}

TEST(Allocation, TheCounterCounts) {
  allocations = 0;
  counting = true;
  const auto one = std::make_unique<int>(1);
  counting = false;
  EXPECT_EQ(allocations, 1);
}

}  // namespace
}  // namespace outrider
