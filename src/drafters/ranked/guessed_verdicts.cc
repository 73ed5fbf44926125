// SPDX-License-Identifier: Apache-2.0
#include "drafters/ranked/guessed_verdicts.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/clock.h"

namespace outrider {
namespace {

constexpr double kLeastChance = 0.02;  // of an ending that is worth its draft

// An average that follows the last few values; the first one is taken as it is.
void follow(double& average, double value) {
  constexpr double kShare = 0.25;
  average += (value - average) * (average == 0 ? 1 : kShare);
}

// The tokens of the nodes from the root, exclusive, down to `node`.
std::vector<TokenId> path_to(const TokenTree& tree, int node) {
  std::vector<TokenId> path;
  for (; node > 0; node = tree.parent(node)) path.push_back(tree.token(node));
  std::ranges::reverse(path);
  return path;
}

// The node with which the path of these tokens ends in the tree.
int end_of(const TokenTree& tree, std::span<const TokenId> tokens) {
  int end = 0;
  for (int node = 1; node < tree.size(); ++node) {
    const auto depth = static_cast<size_t>(tree.depth(node));
    if (tree.parent(node) == end && depth <= tokens.size() && tree.token(node) == tokens[depth - 1])
      end = node;
  }
  return end;
}

bool has_children(const TokenTree& tree, int node) { return std::ranges::count(tree.parents(), node) > 0; }

// Every token but some may come next, and nothing after it.
class AnyTokenBut final : public TokenConstraint {
 public:
  // allowed: bit set of tokens
  explicit AnyTokenBut(std::span<const uint64_t> allowed) : allowed_(allowed) {}

  State start() override { return 0; }
  State advance(State, TokenId) override { return kDead; }
  std::span<const uint64_t> allowed(State) override { return allowed_; }
  bool is_complete(State) override { return false; }

 private:
  std::span<const uint64_t> allowed_;
};

}  // namespace

void GuessedVerdicts::HitRate::learn(bool is_hit) {
  constexpr double kFade = 0.98;
  guesses = guesses * kFade + 1;
  hits = hits * kFade + (is_hit ? 1 : 0);
}

bool GuessedVerdicts::take(const DraftRequest& request, bool is_continued, TokenTree& tree) {
  const auto found = outlooks_.find(request.sequence);
  if (found == outlooks_.end()) return false;
  const Outlook outlook = std::move(found->second);
  outlooks_.erase(found);
  if (!is_continued || request.tokens.size() <= outlook.length) return false;
  if (std::exchange(is_waiting_, false)) follow(wait_ms_, now_ms() - started_);
  const auto added = request.tokens.subspan(outlook.length);
  learn(outlook, added);
  const auto guess = std::ranges::find_if(
      outlook.guesses, [&](const Guess& one) { return std::ranges::equal(one.tokens, added); });
  if (guess == outlook.guesses.end() || !fits(outlook.request, request)) return false;
  tree = guess->tree;
  cut(request, tree);
  return true;
}

void GuessedVerdicts::learn(const Outlook& outlook, std::span<const TokenId> added) {
  estimates_.learn(outlook.tree, added);
  const int end = end_of(outlook.tree, added);
  const auto guess = std::ranges::find(outlook.guesses, end, &Guess::ending);
  if (guess == outlook.guesses.end()) return;
  HitRate& rate = has_children(outlook.tree, end) ? inner_rate_ : leaf_rate_;
  rate.learn(std::ranges::equal(guess->tokens, added));
}

// Whether the tree of a request may answer another one with the same text. Estimates and prices change with
// every step; only the coupled rule gives the same text whatever they were.
bool GuessedVerdicts::fits(const DraftRequest& drafted, const DraftRequest& asked) const {
  if (drafted.acceptance != asked.acceptance || drafted.source != asked.source ||
      asked.constraint != nullptr || drafted.wants_probabilities != asked.wants_probabilities)
    return false;
  if (asked.acceptance == AcceptanceRule::kCoupled)
    return drafted.max_draft_len >= asked.max_draft_len && drafted.max_nodes >= asked.max_nodes;
  return drafted.max_draft_len == asked.max_draft_len && drafted.max_nodes == asked.max_nodes &&
         drafted.max_children == asked.max_children && drafted.rate == 0.0 && asked.rate == 0.0 &&
         drafted.estimates == nullptr && asked.estimates == nullptr;
}

// Leaves what the request has room for. Only chosen nodes are ever cut.
void GuessedVerdicts::cut(const DraftRequest& request, TokenTree& tree) {
  std::vector<uint8_t> kept(static_cast<size_t>(tree.size()), 1);
  bool is_cut = false;
  for (int node = 1; node < tree.size(); ++node) {
    if (tree.depth(node) <= request.max_draft_len) continue;
    kept[static_cast<size_t>(node)] = 0;
    is_cut = true;
  }
  if (is_cut) tree.keep(kept);
  top_nodes_.keep(tree, request.max_nodes);
}

void GuessedVerdicts::start(std::span<const DraftRequest> requests, std::span<const TokenTree> trees,
                            std::optional<double> draft_ms) {
  if (draft_ms) follow(draft_ms_, *draft_ms);
  started_ = now_ms();
  is_waiting_ = is_worthwhile_ = true;
  for (size_t i = 0; i < requests.size(); ++i) {
    const DraftRequest& request = requests[i];
    if (request.constraint != nullptr || !request.may_guess) continue;
    Outlook& outlook = outlooks_[request.sequence];
    outlook = {.request = request, .length = request.tokens.size(), .tree = trees[i]};
    outlook.endings = endings_of(trees[i]);
  }
}

// The endings that are worth a draft, the likeliest last.
std::vector<GuessedVerdicts::Ending> GuessedVerdicts::endings_of(const TokenTree& tree) const {
  std::vector<double> reached(static_cast<size_t>(tree.size()), 1.0), stays(reached);
  for (int node = 1; node < tree.size(); ++node) {
    const auto parent = static_cast<size_t>(tree.parent(node));
    const double accepted =
        std::min(estimates_.estimate(tree.depth(node), tree.probability(node)), stays[parent]);
    stays[parent] -= accepted;
    reached[static_cast<size_t>(node)] = reached[parent] * accepted;
  }
  std::vector<Ending> endings;
  for (int node = 0; node < tree.size(); ++node) {
    const double probability = reached[static_cast<size_t>(node)] * stays[static_cast<size_t>(node)];
    if (probability >= kLeastChance) endings.push_back({node, probability});
  }
  std::ranges::sort(endings, {},
                    [](const Ending& ending) { return std::pair(ending.probability, -ending.node); });
  return endings;
}

// Takes the next ending of each sequence. Returns by how much it becomes more probable that the next requests
// of all sequences are answered at once, because a draft takes as long for some of them as for all.
double GuessedVerdicts::plan_round() {
  round_.clear();
  double before = 1, after = 1;
  for (auto& [sequence, outlook] : outlooks_) {
    before *= outlook.covered;
    if (!outlook.endings.empty()) {
      const Ending& ending = outlook.endings.back();
      const HitRate& rate = has_children(outlook.tree, ending.node) ? inner_rate_ : leaf_rate_;
      outlook.covered += ending.probability * rate.value();
      round_.push_back(&outlook);
    }
    after *= outlook.covered;
  }
  return after - before;
}

// Whether a draft that is worth `gain` of a draft's time costs less than that. It costs what it delays the
// next order.
bool GuessedVerdicts::is_in_time(double gain) const {
  const double delay = std::max(0.0, now_ms() - started_ + guess_ms_ - wait_ms_);
  return gain > 0 && delay <= gain * draft_ms_;
}

bool GuessedVerdicts::draft_next(const std::function<bool()>& has_order) {
  is_worthwhile_ = is_worthwhile_ && is_in_time(plan_round());
  if (!is_worthwhile_) return false;
  const double start = now_ms();
  const bool is_complete = add_tokens() && !has_order() && add_trees();
  if (is_complete) follow(guess_ms_, now_ms() - start);
  return is_complete;
}

// Guesses the target's token after each ending: the drafter's likeliest one that is no child there.
bool GuessedVerdicts::add_tokens() {
  const size_t count = round_.size();
  drafts_.assign(count, Guess());
  texts_.resize(count);
  allowed_.resize(count);
  trees_.resize(count);
  requests_.clear();
  std::deque<AnyTokenBut> constraints;
  for (size_t i = 0; i < count; ++i) {
    Outlook& outlook = *round_[i];
    Guess& guess = drafts_[i];
    guess.ending = outlook.endings.back().node;
    outlook.endings.pop_back();
    guess.tokens = path_to(outlook.tree, guess.ending);
    texts_[i].assign(outlook.request.tokens.begin(),
                     outlook.request.tokens.begin() + static_cast<ptrdiff_t>(outlook.length));
    texts_[i].insert(texts_[i].end(), guess.tokens.begin(), guess.tokens.end());
    allowed_[i].assign(static_cast<size_t>(vocab_size_ + 63) / 64, ~uint64_t{0});
    for (int node = 1; node < outlook.tree.size(); ++node) {
      const auto token = static_cast<size_t>(outlook.tree.token(node));
      if (outlook.tree.parent(node) == guess.ending) allowed_[i][token / 64] &= ~(uint64_t{1} << token % 64);
    }
    DraftRequest request = outlook.request;
    request.tokens = texts_[i];
    // Rules that compare distributions draw from them; the others take the likeliest token.
    if (compares_distributions(request.acceptance)) request.acceptance = AcceptanceRule::kTypical;
    request.max_draft_len = request.max_nodes = request.max_children = 1;
    request.rate = request.row_ms = 0.0;
    request.estimates = nullptr;
    request.wants_probabilities = false;
    request.constraint =
        has_children(outlook.tree, guess.ending) ? &constraints.emplace_back(allowed_[i]) : nullptr;
    request.constraint_state = 0;
    requests_.push_back(request);
    trees_[i].reset(texts_[i].back());
  }
  return drafter_->draft(requests_, trees_).ok();
}

bool GuessedVerdicts::add_trees() {
  size_t count = 0;  // sequences with a token
  requests_.clear();
  for (size_t i = 0; i < round_.size(); ++i) {
    if (trees_[i].drafted() == 0) continue;
    const TokenId token = trees_[i].token(1);
    texts_[i].push_back(token);
    drafts_[i].tokens.push_back(token);
    round_[count] = round_[i];
    if (count != i) std::swap(drafts_[count], drafts_[i]);
    requests_.push_back(round_[i]->request);
    requests_.back().tokens = texts_[i];
    trees_[count++].reset(token);
  }
  const auto trees = std::span(trees_).first(count);
  if (count == 0) return true;
  if (!drafter_->draft(requests_, trees).ok()) return false;
  for (size_t i = 0; i < count; ++i) {
    drafts_[i].tree = trees[i];
    round_[i]->guesses.push_back(std::move(drafts_[i]));
  }
  return true;
}

}  // namespace outrider
