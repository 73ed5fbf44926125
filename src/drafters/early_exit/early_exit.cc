// SPDX-License-Identifier: Apache-2.0
#include "drafters/early_exit/early_exit.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "config/methods.h"
#include "drafters/draft_state.h"
#include "drafters/target_access.h"
#include "speculation/tree/tree_growth.h"
#include "speculation/tree/tree_policy.h"

namespace outrider {
namespace {

class EarlyExitDrafter final : public Drafter {
 public:
  EarlyExitDrafter(LayerSubset layers, const SpeculativeOptions& options, const DrafterContext& context);

  const DrafterTraits& traits() const override { return traits_; }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;
  void observe(uint64_t sequence, const TokenTree& tree, const Verdict& verdict) override;
  void end(uint64_t sequence) override { sequences_.erase(sequence); }

 private:
  struct Sequence {
    RequestHistory history;
    AdaptiveThreshold threshold;
    GrowthOptions growth;
    std::vector<TokenId> chain;  // the last draft, if the threshold adapts
    int max_draft_len = 0;       // limit of that draft
  };
  // A sequence while its tree grows.
  struct Growing {
    TreeGrowth growth;
    const TargetAccess* target = nullptr;
    Sequence* state = nullptr;
    // Staged entries: the nodes computed, ascending.
    std::vector<TokenId> tokens;  // by entry
    std::vector<int> parents;     // by entry: the entry of its parent, -1 for the root
    std::vector<int> entries;     // by node: its entry, -1: not computed
    int first = 0;                // entry of the last pass, and the index of its logits
    int logits_index = 0;
  };

  Growing& start(const DraftRequest& request, TokenTree& tree);
  bool append_frontier(Growing& growing);
  void hand_over(Growing& growing);

  DrafterTraits traits_{
      .name = std::string(method_name(Method::kEarlyExit)), .emits_probabilities = true, .uses_target = true};
  LayerSubset layers_;
  bool resumes_;  // the target's pass can go on where drafting stopped
  std::unique_ptr<TreePolicy> policy_;
  GrowthOptions growth_;
  bool adapts_;  // AdaptiveThreshold ends chains
  LevelTime level_time_;
  int64_t vocab_;
  size_t max_length_;  // tokens of the longest sequence with its tree
  ForwardBatch batch_;
  std::vector<std::unique_ptr<Growing>> growing_;  // one per request, and spare ones
  std::vector<Growing*> active_;                   // sequences that still grow
  std::vector<int> ascending_, places_;            // scratch
  std::unordered_map<uint64_t, Sequence> sequences_;
};

EarlyExitDrafter::EarlyExitDrafter(LayerSubset layers, const SpeculativeOptions& options,
                                   const DrafterContext& context)
    : layers_(std::move(layers)),
      resumes_(layers_.skip_attention.empty()),
      policy_(make_tree_policy(options)),
      growth_(growth_options(options, policy_.get())),
      adapts_(options.tree.kind == TreeKind::kChain && options.stop.assistant_confidence_threshold == 0.0),
      vocab_(context.vocab_size) {
  const auto batch = static_cast<size_t>(context.max_batch);
  const auto entries = static_cast<size_t>(1 + max_tree_nodes(options));
  max_length_ = static_cast<size_t>(context.context) + entries;
  batch_.reserve({.rows = static_cast<int64_t>(batch * entries),
                  .max_sequences = context.max_batch,
                  .max_entries = static_cast<int64_t>(max_length_),
                  .page_size = context.page_size,
                  .max_draft_len = options.max_draft_len});
  for (size_t i = 0; i < batch; ++i) {
    growing_.push_back(std::make_unique<Growing>());
    Growing& growing = *growing_.back();
    for (auto* list : {&growing.parents, &growing.entries}) list->reserve(entries);
    growing.tokens.reserve(entries);
  }
  active_.reserve(batch);
  for (auto* list : {&ascending_, &places_}) list->reserve(entries);
}

Status EarlyExitDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  active_.clear();
  while (growing_.size() < requests.size()) growing_.push_back(std::make_unique<Growing>());
  for (size_t i = 0; i < requests.size(); ++i) active_.push_back(&start(requests[i], trees[i]));
  const size_t used = active_.size();
  while (true) {
    batch_.clear();
    std::erase_if(active_, [&](Growing* growing) { return !append_frontier(*growing); });
    if (active_.empty()) break;
    const TargetAccess& target = *active_.front()->target;
    const double start = now_ms();
    const SubsetOutput output = target.model->forward_subset(batch_, *target.cache, layers_);
    const auto sequences = static_cast<double>(active_.size());
    const size_t rows = batch_.logits_rows.size();
    level_time_.learn(static_cast<double>(rows) / sequences, (now_ms() - start) / sequences);
    const size_t vocab = output.logits.size() / rows;
    const size_t hidden = output.states.size() / rows;
    for (Growing* growing : active_) {
      const auto index = static_cast<size_t>(growing->logits_index);
      const size_t count = growing->tokens.size() - static_cast<size_t>(growing->first);
      if (resumes_) {
        const auto states = output.states.subspan(index * hidden, count * hidden);
        auto& kept = growing->target->exits->states;
        kept.insert(kept.end(), states.begin(), states.end());
      }
      const std::span<const int> frontier = growing->growth.frontier();
      growing->growth.expand([&](size_t i) {
        const int row = growing->entries[static_cast<size_t>(frontier[i])] - growing->first;
        return output.logits.subspan((index + static_cast<size_t>(row)) * vocab, static_cast<size_t>(vocab_));
      });
    }
  }
  for (size_t i = 0; i < used; ++i) {
    if (resumes_) hand_over(*growing_[i]);
    const std::span<const TokenId> drafted = growing_[i]->growth.tree().tokens().subspan(1);
    if (adapts_) growing_[i]->state->chain.assign(drafted.begin(), drafted.end());
  }
  return {};
}

EarlyExitDrafter::Growing& EarlyExitDrafter::start(const DraftRequest& request, TokenTree& tree) {
  const double start = request.sampling->temperature == 0.0 ? 0.8 : 0.5;
  auto [found, is_new] =
      sequences_.try_emplace(request.sequence, Sequence{.history = {},
                                                        .threshold = AdaptiveThreshold(start),
                                                        .growth = growth_,
                                                        .chain = {},
                                                        .max_draft_len = 0});
  Sequence& sequence = found->second;
  if (is_new) sequence.history.reserve(max_length_);
  sequence.growth.level_time = level_time_;
  const bool adapts = adapts_ && request.estimates == nullptr;
  sequence.growth.min_probability = adapts ? sequence.threshold.value() : growth_.min_probability;
  sequence.chain.clear();
  sequence.max_draft_len = request.max_draft_len;
  Growing& growing = *growing_[active_.size()];
  growing.target = request.target;
  growing.state = &sequence;
  ExitStates& exits = *growing.target->exits;
  const auto entries = static_cast<size_t>(growing.target->staged->count());
  exits.clear();
  exits.rows.reserve(entries);
  exits.states.reserve(entries * static_cast<size_t>(growing.target->model->config().hidden_size));
  growing.tokens.clear();
  growing.parents.clear();
  growing.entries.clear();
  growing.growth.start(sequence.growth, request, tree, sequence.history.sync(request));
  return growing;
}

// Adds the frontier's rows to the pass; false when there are none, or no entries for them.
bool EarlyExitDrafter::append_frontier(Growing& growing) {
  const TokenTree& tree = growing.growth.tree();
  ascending_.assign(growing.growth.frontier().begin(), growing.growth.frontier().end());
  std::sort(ascending_.begin(), ascending_.end());
  const TargetAccess& target = *growing.target;
  growing.first = static_cast<int>(growing.tokens.size());
  if (ascending_.empty()) return false;
  if (growing.first + std::ssize(ascending_) > target.staged->count()) {
    growing.growth.stop();  // a request may allow fewer nodes than the tree expands
    return false;
  }
  growing.entries.resize(static_cast<size_t>(tree.size()), -1);
  for (const int node : ascending_) {
    const int parent = tree.parent(node);
    growing.entries[static_cast<size_t>(node)] = static_cast<int>(growing.tokens.size());
    growing.tokens.push_back(tree.token(node));
    growing.parents.push_back(parent < 0 ? -1 : growing.entries[static_cast<size_t>(parent)]);
  }
  growing.logits_index = append_tree(batch_, *target.sequence, *target.staged,
                                     {growing.tokens, growing.parents, growing.first}, LogitsWanted::kAll);
  return true;
}

// Moves the entries of the nodes that are left to the places of these nodes in the tree, and lists them.
void EarlyExitDrafter::hand_over(Growing& growing) {
  const TokenTree& tree = growing.growth.tree();
  ExitStates& exits = *growing.target->exits;
  exits.layers = layers_.count;
  const size_t count = growing.tokens.size();
  const size_t hidden = count == 0 ? 0 : exits.states.size() / count;
  places_.assign(count, -1);
  for (size_t entry = 0; entry < count; ++entry) {
    const int parent = growing.parents[entry];
    if (parent >= 0 && places_[static_cast<size_t>(parent)] < 0) continue;
    const ExitStates::Row row{.node = exits.rows.empty() ? 0 : exits.rows.back().node + 1,
                              .parent = parent < 0 ? -1 : places_[static_cast<size_t>(parent)],
                              .token = growing.tokens[entry]};
    int node = row.node;
    while (node < tree.size() && (tree.parent(node) != row.parent || tree.token(node) != row.token)) ++node;
    if (node == tree.size()) continue;  // dropped
    places_[entry] = node;
    std::copy_n(exits.states.begin() + static_cast<std::ptrdiff_t>(entry * hidden), hidden,
                exits.states.begin() + static_cast<std::ptrdiff_t>(exits.rows.size() * hidden));
    exits.rows.push_back({.node = node, .parent = row.parent, .token = row.token});
  }
  exits.states.resize(exits.rows.size() * hidden);
  // Both numberings ascend, so that nothing is overwritten that is still to be moved.
  KvTransaction& staged = *growing.target->staged;
  for (int entry = 0; std::cmp_less(entry, count); ++entry) {
    const int place = places_[static_cast<size_t>(entry)];
    if (place >= 0 && place < entry) staged.copy(entry, place);
  }
  for (int entry = static_cast<int>(count) - 1; entry >= 0; --entry) {
    const int place = places_[static_cast<size_t>(entry)];
    if (place > entry) staged.copy(entry, place);
  }
}

// The tree may hold other drafters' nodes, too: the threshold learns how far the target follows the chain.
void EarlyExitDrafter::observe(uint64_t sequence, const TokenTree&, const Verdict& verdict) {
  const auto found = sequences_.find(sequence);
  if (found == sequences_.end() || found->second.chain.empty()) return;
  const std::vector<TokenId>& chain = found->second.chain;
  const auto followed = std::ranges::mismatch(chain, verdict.tokens).in1 - chain.begin();
  found->second.threshold.update(static_cast<int>(followed), static_cast<int>(chain.size()),
                                 found->second.max_draft_len);
}

// The parts of the target that draft.
Result<LayerSubset> select_layers(const SpeculativeOptions& options, int64_t layer_count) {
  const bool skips =
      !options.early_exit.skip_attention_layers.empty() || !options.early_exit.skip_mlp_layers.empty();
  if (skips && options.early_exit.exit_layer != 0) {
    return usage_error(
        "EarlyExit expects exit_layer or lists of layers to skip, found both; leave one of them out");
  }
  const std::string last = std::to_string(layer_count - 1);
  if (!skips) {
    const int64_t exit_layer = options.early_exit.exit_layer != 0 ? options.early_exit.exit_layer
                                                                  : std::max<int64_t>(1, layer_count / 3);
    if (exit_layer < 1 || exit_layer >= layer_count) {
      return usage_error("EarlyExit expects exit_layer to be 1 to " + last + " for a model of " +
                         std::to_string(layer_count) + " layers, found " + std::to_string(exit_layer));
    }
    return LayerSubset{.count = exit_layer, .skip_attention = {}, .skip_mlp = {}};
  }
  const std::vector<uint8_t> none(static_cast<size_t>(layer_count), 0);
  LayerSubset subset{.count = layer_count, .skip_attention = none, .skip_mlp = none};
  for (auto [list, skip] : {std::pair{&options.early_exit.skip_attention_layers, &subset.skip_attention},
                            std::pair{&options.early_exit.skip_mlp_layers, &subset.skip_mlp}}) {
    for (const int layer : *list) {
      if (layer < 0 || layer >= layer_count) {
        return usage_error("EarlyExit expects layers to skip to be 0 to " + last + ", found " +
                           std::to_string(layer));
      }
      (*skip)[static_cast<size_t>(layer)] = 1;
    }
  }
  const auto is_skipped = [](uint8_t skip) { return skip != 0; };
  if (std::ranges::all_of(subset.skip_attention, is_skipped) &&
      std::ranges::all_of(subset.skip_mlp, is_skipped)) {
    return usage_error(
        "EarlyExit expects something of the model to be left to draft with, found all of it in "
        "skip_attention_layers and skip_mlp_layers; shorten the lists");
  }
  return subset;
}

}  // namespace

void AdaptiveThreshold::update(int accepted, int drafted, int max) {
  constexpr double kGoal = 0.9;
  constexpr double kStep = 0.01;
  const double rate = static_cast<double>(accepted) / drafted;
  acceptance_rate_ = acceptance_rate_ < 0.0 ? rate : 0.5 * acceptance_rate_ + 0.5 * rate;
  double aim = value_;
  if (acceptance_rate_ < kGoal) {
    aim += kStep;
  } else if (drafted < max) {
    aim -= kStep;
  }
  value_ = std::clamp(0.9 * value_ + 0.1 * aim, 0.0, 1.0);
}

Result<std::shared_ptr<Drafter>> make_early_exit_drafter(const SpeculativeOptions& options,
                                                         const DrafterContext& context) {
  OUTRIDER_TRY(LayerSubset layers, select_layers(options, context.layer_count));
  const int nodes = max_tree_nodes(options);
  const int expanded = make_tree_policy(options)->max_expanded(nodes, options.max_draft_len);
  if (expanded > nodes) {
    return usage_error("EarlyExit expects max_total_draft_tokens to be at least " + std::to_string(expanded) +
                       " (dynamic_tree_max_topK x max_draft_len), found " + std::to_string(nodes) +
                       "; raise it, or lower the others");
  }
  return std::shared_ptr<Drafter>(std::make_shared<EarlyExitDrafter>(std::move(layers), options, context));
}

}  // namespace outrider
