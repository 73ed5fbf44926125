// SPDX-License-Identifier: Apache-2.0
#include "drafters/draft_target.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "drafters/vocabulary_match.h"
#include "kv/kv_cache.h"
#include "models/model.h"
#include "sampling/randomness.h"
#include "sampling/target_law.h"
#include "sampling/token_history.h"
#include "speculation/proposal.h"

namespace outrider {
namespace {

class DraftTargetDrafter final : public Drafter {
 public:
  DraftTargetDrafter(std::unique_ptr<Model> model, const KvShape& shape, const DrafterContext& context)
      : model_(std::move(model)),
        cache_(shape),
        vocab_(std::min(context.vocab_size, model_->config().vocab_size)),
        context_(model_->config().max_context),
        longest_(context.context),
        prefill_chunk_(context.prefill_chunk) {
    batch_.reserve({.rows = std::max(context.prefill_chunk, context.max_batch),
                    .max_sequences = context.max_batch,
                    .max_entries = shape.page_count * shape.page_size / context.max_batch,
                    .page_size = shape.page_size});
    growing_.reserve(static_cast<size_t>(context.max_batch));
    transactions_.reserve(static_cast<size_t>(context.max_batch));
    path_.reserve(static_cast<size_t>(context.prefill_chunk));
  }

  const DrafterTraits& traits() const override { return traits_; }

  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;

  void end(uint64_t sequence) override {
    transactions_.clear();
    sequences_.erase(sequence);
  }

 private:
  struct Sequence {
    KvSequence kv;
    TokenHistory history;
    size_t history_size = 0;  // tokens of the request in `history`
  };
  // A sequence while its tree grows.
  struct Growing {
    const DraftRequest* request = nullptr;
    TokenTree* tree = nullptr;
    Sequence* state = nullptr;
    CounterRandomness randomness;
    int node = 0;           // last node drafted
    int logits_index = -1;  // row of the last pass with this sequence's logits
  };

  void catch_up(std::span<const DraftRequest> requests, std::span<TokenTree> trees);
  bool compute(Sequence& sequence, std::span<const TokenId> tokens);
  void sync_history(Sequence& sequence, const DraftRequest& request);
  bool propose_next(Growing& growing, std::span<const float> logits);
  std::span<const float> advance();
  static void forget_drafted(Growing& growing);

  DrafterTraits traits_{.name = "DraftTarget", .emits_probabilities = true};
  std::unique_ptr<Model> model_;
  KvCache cache_;
  int64_t vocab_;    // ids both models know
  int64_t context_;  // longest sequence the draft model was made for
  int64_t longest_;  // longest sequence there will be
  int prefill_chunk_;
  LawBuilder laws_;
  CoupledChooser chooser_;
  ForwardBatch batch_;
  std::vector<Growing> growing_;
  std::vector<int> path_;  // scratch of compute()
  // Destroyed before cache_, which their pages belong to.
  std::unordered_map<uint64_t, Sequence> sequences_;
  std::vector<KvTransaction> transactions_;  // of one pass
};

Status DraftTargetDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  catch_up(requests, trees);
  const auto row_size = static_cast<size_t>(model_->config().vocab_size);
  while (!growing_.empty()) {
    const std::span<const float> logits = advance();
    std::erase_if(growing_, [&](Growing& one) {
      const auto row = logits.subspan(static_cast<size_t>(one.logits_index) * row_size);
      const bool proposed = propose_next(one, row.first(static_cast<size_t>(vocab_)));
      if (proposed && one.tree->depth(one.node) < one.request->max_depth &&
          one.tree->drafted() < one.request->max_nodes) {
        return false;
      }
      forget_drafted(one);
      return true;
    });
  }
  return {};
}

void DraftTargetDrafter::forget_drafted(Growing& growing) {
  for (int depth = growing.tree->depth(growing.node); depth > 0; --depth) growing.state->history.pop();
}

// Brings every sequence's cache to all tokens but the pending one. Sequences that do not fit are left out.
void DraftTargetDrafter::catch_up(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  growing_.clear();
  transactions_.clear();
  for (size_t i = 0; i < requests.size(); ++i) {
    const DraftRequest& request = requests[i];
    const auto length = static_cast<int64_t>(request.tokens.size());
    const bool is_known_vocabulary =
        std::all_of(request.tokens.begin(), request.tokens.end(),
                    [&](TokenId token) { return token < model_->config().vocab_size; });
    if (length + request.max_depth > context_ || !is_known_vocabulary) continue;
    auto [found, is_new] = sequences_.try_emplace(request.sequence);
    Sequence& sequence = found->second;
    if (is_new) {
      const int64_t entries = std::min(context_, longest_) + request.max_depth;
      sequence.kv = cache_.open(request.tokens);
      sequence.kv.reserve(entries);
      sequence.history.reserve(static_cast<size_t>(entries));
    }
    const std::span<const TokenId> cached = sequence.kv.tokens();
    const auto computed = request.tokens.first(request.tokens.size() - 1);
    const size_t same = static_cast<size_t>(
        std::mismatch(cached.begin(), cached.end(), computed.begin(), computed.end()).first - cached.begin());
    if (same < cached.size()) cache_.rewind(sequence.kv, static_cast<int32_t>(same));
    if (!compute(sequence, computed.subspan(same))) continue;
    sync_history(sequence, request);
    growing_.push_back(
        {&request, &trees[i], &sequence, CounterRandomness(request.sampling->seed, request.stream)});
  }
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

void DraftTargetDrafter::sync_history(Sequence& sequence, const DraftRequest& request) {
  const auto prompt = static_cast<size_t>(request.prompt_length);
  if (sequence.history_size == 0) {
    sequence.history.add_prompt(request.tokens.first(prompt));
    sequence.history_size = prompt;
  }
  for (; sequence.history_size < request.tokens.size(); ++sequence.history_size) {
    sequence.history.push(request.tokens[sequence.history_size]);
  }
}

// One pass over the last node of every growing sequence. Returns the logits; drops sequences that ran out of
// pages.
std::span<const float> DraftTargetDrafter::advance() {
  batch_.clear();
  transactions_.clear();
  std::erase_if(growing_, [&](Growing& one) {
    auto transaction = cache_.stage(one.state->kv, 1);
    if (!transaction.ok()) {
      forget_drafted(one);
      return true;
    }
    const TokenId token = one.tree->token(one.node);
    one.logits_index = append_chain(batch_, one.state->kv, *transaction, {&token, 1}, LogitsWanted::kLast);
    transactions_.push_back(std::move(*transaction));
    return false;
  });
  if (growing_.empty()) return {};
  const std::span<const float> logits = model_->forward(batch_, cache_);
  constexpr int kPath[] = {0};
  for (size_t i = 0; i < growing_.size(); ++i) {
    const TokenId token = growing_[i].tree->token(growing_[i].node);
    transactions_[i].commit(kPath, {&token, 1});
  }
  return logits;
}

// Adds the next node of the chain; false when the law is empty.
bool DraftTargetDrafter::propose_next(Growing& growing, std::span<const float> logits) {
  const DraftRequest& request = *growing.request;
  const TokenHistory& history = growing.state->history;
  TokenTree& tree = *growing.tree;
  const int64_t position = static_cast<int64_t>(request.tokens.size()) + tree.depth(growing.node);
  if (request.acceptance == AcceptanceRule::kCoupled) {
    // The target's own noise, so that it chooses alike where the models agree; nobody asks for the law.
    const TokenId token =
        chooser_.choose(logits, *request.sampling, history, {&growing.randomness, position});
    if (token < 0) return false;
    tree.add(growing.node, token);
  } else {
    const Distribution& law = laws_.build(logits, *request.sampling, history);
    const int added = law.empty() ? 0
                                  : propose({.tree = &tree,
                                             .node = growing.node,
                                             .law = &law,
                                             .count = 1,
                                             .position = position,
                                             .rule = request.acceptance,
                                             .randomness = &growing.randomness});
    if (added == 0) return false;
  }
  growing.node = tree.size() - 1;
  growing.state->history.push(tree.token(growing.node));
  return true;
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
  OUTRIDER_RETURN_IF_ERROR(
      model->reserve(std::max(context.prefill_chunk, context.max_batch), context.max_batch));
  KvShape shape = model->kv_shape();
  shape.page_size = context.page_size;
  shape.type = context.kv_type;
  const int64_t longest = std::min(context.context, model->config().max_context) + options.max_draft_len;
  shape.page_count = context.max_batch * ((longest + shape.page_size - 1) / shape.page_size + 1);
  return std::shared_ptr<Drafter>(std::make_shared<DraftTargetDrafter>(std::move(model), shape, context));
}

}  // namespace outrider
