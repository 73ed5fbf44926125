// SPDX-License-Identifier: Apache-2.0
#include "drafters/lookahead/lookahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>

#include "base/counter_rng.h"
#include "drafters/lookahead/lookahead_window.h"
#include "drafters/registry.h"

namespace outrider {
namespace {

using Tokens = std::vector<TokenId>;
using Target = std::function<TokenId(const Tokens&)>;  // the next token after a text

// Depends on the last `order` tokens; its text is periodic sooner or later.
Target hash_target(int order, int letters, uint64_t seed) {
  return [=](const Tokens& text) {
    uint64_t hash = seed;
    for (size_t i = text.size() - std::min(text.size(), static_cast<size_t>(order)); i < text.size(); ++i) {
      hash = mix64(hash ^ static_cast<uint64_t>(text[i]));
    }
    return static_cast<TokenId>(hash % static_cast<uint64_t>(letters));
  };
}

// One input of a pass in the published form: a token with a position and a row of the attention mask.
struct Slot {
  TokenId token = 0;
  int64_t position = 0;
  std::vector<size_t> sees;  // slots, itself included
};

// The algorithm as published, over flat inputs with explicit masks: no tree, nothing shared. Two differences:
// the target's token after a whole match is committed, too, and a column of the window that turns out right
// counts like a guess.
class Reference {
 public:
  Reference(const LookaheadShape& shape, uint64_t sequence, Tokens prompt, Target target)
      : shape_(shape),
        sequence_(sequence),
        prompt_(prompt),
        text_(std::move(prompt)),
        target_(std::move(target)) {
    levels_.resize(1);
    refill();
  }

  const Tokens& text() const { return text_; }

  Tokens step() {
    slots_.clear();
    for (const TokenId token : text_) add(token, slots_.empty() ? std::vector<size_t>{} : slots_.back().sees);
    const size_t pending = slots_.size() - 1;
    std::vector<std::vector<size_t>> candidates;  // slots after the pending token that may be accepted
    Tokens choices;                               // after the last level
    size_t top = pending;
    std::vector<size_t> row;
    for (size_t column = 0; column <= levels_[0].size(); ++column) {
      if (column > 0) {
        top = add(levels_[0][column - 1], slots_[top].sees);
        row.push_back(top);
      }
      std::vector<size_t> candidate = row;
      for (size_t level = 1; level < levels_.size(); ++level) {
        const size_t above = candidate.size() == column && level == 1 ? top : candidate.back();
        candidate.push_back(add(levels_[level][column], slots_[above].sees));
      }
      choices.push_back(choice_after(candidate.empty() ? pending : candidate.back()));
      candidates.push_back(candidate);
    }
    for (const Tokens& guess : pool_[text_.back()]) {
      std::vector<size_t> candidate;
      for (const TokenId token : guess) {
        candidate.push_back(add(token, slots_[candidate.empty() ? pending : candidate.back()].sees));
      }
      candidates.push_back(candidate);
    }
    Tokens committed = accept(pending, candidates);
    learn(choices);
    shift(choices, committed.size() - 1);
    text_.insert(text_.end(), committed.begin(), committed.end());
    refill();
    return committed;
  }

 private:
  size_t add(TokenId token, std::vector<size_t> sees) {
    const int64_t position = sees.empty() ? 0 : slots_[sees.back()].position + 1;
    sees.push_back(slots_.size());
    slots_.push_back({token, position, std::move(sees)});
    return slots_.size() - 1;
  }

  TokenId choice_after(size_t slot) const {
    Tokens seen;
    for (const size_t other : slots_[slot].sees) {
      EXPECT_EQ(slots_[other].position, static_cast<int64_t>(seen.size()));
      seen.push_back(slots_[other].token);
    }
    return target_(seen);
  }

  Tokens accept(size_t pending, const std::vector<std::vector<size_t>>& candidates) const {
    Tokens longest = {choice_after(pending)};
    for (const std::vector<size_t>& candidate : candidates) {
      Tokens taken;
      TokenId wanted = choice_after(pending);
      for (const size_t slot : candidate) {
        if (slots_[slot].token != wanted) break;
        taken.push_back(wanted);
        wanted = choice_after(slot);
      }
      taken.push_back(wanted);
      if (taken.size() > longest.size()) longest = taken;
    }
    return longest;
  }

  bool is_warm() const { return levels_.size() == static_cast<size_t>(shape_.ngram - 1); }

  void learn(const Tokens& choices) {
    if (!is_warm()) return;
    for (size_t column = 0; column < choices.size(); ++column) {
      Tokens value;
      for (size_t level = 1; level < levels_.size(); ++level) value.push_back(levels_[level][column]);
      value.push_back(choices[column]);
      std::deque<Tokens>& kept = pool_[column == 0 ? text_.back() : levels_[0][column - 1]];
      std::erase(kept, value);
      kept.push_back(value);
      if (kept.size() > static_cast<size_t>(shape_.guesses)) kept.pop_front();
    }
  }

  static Tokens without(const Tokens& tokens, size_t count) {
    return {tokens.begin() + static_cast<std::ptrdiff_t>(std::min(count, tokens.size())), tokens.end()};
  }

  void shift(const Tokens& choices, size_t hit) {
    std::vector<Tokens> old = levels_;
    old.push_back(choices);
    if (is_warm()) {
      levels_[0] = without(old[1], 1 + hit);
      for (size_t level = 1; level < levels_.size(); ++level) levels_[level] = without(old[level + 1], hit);
    } else {
      levels_ = old;
      for (Tokens& level : levels_) level = without(level, 1 + hit);
    }
  }

  void refill() {
    const size_t width = static_cast<size_t>(shape_.columns + shape_.ngram - 1) - levels_.size();
    for (size_t level = 0; level < levels_.size(); ++level) {
      Tokens& tokens = levels_[level];
      while (tokens.size() < width - (level == 0 ? 1 : 0)) {
        const size_t column = tokens.size() + (level == 0 ? 1 : 0);
        tokens.push_back(lookahead_filler(prompt_, sequence_, level,
                                          static_cast<int64_t>(text_.size() - 1 + level + column)));
      }
    }
  }

  LookaheadShape shape_;
  uint64_t sequence_;
  Tokens prompt_;
  Tokens text_;
  Target target_;
  std::vector<Tokens> levels_;
  std::map<TokenId, std::deque<Tokens>> pool_;
  std::vector<Slot> slots_;
};

// The engine's part of a step: verify the tree against the target, tell the drafter.
class Decoder {
 public:
  Decoder(const SpeculativeOptions& options, uint64_t sequence, const Tokens& prompt, Target target)
      : depth_(lookahead_draft_len(options)),
        nodes_(lookahead_nodes(options)),
        sequence_(sequence),
        prompt_(prompt.size()),
        text_(prompt),
        target_(std::move(target)),
        drafter_(*make_lookahead_drafter(options, {})) {}

  void set_limits(int depth, int nodes) { depth_ = depth, nodes_ = nodes; }
  const Tokens& text() const { return text_; }

  // `keeps(node)`: whether a drafted node survives on its way to the target.
  Tokens step(const std::function<bool(int)>& keeps = [](int) { return true; }) {
    const DraftRequest request{.sequence = sequence_,
                               .tokens = text_,
                               .prompt_length = static_cast<int>(prompt_),
                               .max_draft_len = depth_,
                               .max_nodes = nodes_};
    TokenTree tree(text_.back());
    EXPECT_TRUE(drafter_->draft({&request, 1}, {&tree, 1}).ok());
    EXPECT_LE(tree.drafted(), nodes_);
    for (int node = 0; node < tree.size(); ++node) EXPECT_LE(tree.depth(node), depth_);
    std::vector<uint8_t> kept;
    for (int node = 0; node < tree.size(); ++node) kept.push_back(node == 0 || keeps(node) ? 1 : 0);
    tree.keep(kept);

    Verdict verdict;
    for (int node = 0; node < tree.size(); ++node) verdict.choices.push_back(choice_after(tree, node));
    int node = 0;
    while (node >= 0) {
      const TokenId token = verdict.choices[static_cast<size_t>(node)];
      verdict.tokens.push_back(token);
      int child = -1;
      for (int other = 1; other < tree.size(); ++other) {
        if (tree.parent(other) == node && tree.token(other) == token) child = other;
      }
      node = child;
    }
    text_.insert(text_.end(), verdict.tokens.begin(), verdict.tokens.end());
    drafter_->observe(sequence_, tree, verdict);
    return verdict.tokens;
  }

 private:
  TokenId choice_after(const TokenTree& tree, int node) const {
    Tokens path;
    for (; node > 0; node = tree.parent(node)) path.push_back(tree.token(node));
    Tokens text = text_;
    text.insert(text.end(), path.rbegin(), path.rend());
    return target_(text);
  }

  int depth_, nodes_;
  uint64_t sequence_;
  size_t prompt_;
  Tokens text_;
  Target target_;
  std::shared_ptr<Drafter> drafter_;
};

SpeculativeOptions options_of(const LookaheadShape& shape) {
  SpeculativeOptions options;
  options.lookahead.max_window_size = shape.columns;
  options.lookahead.max_ngram_size = shape.ngram;
  options.lookahead.max_verification_set_size = shape.guesses;
  return options;
}

class HashRandom {
 public:
  explicit HashRandom(uint64_t seed) : state_(seed) {}
  int below(int n) { return static_cast<int>(mix64(++state_) % static_cast<uint64_t>(n)); }

 private:
  uint64_t state_;
};

TEST(Lookahead, CommitsWhatThePublishedAlgorithmCommits) {
  int64_t tokens = 0;
  int64_t steps = 0;
  for (uint64_t round = 1; round <= 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    HashRandom random(round * 1000);
    const LookaheadShape shape{
        .columns = 1 + random.below(6), .ngram = 2 + random.below(5), .guesses = random.below(5)};
    const int letters = 2 + random.below(12);
    Tokens prompt;
    for (int n = random.below(12); n >= 0; --n) prompt.push_back(random.below(letters));
    const Target target = hash_target(1 + random.below(3), letters, round);
    Reference reference(shape, round, prompt, target);
    Decoder decoder(options_of(shape), round, prompt, target);
    for (int step = 0; step < 40; ++step, ++steps) {
      const Tokens committed = decoder.step();
      ASSERT_EQ(committed, reference.step()) << "step " << step;
      tokens += static_cast<int64_t>(committed.size());
    }
  }
  EXPECT_GT(tokens, steps * 3 / 2);
}

TEST(Lookahead, APeriodicTextTakesFewSteps) {
  // 23 different tokens, of which the prompt holds one.
  const Target next = [](const Tokens& text) { return (text.back() + 1) % 23; };
  const LookaheadShape shape{.columns = 7, .ngram = 5, .guesses = 7};
  Decoder decoder(options_of(shape), 1, {0}, next);
  for (int step = 0; step < 60; ++step) decoder.step();
  int64_t tokens = 0;
  for (int step = 0; step < 40; ++step) tokens += static_cast<int64_t>(decoder.step().size());
  EXPECT_GE(tokens, 40 * (shape.ngram - 1));
}

// Nodes that get lost, limits that change, and steps without a draft cost acceptance only.
TEST(Lookahead, TakesWhatIsLeftOfItsTree) {
  for (uint64_t round = 1; round <= 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    HashRandom random(round * 1000);
    const LookaheadShape shape{
        .columns = 1 + random.below(6), .ngram = 2 + random.below(5), .guesses = random.below(5)};
    const Target target = hash_target(2, 6, round);
    Decoder decoder(options_of(shape), round, {1, 2, 3}, target);
    Tokens plain = {1, 2, 3};
    for (int step = 0; step < 40; ++step) {
      decoder.set_limits(1 + random.below(lookahead_draft_len(options_of(shape))),
                         1 + random.below(lookahead_nodes(options_of(shape))));
      decoder.step([&](int) { return random.below(10) > 0; });
    }
    while (plain.size() < decoder.text().size()) plain.push_back(target(plain));
    ASSERT_EQ(decoder.text(), plain);
  }
}

TEST(Lookahead, DepthAndNodesAreThoseOfItsLargestTree) {
  for (int columns = 1; columns <= 6; ++columns) {
    for (int ngram = 2; ngram <= 8; ++ngram) {
      for (const int guesses : {0, 3}) {
        const LookaheadShape shape{.columns = columns, .ngram = ngram, .guesses = guesses};
        const SpeculativeOptions options = options_of(shape);
        LookaheadWindow window(shape);
        // Every token once, so that no two nodes coincide.
        Tokens prompt(1000);
        for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<TokenId>(i);
        int depth = 1;
        int nodes = 1;
        TokenId fresh = 1000;
        Tokens text = prompt;
        for (int step = 0; step < 4 * ngram; ++step) {
          const DraftRequest request{.sequence = 1,
                                     .tokens = text,
                                     .prompt_length = 1000,
                                     .max_draft_len = 100,
                                     .max_nodes = 10'000};
          TokenTree tree(text.back());
          window.move_to(request);
          window.draft(request, tree);
          nodes = std::max(nodes, tree.drafted());
          for (int node = 1; node < tree.size(); ++node) depth = std::max(depth, tree.depth(node));
          Tokens choices;
          for (int node = 0; node < tree.size(); ++node) choices.push_back(fresh++);
          window.learn(tree, choices);
          text.push_back(text.back());  // the same key, so that its guesses add up
        }
        EXPECT_EQ(nodes, lookahead_nodes(options)) << columns << " " << ngram << " " << guesses;
        EXPECT_EQ(depth, lookahead_draft_len(options)) << columns << " " << ngram << " " << guesses;
      }
    }
  }
}

TEST(Lookahead, RefusesOptionsOutOfRange) {
  for (const LookaheadShape& shape :
       {LookaheadShape{.columns = 0}, LookaheadShape{.ngram = 1}, LookaheadShape{.guesses = -1}}) {
    SpeculativeOptions options = options_of(shape);
    options.decoding_type = Method::kLookahead;
    EXPECT_FALSE(make_drafter(options, {}).ok());
  }
}

}  // namespace
}  // namespace outrider
