// SPDX-License-Identifier: Apache-2.0
// Random operations on the paged cache against a plain list of tokens per sequence. Every cached row carries
// a number computed from all tokens up to it, so a row that is lost, stale, misplaced or shared wrongly
// shows.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>

#include "kv/kv_cache.h"

namespace outrider {
namespace {

#ifdef OUTRIDER_SLOW_TEST
constexpr int kRuns = 250;
#else
constexpr int kRuns = 20;
#endif
constexpr int kVocabulary = 3;
constexpr int kScopes = 3;
constexpr int kLayers = 2;

// Stands for the state of a network after reading `tokens`; exact in f32.
float payload(std::span<const TokenId> tokens) {
  uint32_t state = 1;
  for (const TokenId token : tokens) state = state * 2654435761u + static_cast<uint32_t>(token) + 7;
  return static_cast<float>(state >> 10);
}

class KvFuzzer {
 public:
  KvFuzzer(const KvShape& shape, int hash_bits, uint32_t seed)
      : random_(seed), cache_(shape, {.hash_bits = hash_bits, .poison = true}) {
    for (auto& beginning : beginnings_) {
      for (int i = 0; i < 3 * shape.page_size + 5; ++i) beginning.push_back(below(kVocabulary));
    }
  }

  void step() {
    const int operation = below(100);
    if (sequences_.empty() || operation < 12) {
      if (sequences_.size() < 8) open();
    } else if (operation < 70) {
      stage_and_finish(pick(), below(4) == 0);
    } else if (operation < 85) {
      rewind(pick());
    } else if (operation < 95) {
      const auto at = static_cast<std::ptrdiff_t>(pick());
      sequences_.erase(sequences_.begin() + at);
      scopes_.erase(scopes_.begin() + at);
    } else {
      for (const KvSequence& sequence : sequences_) check(sequence);
    }
    const Status status = cache_.check_invariants();
    ASSERT_TRUE(status.ok()) << status.error().message;
  }

  void finish() {
    for (const KvSequence& sequence : sequences_) check(sequence);
    sequences_.clear();
    ASSERT_TRUE(cache_.check_invariants().ok());
    EXPECT_EQ(cache_.available_pages(), cache_.shape().page_count);
  }

  int64_t hits() const { return hits_; }
  int64_t refusals() const { return refusals_; }
  int64_t extensions() const { return extensions_; }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<uint32_t>(bound)); }
  size_t pick() { return random_() % sequences_.size(); }

  void open() {
    const auto& beginning = beginnings_[random_() % beginnings_.size()];
    std::vector<TokenId> prompt(beginning.begin(),
                                beginning.begin() + below(static_cast<int>(beginning.size())));
    prompt.push_back(below(kVocabulary));
    const uint64_t scope = static_cast<uint64_t>(below(kScopes));
    const KvCache::Cached cached = cache_.find(prompt, scope);
    const int64_t available = cache_.available_pages();
    sequences_.push_back(cache_.open(prompt, scope));
    const KvSequence& sequence = sequences_.back();
    ASSERT_EQ(sequence.length(), cached.length);
    ASSERT_EQ(available - cache_.available_pages(), cached.idle_pages);
    // Only what was committed in this scope may be found: a draft that was rejected never is.
    for (size_t end = 1; end <= static_cast<size_t>(sequence.length()); ++end) {
      ASSERT_TRUE(committed_[scope].contains(payload(sequence.tokens().first(end))))
          << "entry " << end - 1 << " was never committed in scope " << scope;
    }
    scopes_.push_back(scope);
    ASSERT_LT(sequence.length(), static_cast<int32_t>(prompt.size()));
    ASSERT_EQ(sequence.length() % cache_.shape().page_size, 0);
    ASSERT_TRUE(std::equal(sequence.tokens().begin(), sequence.tokens().end(), prompt.begin()));
    hits_ += sequence.length() > 0 ? 1 : 0;
    check(sequence);
    // The rest of the prompt, as far as there is room, is the first chunk.
    prompt.erase(prompt.begin(), prompt.begin() + sequence.length());
    std::vector<int> chain(prompt.size());
    for (size_t i = 0; i < chain.size(); ++i) chain[i] = static_cast<int>(i) - 1;
    stage_tree(sequences_.size() - 1, prompt, chain, static_cast<int>(chain.size()) - 1);
  }

  void stage_and_finish(size_t index, bool roll_back) {
    const int count = 1 + below(17);
    std::vector<TokenId> tokens;
    std::vector<int> parents;
    for (int i = 0; i < count; ++i) {
      tokens.push_back(below(kVocabulary));
      parents.push_back(i == 0 ? -1 : below(i));
    }
    stage_tree(index, tokens, parents, roll_back ? -1 : below(count));
  }

  // Stages the tree and commits the path from the root to `last`; -1: rolls back.
  void stage_tree(size_t index, const std::vector<TokenId>& tokens, const std::vector<int>& parents,
                  int last) {
    KvSequence& sequence = sequences_[index];
    const std::vector<TokenId> before(sequence.tokens().begin(), sequence.tokens().end());
    const auto count = static_cast<int>(tokens.size());
    const int64_t needed = cache_.pages_needed(sequence, count);
    const int64_t available = cache_.available_pages();
    auto transaction = cache_.stage(sequence, count);
    ASSERT_EQ(transaction.ok(), needed <= available);
    if (!transaction.ok()) {
      ++refusals_;
      check(sequence);
      return;
    }
    std::vector<std::vector<TokenId>> texts;
    const int max = count + below(count + 1);  // entries for other uses, in the middle of writing
    for (int i = 0; i < count; ++i) {
      if (i == count / 2) extend(*transaction, max);
      const int parent = parents[static_cast<size_t>(i)];
      texts.push_back(parent < 0 ? before : texts[static_cast<size_t>(parent)]);
      texts.back().push_back(tokens[static_cast<size_t>(i)]);
      write(transaction->slot(i), payload(texts.back()));
    }
    ASSERT_TRUE(cache_.check_invariants().ok());
    if (last >= 0) {
      std::vector<int> path;
      std::vector<TokenId> accepted;
      for (int node = last; node >= 0; node = parents[static_cast<size_t>(node)]) {
        path.insert(path.begin(), node);
        accepted.insert(accepted.begin(), tokens[static_cast<size_t>(node)]);
      }
      transaction->commit(path, accepted);
    } else {
      const KvTransaction dropped = std::move(transaction).value();
    }
    const auto& expected = last >= 0 ? texts[static_cast<size_t>(last)] : before;
    ASSERT_TRUE(std::ranges::equal(sequence.tokens(), expected));
    for (size_t end = before.size() + 1; end <= expected.size(); ++end)
      committed_[scopes_[index]].insert(payload(std::span(expected).first(end)));
    check(sequence);
  }

  void extend(KvTransaction& transaction, int count) {
    const int before = transaction.count();
    const int64_t available = cache_.available_pages();
    const bool extended = transaction.extend(count).ok();
    ASSERT_EQ(transaction.count(), extended ? count : before);
    if (!extended) {
      ASSERT_EQ(cache_.available_pages(), available);
    }
    if (extended) write(transaction.slot(count - 1), -1.0f);
    extensions_ += extended ? 1 : 0;
  }

  void rewind(size_t index) {
    KvSequence& sequence = sequences_[index];
    const int32_t furthest = below(4) == 0 ? sequence.length() : std::min(sequence.length(), 20);
    const int32_t length = sequence.length() - below(furthest + 1);
    const std::vector<TokenId> expected(sequence.tokens().begin(), sequence.tokens().begin() + length);
    cache_.rewind(sequence, length);
    const bool is_lost = cache_.shape().window > 0 && sequence.length() == 0;
    ASSERT_TRUE(is_lost || std::ranges::equal(sequence.tokens(), expected));
    check(sequence);
  }

  float& number(std::byte* rows, int32_t slot) const {
    return *reinterpret_cast<float*>(rows + slot * cache_.shape().row_bytes());
  }

  void write(int32_t slot, float value) {
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      number(cache_.keys(layer), slot) = value + static_cast<float>(layer);
      number(cache_.values(layer), slot) = -value - static_cast<float>(layer);
    }
  }

  void check(const KvSequence& sequence) {
    const int page_size = cache_.shape().page_size;
    for (int32_t entry = 0; entry < sequence.length(); ++entry) {
      const int32_t page = sequence.pages()[static_cast<size_t>(entry / page_size)];
      if (page == KvSequence::kNoPage) {
        ASSERT_LT(entry, sequence.length() + 1 - cache_.shape().window);
        continue;
      }
      const int32_t slot = page * page_size + entry % page_size;
      const float expected = payload(sequence.tokens().first(static_cast<size_t>(entry) + 1));
      for (int64_t layer = 0; layer < kLayers; ++layer) {
        ASSERT_EQ(number(cache_.keys(layer), slot), expected + static_cast<float>(layer))
            << "entry " << entry;
        ASSERT_EQ(number(cache_.values(layer), slot), -expected - static_cast<float>(layer))
            << "entry " << entry;
      }
    }
  }

  std::mt19937 random_;
  KvCache cache_;
  std::vector<KvSequence> sequences_;
  std::vector<uint64_t> scopes_;                    // scopes of sequences_
  std::array<std::set<float>, kScopes> committed_;  // the state after each committed text
  std::array<std::vector<TokenId>, 3> beginnings_;
  int64_t hits_ = 0;
  int64_t refusals_ = 0;
  int64_t extensions_ = 0;
};

struct FuzzCase {
  int page_size;
  int64_t page_count;
  int hash_bits;
  int64_t window = 0;
};

class KvModelTest : public testing::TestWithParam<FuzzCase> {};

TEST_P(KvModelTest, RandomOperationsKeepEveryRow) {
  const FuzzCase param = GetParam();
  const KvShape shape{.layer_count = kLayers,
                      .kv_head_count = 1,
                      .head_dim = 1,
                      .page_size = param.page_size,
                      .page_count = param.page_count,
                      .window = param.window};
  constexpr int kSteps = 1000;
  int64_t hits = 0;
  int64_t refusals = 0;
  int64_t extensions = 0;
  for (uint32_t seed = 0; seed < static_cast<uint32_t>(kRuns); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    KvFuzzer fuzzer(shape, param.hash_bits, seed);
    for (int i = 0; i < kSteps && !testing::Test::HasFatalFailure(); ++i) fuzzer.step();
    if (testing::Test::HasFatalFailure()) return;
    fuzzer.finish();
    hits += fuzzer.hits();
    refusals += fuzzer.refusals();
    extensions += fuzzer.extensions();
  }
  EXPECT_GT(hits, 0);
  EXPECT_GT(refusals, 0);
  EXPECT_GT(extensions, 0);
}

INSTANTIATE_TEST_SUITE_P(PageSizes, KvModelTest,
                         testing::Values(FuzzCase{1, 80, 64}, FuzzCase{2, 40, 4}, FuzzCase{2, 48, 64},
                                         FuzzCase{16, 9, 4}, FuzzCase{64, 7, 0}, FuzzCase{1, 30, 64, 5},
                                         FuzzCase{2, 32, 4, 9}, FuzzCase{16, 9, 64, 20}),
                         [](const auto& info) {
                           return "page" + std::to_string(info.param.page_size) + "hash" +
                                  std::to_string(info.param.hash_bits) + "window" +
                                  std::to_string(info.param.window);
                         });

}  // namespace
}  // namespace outrider
