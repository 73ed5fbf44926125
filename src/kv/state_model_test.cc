// SPDX-License-Identifier: Apache-2.0
// States after any sequence of drafts, rejections, failed passes, forks and preemptions equal the states of
// plain decoding, also where sequences go on from checkpoints. A state here is a hash of its entries, kept in
// two layers that passes may reach at different times.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/counter_rng.h"
#include "kv/kv_cache.h"

namespace outrider {
namespace {

KvShape hashed_shape(int64_t checkpoint_count) {
  return {.layer_count = 1,
          .kv_head_count = 1,
          .head_dim = 2,
          .page_size = 4,
          .page_count = 64,
          .states = {.layer_count = 2,
                     .size = 1,
                     .update_size = 1,
                     .sequence_count = 2,
                     .checkpoint_count = checkpoint_count}};
}

// A number that a float holds exactly. A poisoned update gives another state.
float hashed(float state, float update) {
  const auto number = [](float value) {
    return value == value ? static_cast<uint64_t>(value) : ~uint64_t{0};
  };
  return static_cast<float>(mix64(number(state) * 0x9E3779B97F4A7C15ull ^ number(update)) % (1 << 24));
}

float expected_state(std::span<const TokenId> tokens) {
  return std::accumulate(tokens.begin(), tokens.end(), 0.0F,
                         [](float state, TokenId token) { return hashed(state, static_cast<float>(token)); });
}

// Treats the states of one sequence as a pass over a layer does.
class HashedSequence {
 public:
  HashedSequence(KvCache& cache, std::span<const TokenId> prefix) : cache_(cache), kv_(cache.open(prefix)) {}

  KvSequence& kv() { return kv_; }

  void apply_committed(int64_t layer) {
    StateStore& store = cache_.states();
    HostStates& numbers = cache_.host_states();
    const int32_t first = kv_.length() - kv_.kept_updates();
    float& state = *numbers.state(kv_.state(), layer);
    for (int32_t entry = store.entries(kv_.state(), layer); entry < kv_.length(); ++entry)
      state = hashed(state, *numbers.update(kv_.state(), entry - first, layer));
    store.set_entries(kv_.state(), layer, kv_.length());
  }

  void run_tree(std::span<const TokenId> tokens, int64_t layer) {
    apply_committed(layer);
    StateStore& store = cache_.states();
    HostStates& numbers = cache_.host_states();
    store.reserve_updates(kv_.state(), kv_.kept_updates() + std::ssize(tokens));
    for (size_t i = 0; i < tokens.size(); ++i)
      *numbers.update(kv_.state(), kv_.kept_updates() + static_cast<int64_t>(i), layer) =
          static_cast<float>(tokens[i]);
  }

  void run_chain(std::span<const TokenId> tokens, int64_t layer) {
    apply_committed(layer);
    StateStore& store = cache_.states();
    HostStates& numbers = cache_.host_states();
    store.reserve_updates(kv_.state(), kv_.kept_updates() + 1);
    float& state = *numbers.state(kv_.state(), layer);
    for (size_t i = 0; i + 1 < tokens.size(); ++i) state = hashed(state, static_cast<float>(tokens[i]));
    *numbers.update(kv_.state(), kv_.kept_updates(), layer) = static_cast<float>(tokens.back());
    store.set_entries(kv_.state(), layer, kv_.length() + static_cast<int32_t>(tokens.size()) - 1);
  }

  // The state after all committed entries.
  float state(int64_t layer) {
    StateStore& store = cache_.states();
    HostStates& numbers = cache_.host_states();
    float state = *numbers.state(kv_.state(), layer);
    const int32_t first = kv_.length() - kv_.kept_updates();
    for (int32_t entry = store.entries(kv_.state(), layer); entry < kv_.length(); ++entry)
      state = hashed(state, *numbers.update(kv_.state(), entry - first, layer));
    return state;
  }

 private:
  KvCache& cache_;
  KvSequence kv_;
};

class StateModel {
 public:
  StateModel(uint32_t seed, int64_t checkpoint_count)
      : random_(seed), cache_(hashed_shape(checkpoint_count), {.hash_bits = 64, .poison = true}) {
    sequence_.emplace(cache_, std::span<const TokenId>());
  }

  void step() {
    switch (draw(8)) {
      case 0:
        return prefill();
      case 1:
        return rewind();
      case 2:
        sequence_.reset();  // preempted: computed again from the beginning
        sequence_.emplace(cache_, text_);
        found_ += sequence_->kv().length();
        return restore();
      case 3:
        return fork();
      default:
        return draft();
    }
  }

  void check() {
    restore();
    ASSERT_TRUE(std::ranges::equal(sequence_->kv().tokens(), text_));
    for (int64_t layer = 0; layer < 2; ++layer) ASSERT_EQ(sequence_->state(layer), expected_state(text_));
    ASSERT_TRUE(cache_.check_invariants().ok());
  }
  int64_t committed() const { return committed_; }
  int64_t found() const {
    return found_;
  }  // entries that preempted and other sequences did not compute again

 private:
  int draw(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  TokenId token() { return draw(1000); }

  void trim() {
    if (text_.size() > 100) {
      text_.clear();
      sequence_.reset();
      sequence_.emplace(cache_, text_);
    }
  }

  // Commits the first `kept` of `tokens` as a chain.
  static void chain(HashedSequence& sequence, KvCache& cache, std::span<const TokenId> tokens, size_t kept) {
    auto staged = cache.stage(sequence.kv(), static_cast<int>(tokens.size()));
    ASSERT_TRUE(staged.ok());
    for (int64_t layer = 0; layer < 2; ++layer) sequence.run_chain(tokens, layer);
    std::vector<int> path(kept);
    std::iota(path.begin(), path.end(), 0);
    staged->commit(path, tokens.first(kept));
  }

  // Computes what the sequence lacks of the text, in chunks.
  void restore() {
    while (std::cmp_less(sequence_->kv().length(), text_.size())) {
      const auto rest = std::span(text_).subspan(static_cast<size_t>(sequence_->kv().length()));
      const auto chunk = rest.first(std::min<size_t>(rest.size(), 1 + static_cast<size_t>(draw(9))));
      chain(*sequence_, cache_, chunk, chunk.size());
    }
  }

  // A chunk of a prompt; its last token may be the one that turns out to end the text.
  void prefill() {
    trim();
    restore();
    std::vector<TokenId> tokens(1 + static_cast<size_t>(draw(9)));
    for (TokenId& next : tokens) next = token();
    const size_t kept = tokens.size() - static_cast<size_t>(tokens.size() > 1 ? draw(2) : 0);
    chain(*sequence_, cache_, tokens, kept);
    text_.insert(text_.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(kept));
    committed_ += static_cast<int64_t>(kept);
  }

  void rewind() {
    const auto length =
        static_cast<int32_t>(text_.size() - static_cast<size_t>(draw(3)) % (text_.size() + 1));
    text_.resize(static_cast<size_t>(length));
    if (sequence_->kv().length() > length) cache_.rewind(sequence_->kv(), length);
    restore();
  }

  // Another sequence begins with a part of the same text and goes its own way.
  void fork() {
    std::vector<TokenId> all(text_.begin(), text_.begin() + draw(static_cast<int>(text_.size()) + 1));
    all.push_back(token());
    HashedSequence other(cache_, all);
    found_ += other.kv().length();
    const auto tokens = std::span(all).subspan(static_cast<size_t>(other.kv().length()));
    chain(other, cache_, tokens, tokens.size());
    for (int64_t layer = 0; layer < 2; ++layer) ASSERT_EQ(other.state(layer), expected_state(all));
  }

  // A random tree. One layer may run before the tree is complete; the pass may fail; a part of a path is
  // committed.
  void draft() {
    trim();
    restore();
    const int count = 1 + draw(8);
    auto staged = cache_.stage(sequence_->kv(), count);
    ASSERT_TRUE(staged.ok());
    std::vector<TokenId> tokens;
    std::vector<int> parents;
    for (int i = 0; i < count; ++i) {
      tokens.push_back(token());
      parents.push_back(i == 0 ? -1 : draw(i));
    }
    if (draw(3) == 0) sequence_->run_tree(std::span(tokens).first(static_cast<size_t>(1 + draw(count))), 0);
    if (draw(6) == 0) return;  // the draft is dropped
    for (int64_t layer = 0; layer < 2; ++layer) sequence_->run_tree(tokens, layer);
    if (draw(8) == 0) return;  // the pass is dropped
    std::vector<int> path;
    for (int node = draw(count); node >= 0; node = parents[static_cast<size_t>(node)]) path.push_back(node);
    std::ranges::reverse(path);
    std::vector<TokenId> accepted;
    for (const int node : path) accepted.push_back(tokens[static_cast<size_t>(node)]);
    staged->commit(path, accepted);
    text_.insert(text_.end(), accepted.begin(), accepted.end());
    committed_ += std::ssize(accepted);
  }

  std::mt19937 random_;
  KvCache cache_;
  std::optional<HashedSequence> sequence_;
  std::vector<TokenId> text_;
  int64_t committed_ = 0, found_ = 0;
};

class StateModelTest : public testing::TestWithParam<int64_t> {};

TEST_P(StateModelTest, AnyHistoryLeavesTheStateOfPlainDecoding) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    StateModel model(seed, GetParam());
    for (int step = 0; step < 500; ++step) {
      model.step();
      if (HasFatalFailure()) return;
      if (step % 10 == 0) model.check();
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(model.committed(), 500);
    EXPECT_EQ(model.found() > 0, GetParam() > 0) << model.found();
  }
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, StateModelTest, testing::Values(0, 1, 3, 20),
                         [](const auto& info) { return std::to_string(info.param); });

// A prompt keeps the checkpoint at the end of its last chunk beside the one that moves with the text.
TEST(StateCheckpoints, LastOfThePromptAndLastOfTheTextAreKept) {
  KvCache cache(hashed_shape(8));
  std::vector<TokenId> text;
  {
    HashedSequence sequence(cache, {});
    const auto commit = [&](int count, bool is_chain) {
      std::vector<TokenId> tokens;
      std::vector<int> path;
      for (int i = 0; i < count; ++i) {
        path.push_back(i);
        tokens.push_back(static_cast<TokenId>(text.size()) + i);
      }
      auto staged = cache.stage(sequence.kv(), count);
      ASSERT_TRUE(staged.ok());
      for (int64_t layer = 0; layer < 2; ++layer)
        is_chain ? sequence.run_chain(tokens, layer) : sequence.run_tree(tokens, layer);
      staged->commit(path, tokens);
      text.insert(text.end(), tokens.begin(), tokens.end());
    };
    commit(8, true);
    commit(12, true);  // 20: ends with a page, as its rows after that page belong to the pending token
    commit(3, true);
    for (int i = 0; i < 20; ++i) commit(3, false);
  }
  ASSERT_EQ(text.size(), 83U);
  const auto found = [&](size_t length) { return cache.find(std::span(text).first(length), 0).length; };
  EXPECT_EQ(found(12), 0);  // the checkpoint at 8 gave its place to the one at 20
  EXPECT_EQ(found(30), 20);
  EXPECT_EQ(found(83), 80);
  HashedSequence other(cache, text);
  EXPECT_EQ(other.kv().length(), 80);
  EXPECT_EQ(other.state(1), expected_state(std::span(text).first(80)));
}

TEST(StateCheckpoints, RewindGoesBackToTheLastOne) {
  KvCache cache(hashed_shape(8));
  HashedSequence sequence(cache, {});
  std::vector<TokenId> text;
  for (TokenId token = 0; token < 30; ++token) {
    auto staged = cache.stage(sequence.kv(), 1);
    ASSERT_TRUE(staged.ok());
    for (int64_t layer = 0; layer < 2; ++layer) sequence.run_tree({&token, 1}, layer);
    staged->commit(std::vector<int>{0}, {&token, 1});
    text.push_back(token);
  }
  cache.rewind(sequence.kv(), 29);  // the last pass did not apply the update of the last entry
  EXPECT_EQ(sequence.kv().length(), 29);
  EXPECT_EQ(sequence.state(0), expected_state(std::span(text).first(29)));
  cache.rewind(sequence.kv(), 28);
  EXPECT_EQ(sequence.kv().length(), 28);
  EXPECT_EQ(sequence.state(1), expected_state(std::span(text).first(28)));
  cache.rewind(sequence.kv(), 27);  // the checkpoint has the last entry as an update
  EXPECT_EQ(sequence.kv().length(), 27);
  EXPECT_EQ(sequence.state(0), expected_state(std::span(text).first(27)));
  cache.rewind(sequence.kv(), 26);  // the only checkpoint is later
  EXPECT_EQ(sequence.kv().length(), 0);
  EXPECT_EQ(sequence.state(0), 0.0F);
}

TEST(StateStore, PassOverAChainThatIsNotCommittedLosesTheSequence) {
  KvCache cache(hashed_shape(0), {.hash_bits = 64, .poison = true});
  HashedSequence sequence(cache, {});
  const std::vector<TokenId> tokens = {5, 6, 7};
  {
    auto staged = cache.stage(sequence.kv(), 3);
    ASSERT_TRUE(staged.ok());
    for (int64_t layer = 0; layer < 2; ++layer) sequence.run_chain(tokens, layer);
  }
  EXPECT_EQ(sequence.kv().length(), 0);
  EXPECT_EQ(sequence.state(0), 0.0F);
}

}  // namespace
}  // namespace outrider
