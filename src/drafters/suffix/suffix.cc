// SPDX-License-Identifier: Apache-2.0
#include "drafters/suffix/suffix.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "config/methods.h"
#include "corpus/context_search.h"
#include "drafters/suffix/continuation_tree.h"
#include "drafters/suffix/suffix_draft.h"

namespace outrider {
namespace {

// Outputs of finished sequences; the oldest leave first.
class OutputCache {
 public:
  OutputCache(int max_tree_depth, int64_t max_outputs) : tree_(max_tree_depth), max_outputs_(max_outputs) {}

  const SuffixTree& tree() const { return tree_; }

  void add(uint64_t sequence, std::span<const TokenId> output) {
    if (max_outputs_ == 0 || output.empty()) return;
    remove(sequence);
    const int text = tree_.add_text();
    for (const TokenId token : output) tree_.append(text, token);
    outputs_.push_back({sequence, text});
    while (static_cast<int64_t>(outputs_.size()) > max_outputs_ || tree_.token_count() > kMaxCachedTokens) {
      tree_.remove(outputs_.front().text);
      outputs_.pop_front();
    }
  }

  // A sequence that was put aside is back: its output is no finished one.
  void remove(uint64_t sequence) {
    const auto found = std::find_if(outputs_.begin(), outputs_.end(),
                                    [&](const Output& output) { return output.sequence == sequence; });
    if (found == outputs_.end()) return;
    tree_.remove(found->text);
    outputs_.erase(found);
  }

 private:
  struct Output {
    uint64_t sequence = 0;
    int text = 0;
  };
  SuffixTree tree_;
  int64_t max_outputs_;
  std::deque<Output> outputs_;
};

// Probability of a node that followed its parent every time; 1 would mean that nothing is known of the node.
constexpr double kCertain = 0.99;

// Texts of others, which all sequences draft from.
class CorpusDrafts {
 public:
  CorpusDrafts(std::shared_ptr<const Corpus> corpus, int64_t vocab_size)
      : corpus_(std::move(corpus)), search_(*corpus_), tree_(*corpus_, vocab_size) {}

  void improve(std::span<const TokenId> tokens, const SuffixDraftLimits& limits, SuffixSpeculator& speculator,
               SuffixDraft& best) {
    speculator.improve(search_, tree_, tokens, limits, best);
  }

 private:
  std::shared_ptr<const Corpus> corpus_;
  ContextSearch search_;
  ContinuationTree tree_;
};

class SuffixDrafter final : public Drafter {
 public:
  SuffixDrafter(const SpeculativeOptions& options, const DrafterContext& context)
      : max_tree_depth_(options.suffix.max_tree_depth),
        is_tree_(options.tree.kind != TreeKind::kChain),
        limits_{.is_tree = is_tree_,
                .nodes_per_match = options.suffix.max_spec_factor,
                .min_path_probability = options.suffix.min_token_prob},
        cache_(options.suffix.max_tree_depth, options.suffix.max_cached_requests) {
    if (context.corpus != nullptr) corpus_.emplace(context.corpus, context.vocab_size);
  }

  const DrafterTraits& traits() const override { return traits_; }

  void begin(uint64_t sequence, std::span<const TokenId>, uint64_t) override { cache_.remove(sequence); }

  void end(uint64_t sequence) override {
    const auto found = sequences_.find(sequence);
    if (found == sequences_.end()) return;
    const std::span<const TokenId> kept = found->second.tree.tokens(found->second.text);
    const size_t output = std::min(kept.size(), found->second.known - found->second.prompt);
    cache_.add(sequence, kept.last(output));
    sequences_.erase(found);
  }

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override {
    for (size_t i = 0; i < requests.size(); ++i) draft_one(requests[i], trees[i]);
    return {};
  }

  void observe(uint64_t sequence, const TokenTree&, const Verdict& verdict) override {
    const auto found = sequences_.find(sequence);
    if (found != sequences_.end()) learn(found->second, verdict.tokens);
  }

 private:
  struct Sequence {
    explicit Sequence(int max_tree_depth) : tree(max_tree_depth), text(tree.add_text()) {}
    SuffixTree tree;
    int text;
    size_t prompt = 0;
    size_t known = 0;  // tokens learned from
  };

  static void learn(Sequence& sequence, std::span<const TokenId> tokens) {
    for (const TokenId token : tokens) {
      sequence.tree.append(sequence.text, token);
      if (sequence.tree.token_count() > kMaxSequenceTokens) sequence.tree.forget_oldest(sequence.text);
    }
    sequence.known += tokens.size();
  }

  void draft_one(const DraftRequest& request, TokenTree& tree) {
    Sequence& sequence = sequences_.try_emplace(request.sequence, max_tree_depth_).first->second;
    sequence.prompt = static_cast<size_t>(request.prompt_length);
    learn(sequence, request.tokens.subspan(sequence.known));
    limits_.is_tree = is_tree_ && request.max_children != 1;
    limits_.max_nodes = request.max_nodes;
    limits_.max_draft_len = request.max_draft_len;
    best_ = {};
    sequence.tree.find_repeated_ends(sequence.text, places_);
    speculator_.improve(sequence.tree, places_, limits_, best_);
    find_ends_in_cache(request.tokens);
    speculator_.improve(cache_.tree(), places_, limits_, best_);
    if (corpus_) corpus_->improve(request.tokens, limits_, speculator_, best_);
    nodes_.clear();
    for (const SuffixDraft::Node& node : best_.nodes) {
      const int parent = node.parent < 0 ? 0 : nodes_[static_cast<size_t>(node.parent)];
      nodes_.push_back(tree.add(parent, node.token, std::min(node.probability, kCertain)));
    }
  }

  void find_ends_in_cache(std::span<const TokenId> tokens) {
    places_.clear();
    const size_t longest = std::min(tokens.size(), static_cast<size_t>(max_tree_depth_ - 1));
    while (places_.size() < longest) {
      const SuffixPlace place = cache_.tree().find(tokens.last(places_.size() + 1));
      if (!place) return;
      places_.push_back(place);
    }
  }

  DrafterTraits traits_{.name = std::string(method_name(Method::kSuffix))};
  int max_tree_depth_;
  bool is_tree_;
  SuffixDraftLimits limits_;
  OutputCache cache_;
  std::optional<CorpusDrafts> corpus_;
  std::unordered_map<uint64_t, Sequence> sequences_;
  SuffixSpeculator speculator_;
  // Scratch of draft_one().
  SuffixDraft best_;
  std::vector<SuffixPlace> places_;
  std::vector<int> nodes_;
};

}  // namespace

Result<std::shared_ptr<Drafter>> make_suffix_drafter(const SpeculativeOptions& options,
                                                     const DrafterContext& context) {
  return std::shared_ptr<Drafter>(std::make_shared<SuffixDrafter>(options, context));
}

}  // namespace outrider
