// SPDX-License-Identifier: Apache-2.0
// Requests with trees that come from outside the engine: the output equals plain decoding, whatever is
// offered and whenever, and nobody waits for a tree but its own request.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/sanitized.h"
#include "drafters/registry.h"
#include "tests/lossless/hash_run.h"

namespace outrider::offered_trees_test {
namespace {

constexpr int kNodes = 12;

std::shared_ptr<Drafter> ngram_drafter() {
  SpeculativeOptions options;
  options.decoding_type = Method::kNGram;
  return *make_drafter(options, {});
}

std::unique_ptr<EngineParts> parts_with_offers(const EngineSetup& setup) {
  auto parts = hash_parts(setup, ngram_drafter());
  parts->options.offered_nodes = kNodes;
  return parts;
}

Request random_request(std::mt19937& random, bool is_offered) {
  Request request;
  const unsigned length = 1 + random() % 30;
  for (unsigned i = 0; i < length; ++i) request.prompt.push_back(static_cast<TokenId>(random() % kLetters));
  request.max_tokens = 1 + static_cast<int64_t>(random() % 50);
  request.ignore_eos = random() % 2 == 0;
  request.sampling.temperature = random() % 2 == 0 ? 0.0 : 0.8;
  request.sampling.seed = random();
  request.sampling.presence_penalty = random() % 3 == 0 ? 0.5 : 0.0;
  request.speculation.is_offered = is_offered;
  return request;
}

// Requests in progress, their output so far, and the output that they must get.
struct Watched {
  Request request;
  RequestId id = 0;
  Expected expected = {};
  std::vector<TokenId> output = {};
  std::string text = {};
  bool is_finished = false;
};

// A tree that follows the right continuation for some levels, beside wrong branches, and is larger than the
// engine allows now and then.
TokenTree random_tree(const Watched& watched, std::mt19937& random) {
  const std::vector<TokenId>& right = watched.expected.tokens;
  TokenTree tree(watched.output.empty() ? watched.request.prompt.back() : watched.output.back());
  int right_node = 0;
  size_t next = watched.output.size();
  for (unsigned left = random() % (2 * kNodes); left > 0; --left) {
    const bool is_right = next < right.size() && random() % 3 != 0;
    if (is_right) {
      right_node = tree.add(right_node, right[next++]);
    } else {
      tree.add(static_cast<int>(random() % static_cast<unsigned>(tree.size())),
               static_cast<TokenId>(random() % kLetters));
    }
  }
  return tree;
}

class Offers {
 public:
  Offers(const EngineSetup& setup, uint32_t seed) : random_(seed) {
    auto parts = parts_with_offers(setup);
    cache_ = parts->cache.get();
    context_ = setup.context;
    engine_ = Engine::assemble(std::move(parts));
    pages_ = engine_->free_pages();
  }

  void submit(Request request) {
    auto& watched = watched_.emplace_back(std::make_unique<Watched>(Watched{.request = request}));
    watched->expected = plain_output(HashModel(), request, context_);
    const auto id = engine_->submit(request, [watched = watched.get()](RequestId, const Progress& progress) {
      watched->output.insert(watched->output.end(), progress.tokens.begin(), progress.tokens.end());
      watched->text += progress.text;
      watched->is_finished = progress.completion != nullptr;
    });
    ASSERT_TRUE(id.ok()) << id.error().message;
    watched->id = *id;
  }

  // Offers trees to one in `share` of all requests, also of requests that offer none.
  void offer(unsigned share) {
    for (const auto& watched : watched_) {
      if (random_() % share == 0) engine_->offer(watched->id, random_tree(*watched, random_));
    }
  }

  void run() {
    for (int idle = 0; idle < 1000;) {
      idle = engine_->step() ? 0 : idle + 1;
      ASSERT_TRUE(cache_->check_invariants().ok());
      offer(3);
    }
    for (const auto& watched : watched_) {
      ASSERT_TRUE(watched->is_finished);
      ASSERT_EQ(watched->output, watched->expected.tokens);
      ASSERT_EQ(watched->text, watched->expected.text);
    }
    ASSERT_EQ(engine_->free_pages(), pages_);
  }

  Engine& engine() { return *engine_; }

 private:
  std::mt19937 random_;
  int64_t context_ = 0;
  std::vector<std::unique_ptr<Watched>> watched_;
  std::unique_ptr<Engine> engine_;
  KvCache* cache_ = nullptr;
  int64_t pages_ = 0;
};

EngineSetup random_setup(uint32_t seed) {
  return {.page_size = 1 << seed % 5,
          .kv_pages = seed % 3 == 0 ? 1 : 0,
          .max_batch = 1 + static_cast<int>(seed % 4),
          .prefill_chunk = 1 + static_cast<int>(seed % 16),
          .max_batch_rows = seed % 4 == 0 ? 1 + static_cast<int>(seed % 4) : 0,
          .preempt_every = seed % 5 == 0 ? 2 : 0};
}

TEST(OfferedTrees, GiveTheTextOfPlainDecoding) {
  for (uint32_t seed = 1; seed <= static_cast<uint32_t>(repetitions(300)); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Offers offers(random_setup(seed), seed);
    std::mt19937 random(seed);
    for (int i = 0; i < 7; ++i) {
      offers.submit(random_request(random, random() % 2 == 0));
      if (i % 2 == 0) offers.engine().step();
    }
    offers.run();
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(OfferedTrees, ARequestWithoutItsTreeHoldsNoPlaceAndDelaysNobody) {
  const auto engine = Engine::assemble(parts_with_offers({.max_batch = 1}));
  std::mt19937 random(1);
  Request waits = random_request(random, true);
  waits.max_tokens = 20;
  waits.ignore_eos = true;
  const auto waiting = engine->submit(waits);
  ASSERT_TRUE(waiting.ok());
  while (engine->step()) {
  }
  EXPECT_EQ(engine->status().parked, 1);
  EXPECT_EQ(engine->status().running, 0);
  const auto plain = engine->generate(random_request(random, false));
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(engine->status().parked, 1);
  const int64_t committed = engine->status().output_tokens;
  engine->offer(*waiting, TokenTree(waits.prompt.back()));
  EXPECT_FALSE(engine->step());  // it waits again
  EXPECT_EQ(engine->status().output_tokens, committed + 1);
  engine->cancel(*waiting);
  EXPECT_FALSE(engine->step());
  EXPECT_EQ(engine->status().parked, 0);
}

TEST(OfferedTrees, PagesOfWaitingRequestsGoToOthersAndAreComputedAgain) {
  // The cache has pages for one sequence of full length.
  Offers offers({.page_size = 4, .kv_pages = 1, .max_batch = 2}, 5);
  std::mt19937 random(5);
  for (int i = 0; i < 4; ++i) {
    Request request = random_request(random, true);
    request.max_tokens = 60;
    offers.submit(request);
  }
  offers.run();
}

TEST(OfferedTrees, OutputOfAnEarlierRunIsContinued) {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    Request request = random_request(random, false);
    const Expected whole = plain_output(HashModel(), request, kContext);
    if (whole.tokens.size() < 2) continue;
    const auto cut = static_cast<std::ptrdiff_t>(1 + random() % (whole.tokens.size() - 1));
    request.output.assign(whole.tokens.begin(), whole.tokens.begin() + cut);
    const auto engine = Engine::assemble(parts_with_offers({}));
    std::string streamed;
    const auto completion =
        engine->generate(request, [&](RequestId, const Progress& progress) { streamed += progress.text; });
    ASSERT_TRUE(completion.ok()) << completion.error().message;
    EXPECT_EQ(completion->tokens, whole.tokens);
    EXPECT_EQ(completion->text, whole.text);
    EXPECT_EQ(completion->finish_reason, whole.reason);
    EXPECT_TRUE(whole.text.ends_with(streamed));
  }
}

TEST(OfferedTrees, AreRefusedWhereTheEngineTakesNone) {
  const auto engine = Engine::assemble(hash_parts({}, ngram_drafter()));
  std::mt19937 random(1);
  const auto refused = engine->submit(random_request(random, true));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
  const auto offering = Engine::assemble(parts_with_offers({}));
  EXPECT_FALSE(offering->generate(random_request(random, true)).ok());
  Request long_output = random_request(random, true);
  long_output.output.assign(static_cast<size_t>(long_output.max_tokens), 0);
  EXPECT_FALSE(offering->submit(long_output).ok());
}

}  // namespace
}  // namespace outrider::offered_trees_test
