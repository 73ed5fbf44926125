// SPDX-License-Identifier: Apache-2.0
#include "drafters/draft_target.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "drafters/request_history.h"
#include "drafters/vocabulary_match.h"
#include "kv/kv_cache.h"
#include "models/model.h"
#include "speculation/tree_growth.h"
#include "speculation/tree_policy.h"

namespace outrider {
namespace {

class DraftTargetDrafter final : public Drafter {
 public:
  DraftTargetDrafter(std::unique_ptr<Model> model, const KvShape& shape, const SpeculativeOptions& options,
                     const DrafterContext& context);

  const DrafterTraits& traits() const override { return traits_; }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;
  void end(uint64_t sequence) override { sequences_.erase(sequence); }

 private:
  struct Sequence {
    KvSequence kv;
    RequestHistory history;
    // Entries of the last draft, kept until it is known which of them became text: first tokens that were not
    // yet cached, the pending one last, then the nodes that were expanded.
    std::optional<KvTransaction> staged;
    std::vector<TokenId> tokens;  // by entry
    std::vector<int> parents;     // by entry, -1: continues what is committed
    size_t computed = 0;          // entries with keys and values
  };
  // A sequence while its tree grows.
  struct Growing {
    TreeGrowth growth;
    Sequence* state = nullptr;
    std::vector<int> entries;  // by node: its entry, -1: not computed
    int logits_index = 0;      // of the frontier's first node in the last pass
  };

  Growing* prepare(const DraftRequest& request, TokenTree& tree);
  Sequence& open(const DraftRequest& request);
  void settle(Sequence& sequence, std::span<const TokenId> tokens);
  bool compute(Sequence& sequence, std::span<const TokenId> tokens);
  void append_frontier(Growing& growing);
  void learn_cost(double ms);

  DrafterTraits traits_{.name = "DraftTarget", .emits_probabilities = true};
  std::unique_ptr<Model> model_;
  KvCache cache_;
  std::unique_ptr<TreePolicy> policy_;
  GrowthOptions growth_;
  int most_nodes_;   // of one tree
  int64_t vocab_;    // ids both models know
  int64_t context_;  // longest sequence the draft model was made for
  int64_t longest_;  // longest sequence there will be
  int prefill_chunk_;
  ForwardBatch batch_;
  std::vector<std::unique_ptr<Growing>> growing_;     // one per request, and spare ones
  std::vector<Growing*> active_;                      // those that still grow
  std::vector<int> path_;                             // scratch of settle() and compute()
  std::unordered_map<uint64_t, Sequence> sequences_;  // destroyed before cache_, which their pages belong to
};

// Tokens that a tree's first pass computes besides the pending one; more of them are computed beforehand.
constexpr size_t kMostUncached = 15;

int64_t rows_of_pass(int nodes, const DrafterContext& context) {
  const int64_t rows = std::max<int64_t>(nodes, static_cast<int64_t>(kMostUncached) + 1);
  return std::max<int64_t>(context.prefill_chunk, context.max_batch * rows);
}

DraftTargetDrafter::DraftTargetDrafter(std::unique_ptr<Model> model, const KvShape& shape,
                                       const SpeculativeOptions& options, const DrafterContext& context)
    : model_(std::move(model)),
      cache_(shape),
      policy_(make_tree_policy(options)),
      growth_{.policy = policy_.get(),
              .children = options.children,
              .least_probability = options.assistant_confidence_threshold,
              .most_uncertainty = options.entropy_threshold,
              .temperature_factor = options.draft_temperature},
      most_nodes_(largest_tree(options)),
      vocab_(std::min(context.vocab_size, model_->config().vocab_size)),
      context_(model_->config().max_context),
      longest_(context.context),
      prefill_chunk_(context.prefill_chunk) {
  const auto batch = static_cast<size_t>(context.max_batch);
  const auto staged = static_cast<int>(kMostUncached) + 1 +
                      policy_->most_expanded(largest_tree(options), options.max_draft_len);
  batch_.reserve({.rows = rows_of_pass(staged, context),
                  .max_sequences = context.max_batch,
                  .max_entries = shape.page_count * shape.page_size / context.max_batch,
                  .page_size = shape.page_size,
                  .max_depth = staged});
  for (size_t i = 0; i < batch; ++i) {
    growing_.push_back(std::make_unique<Growing>());
    growing_.back()->entries.reserve(static_cast<size_t>(staged));
  }
  active_.reserve(batch);
  path_.reserve(static_cast<size_t>(std::max(context.prefill_chunk, staged)));
}

Status DraftTargetDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  active_.clear();
  while (growing_.size() < requests.size()) growing_.push_back(std::make_unique<Growing>());
  for (size_t i = 0; i < requests.size(); ++i) {
    if (Growing* growing = prepare(requests[i], trees[i])) active_.push_back(growing);
  }
  const auto row_size = static_cast<size_t>(model_->config().vocab_size);
  // The first pass computes what was not cached, and finds the caches full of the target's weights: it costs
  // more than another level does.
  bool is_first_pass = true;
  while (!active_.empty()) {
    batch_.clear();
    for (Growing* growing : active_) append_frontier(*growing);
    const double start = now_ms();
    const std::span<const float> logits = model_->forward(batch_, cache_);
    if (!std::exchange(is_first_pass, false)) learn_cost(now_ms() - start);
    std::erase_if(active_, [&](Growing* growing) {
      growing->state->computed = growing->state->tokens.size();
      growing->growth.expand([&](size_t i) {
        const size_t row = static_cast<size_t>(growing->logits_index) + i;
        return logits.subspan(row * row_size, static_cast<size_t>(vocab_));
      });
      return growing->growth.frontier().empty();
    });
  }
  return {};
}

// Brings the sequence's cache to the pending token, but for what the first pass computes. Null: it does not
// fit.
DraftTargetDrafter::Growing* DraftTargetDrafter::prepare(const DraftRequest& request, TokenTree& tree) {
  const std::span<const TokenId> tokens = request.tokens;
  const bool is_known_vocabulary = std::all_of(
      tokens.begin(), tokens.end(), [&](TokenId token) { return token < model_->config().vocab_size; });
  if (static_cast<int64_t>(tokens.size()) + request.max_depth > context_ || !is_known_vocabulary)
    return nullptr;
  Sequence& sequence = open(request);
  settle(sequence, tokens);
  const std::span<const TokenId> cached = sequence.kv.tokens();
  const auto before_pending = tokens.first(tokens.size() - 1);
  const auto same = static_cast<size_t>(
      std::mismatch(cached.begin(), cached.end(), before_pending.begin(), before_pending.end()).first -
      cached.begin());
  if (same < cached.size()) cache_.rewind(sequence.kv, static_cast<int32_t>(same));
  auto uncached = tokens.subspan(same);
  if (uncached.size() > kMostUncached + 1) {
    if (!compute(sequence, uncached.first(uncached.size() - 1))) return nullptr;
    uncached = uncached.last(1);
  }
  auto staged = cache_.stage(
      sequence.kv, static_cast<int>(uncached.size()) +
                       policy_->most_expanded(std::min(request.max_nodes, most_nodes_), request.max_depth));
  if (!staged.ok()) return nullptr;
  sequence.staged = std::move(*staged);
  sequence.tokens.assign(uncached.begin(), uncached.end());
  sequence.parents.resize(uncached.size());
  std::iota(sequence.parents.begin(), sequence.parents.end(), -1);
  sequence.computed = 0;
  Growing* growing = growing_[active_.size()].get();
  growing->state = &sequence;
  growing->entries.assign(1, static_cast<int>(uncached.size()) - 1);
  growing->growth.start(growth_, request, tree, sequence.history.sync(request));
  return growing->growth.frontier().empty() ? nullptr : growing;
}

DraftTargetDrafter::Sequence& DraftTargetDrafter::open(const DraftRequest& request) {
  auto [found, is_new] = sequences_.try_emplace(request.sequence);
  Sequence& sequence = found->second;
  if (is_new) {
    const int64_t staged =
        static_cast<int64_t>(kMostUncached) + 1 +
        policy_->most_expanded(std::min(request.max_nodes, most_nodes_), request.max_depth);
    const int64_t entries = std::min(context_, longest_) + staged;
    sequence.kv = cache_.open(request.tokens);
    sequence.kv.reserve(entries);
    sequence.history.reserve(static_cast<size_t>(entries));
    sequence.tokens.reserve(static_cast<size_t>(staged));
    sequence.parents.reserve(static_cast<size_t>(staged));
  }
  return sequence;
}

// Keeps the entries of the last draft that became text, and gives the others back.
void DraftTargetDrafter::settle(Sequence& sequence, std::span<const TokenId> tokens) {
  if (!sequence.staged) return;
  path_.clear();
  const auto length = static_cast<size_t>(sequence.kv.length());
  size_t position = length;
  int parent = -1;
  for (size_t entry = 0; entry < sequence.computed && position + 1 < tokens.size(); ++entry) {
    if (sequence.parents[entry] != parent || sequence.tokens[entry] != tokens[position]) continue;
    parent = static_cast<int>(entry);
    path_.push_back(parent);
    ++position;
  }
  sequence.staged->commit(path_, tokens.subspan(std::min(length, tokens.size()), path_.size()));
  sequence.staged.reset();
}

bool DraftTargetDrafter::compute(Sequence& sequence, std::span<const TokenId> tokens) {
  while (!tokens.empty()) {
    const auto chunk = tokens.first(std::min(tokens.size(), static_cast<size_t>(prefill_chunk_)));
    auto transaction = cache_.stage(sequence.kv, static_cast<int>(chunk.size()));
    if (!transaction.ok()) return false;
    batch_.clear();
    append_chain(batch_, sequence.kv, *transaction, chunk, LogitsWanted::kNone);
    model_->forward(batch_, cache_);
    path_.resize(chunk.size());
    std::iota(path_.begin(), path_.end(), 0);
    transaction->commit(path_, chunk);
    tokens = tokens.subspan(chunk.size());
  }
  return true;
}

// Of a pass over all sequences that grow. One that lost its processor says little.
void DraftTargetDrafter::learn_cost(double ms) {
  constexpr double kFading = 0.1;
  constexpr double kMostSurprise = 2.0;
  const double each = ms / static_cast<double>(active_.size());
  double& known = growth_.level_ms;
  known = known == 0.0 ? each : known + kFading * (std::min(each, kMostSurprise * known) - known);
}

// Rows of the next pass: the nodes of the frontier; for the root, all tokens that are not yet cached.
void DraftTargetDrafter::append_frontier(Growing& growing) {
  Sequence& sequence = *growing.state;
  const TokenTree& tree = growing.growth.tree();
  const bool is_root = tree.drafted() == 0;
  const int first = is_root ? 0 : static_cast<int>(sequence.tokens.size());
  growing.entries.resize(static_cast<size_t>(tree.size()), -1);
  for (const int node : growing.growth.frontier()) {
    if (is_root) break;
    growing.entries[static_cast<size_t>(node)] = static_cast<int>(sequence.tokens.size());
    sequence.tokens.push_back(tree.token(node));
    sequence.parents.push_back(growing.entries[static_cast<size_t>(tree.parent(node))]);
  }
  growing.logits_index =
      append_tree(batch_, sequence.kv, *sequence.staged, {sequence.tokens, sequence.parents, first},
                  is_root ? LogitsWanted::kLast : LogitsWanted::kAll);
}

}  // namespace

Result<std::shared_ptr<Drafter>> make_draft_target_drafter(const SpeculativeOptions& options,
                                                           const DrafterContext& context) {
  if (options.speculative_model.empty()) {
    return usage_error(
        "decoding_type DraftTarget expects speculative_model, the path of a draft model; found none");
  }
  OUTRIDER_TRY(const ModelFile file, open_model(options.speculative_model));
  OUTRIDER_TRY(const std::shared_ptr<const Tokenizer> tokenizer, Tokenizer::create(file.tokenizer));
  OUTRIDER_RETURN_IF_ERROR(check_same_vocabulary(*context.tokenizer, *tokenizer));
  OUTRIDER_TRY(
      std::unique_ptr<Model> model,
      Model::load(file, {.kernels = context.kernels, .pool = context.pool, .weights = context.weights}));
  const int nodes = make_tree_policy(options)->most_expanded(largest_tree(options), options.max_draft_len);
  OUTRIDER_RETURN_IF_ERROR(model->reserve(rows_of_pass(nodes, context), int64_t{context.max_batch} * nodes));
  KvShape shape = model->kv_shape();
  shape.page_size = context.page_size;
  shape.type = context.kv_type;
  const int64_t longest =
      std::min(context.context, model->config().max_context) + nodes + static_cast<int64_t>(kMostUncached);
  shape.page_count = context.max_batch * ((longest + shape.page_size - 1) / shape.page_size + 1);
  return std::shared_ptr<Drafter>(
      std::make_shared<DraftTargetDrafter>(std::move(model), shape, options, context));
}

}  // namespace outrider
