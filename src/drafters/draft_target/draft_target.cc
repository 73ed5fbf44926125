// SPDX-License-Identifier: Apache-2.0
#include "drafters/draft_target/draft_target.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/methods.h"
#include "draft_heads/vocabulary/token_map.h"
#include "drafters/cached_growth.h"
#include "drafters/device_trees.h"
#include "drafters/draft_target/partial_output.h"
#include "drafters/draft_target/string_match.h"
#include "drafters/draft_target/text_trees.h"
#include "drafters/draft_target/vocabulary_bridge.h"
#include "drafters/draft_target/vocabulary_match.h"
#include "formats/json_object.h"
#include "models/backend/device/device_loop.h"
#include "models/model.h"
#include "speculation/tree/tree_policy.h"

namespace outrider {
namespace {

class DraftTargetDrafter final : public Drafter, private DeviceDraft {
 public:
  // A draft with the target's vocabulary needs neither bridge nor strings; others have one or both of
  // vocabulary_match.
  struct Draft {
    std::unique_ptr<Model> model;
    std::unique_ptr<PartialOutput> output = {};  // of a model that drafts only some tokens, or null
    std::optional<VocabularyBridge> bridge = {};
    std::optional<StringMatch> strings = {};
    VocabularyMatch match = VocabularyMatch::kTokens;
    std::optional<TokenId> mask = {};  // see CachedGrowth::Vocabulary
  };
  DraftTargetDrafter(Draft draft, const KvShape& shape, const SpeculativeOptions& options,
                     const DrafterContext& context)
      : traits_{.name = std::string(method_name(options.decoding_type)),
                .emits_probabilities = true,
                .drafts_ahead = true},
        draft_(std::move(draft)),
        own_{.size = draft_.model->config().vocab_size, .own_ids = {}, .mask = draft_.mask},
        shared_{.size = draft_.bridge ? context.vocab_size : std::min(context.vocab_size, own_.size),
                .own_ids = draft_.bridge ? draft_.bridge->draft_ids() : std::span<const TokenId>(),
                .mask = draft_.mask},
        growth_(options, context, shape, shared_, *draft_.model),
        context_(draft_.model->config().max_context),
        max_length_(context.context),
        prefill_chunk_(context.prefill_chunk),
        device_growth_(options),
        has_device_form_(device_growth_.is_possible() && !draft_.bridge && !draft_.output && !draft_.mask &&
                         own_.size >= context.vocab_size) {
    if (draft_.strings) text_trees_.emplace(*draft_.strings, *draft_.bridge);
    const ModelFile* file =
        context.files == nullptr ? nullptr : context.files->model(options.speculative_model);
    if (file != nullptr && !draft_.bridge)
      disk_ = context.open_disk(growth_.cache(), options.decoding_type, *file);
    path_.reserve(static_cast<size_t>(std::max(prefill_chunk_, CachedGrowth::max_staged(options))));
  }

  const DrafterTraits& traits() const override { return traits_; }
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;
  void end(uint64_t sequence) override {
    sequences_.erase(sequence);
    texts_.erase(sequence);
  }
  bool restore(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope, double limit_ms) override {
    return disk_ && disk_->restore(sequence, tokens, scope, limit_ms);
  }
  bool save(bool everything) override { return disk_ && disk_->save(everything); }
  DrafterMemory memory() const override {
    return {
        .weight_bytes = draft_.model->weight_bytes() + (draft_.output ? draft_.output->weight_bytes() : 0),
        .cache_bytes = growth_.cache().shape().total_bytes()};
  }
  DeviceDraft* device_draft() override { return has_device_form_ ? this : nullptr; }

 private:
  Status reserve(const Shape& shape) override;
  int max_levels() const override { return kMaxDraftLen; }
  bool takes(const DraftRequest& request) const override { return device_growth_.takes(request); }
  bool has_branches() const override { return device_growth_.has_branches(); }
  bool start(std::span<const Row> rows) override;
  void record(const simt::Trees& trees, DeviceList& list) override;
  void record_after_walk(const simt::Trees& trees, FloatAddress features, DeviceList& list) override;
  int64_t moves() const override { return backend_->moves(); }
  void finish(uint64_t sequence, std::span<const TokenId> tokens) override;

  bool matches_strings(const DraftRequest& request) const;
  void draft_tokens(std::span<const DraftRequest> requests, std::span<TokenTree> trees);
  void draft_texts(std::span<const DraftRequest> requests, std::span<TokenTree> trees);
  void prepare(const DraftRequest& request, std::span<const TokenId> tokens, TokenTree& tree);
  std::span<const TokenId> read(const DraftRequest& request);
  DraftSequence* take_up(const DraftRequest& request, std::span<const TokenId> tokens);
  void settle(const DraftRequest& request);
  bool stage(const Row& row);
  DraftSequence& open(const DraftRequest& request, std::span<const TokenId> tokens);
  void commit(DraftSequence& sequence, std::span<const TokenId> tokens);
  bool compute(DraftSequence& sequence, std::span<const TokenId> tokens);

  DrafterTraits traits_;
  Draft draft_;
  CachedGrowth::Vocabulary own_, shared_;  // of trees in the draft's tokens and in the target's
  CachedGrowth growth_;
  std::unique_ptr<KvDisk> disk_;         // of its cache; null also where the vocabularies differ
  std::optional<TextTrees> text_trees_;  // where there are strings
  int64_t context_;                      // tokens of the longest sequence that the draft model was made for
  int64_t max_length_;                   // tokens of the longest sequence in the engine
  int prefill_chunk_;
  DeviceGrowth device_growth_;
  bool has_device_form_;
  DeviceBackend* backend_ = nullptr;         // of the draft model; from DeviceDraft::reserve() on
  std::optional<DeviceTrees> device_trees_;  // as backend_
  std::optional<EntryMoves> moves_;          // as backend_
  std::vector<int> path_;                    // scratch of commit() and compute()
  std::unordered_map<uint64_t, VocabularyBridge::Text> texts_;  // where there is a bridge
  std::unordered_map<uint64_t, DraftSequence> sequences_;       // destroyed before the cache of their pages
};

Status DraftTargetDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  draft_tokens(requests, trees);
  if (text_trees_) draft_texts(requests, trees);
  return {};
}

// Probabilities matter where tokens are sampled; a greedy request wants the likeliest text.
bool DraftTargetDrafter::matches_strings(const DraftRequest& request) const {
  if (draft_.match != VocabularyMatch::kAuto) return draft_.match == VocabularyMatch::kStrings;
  return draft_.strings && request.sampling->temperature == 0.0;
}

void DraftTargetDrafter::draft_tokens(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  growth_.start(shared_);
  for (size_t i = 0; i < requests.size(); ++i)
    if (!matches_strings(requests[i])) prepare(requests[i], read(requests[i]), trees[i]);
  growth_.grow([&](const ForwardBatch& batch, std::span<const CachedGrowth::Rows>) {
    if (draft_.output) return draft_.output->forward(growth_.batch(), growth_.cache());
    const std::span<const float> logits = draft_.model->forward(batch, growth_.cache());
    return draft_.bridge ? draft_.bridge->translate(logits, logits.size() / batch.logits_rows.size())
                         : logits;
  });
}

void DraftTargetDrafter::draft_texts(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  growth_.start(own_);
  text_trees_->start(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!matches_strings(requests[i])) continue;
    const std::span<const TokenId> tokens = read(requests[i]);
    if (tokens.empty()) continue;
    prepare(text_trees_->ask(i, requests[i], tokens), tokens, text_trees_->tree(i));
  }
  growth_.grow([&](const ForwardBatch& batch, std::span<const CachedGrowth::Rows>) {
    return draft_.model->forward(batch, growth_.cache());
  });
  text_trees_->hand_over(requests, trees);
}

// The text of the request in the draft's tokens.
std::span<const TokenId> DraftTargetDrafter::read(const DraftRequest& request) {
  if (!draft_.bridge) return request.tokens;
  VocabularyBridge::Text& text = texts_[request.sequence];
  draft_.bridge->read(request.tokens, text);
  return text.tokens;
}

// Caches the sequence up to the pending token, except for the tokens that the first pass computes; then the
// sequence takes part in the draft. `tokens` is its text in the draft's tokens.
void DraftTargetDrafter::prepare(const DraftRequest& request, std::span<const TokenId> tokens,
                                 TokenTree& tree) {
  DraftSequence* sequence = take_up(request, tokens);
  if (sequence == nullptr) return;
  auto uncached = tokens.subspan(static_cast<size_t>(sequence->kv.length()));
  if (uncached.size() > CachedGrowth::kMaxUncached + 1) {
    if (!compute(*sequence, uncached.first(uncached.size() - 1))) return;
    uncached = uncached.last(1);
  }
  growth_.add(request, tree, *sequence, uncached);
}

// The sequence with the entries of these tokens that are cached. Null: it does not fit into the draft model's
// context and vocabulary.
DraftSequence* DraftTargetDrafter::take_up(const DraftRequest& request, std::span<const TokenId> tokens) {
  const bool is_known_vocabulary = std::all_of(
      tokens.begin(), tokens.end(), [&](TokenId token) { return token < draft_.model->config().vocab_size; });
  if (tokens.empty() || !is_known_vocabulary) return nullptr;
  if (static_cast<int64_t>(tokens.size()) + request.max_draft_len > context_) return nullptr;
  DraftSequence& sequence = open(request, tokens);
  commit(sequence, tokens);
  const std::span<const TokenId> cached = sequence.kv.tokens();
  const auto before_pending = tokens.first(tokens.size() - 1);
  const auto same = static_cast<size_t>(
      std::mismatch(cached.begin(), cached.end(), before_pending.begin(), before_pending.end()).first -
      cached.begin());
  if (same < cached.size()) growth_.cache().rewind(sequence.kv, static_cast<int32_t>(same));
  return &sequence;
}

Status DraftTargetDrafter::reserve(const Shape& shape) {
  backend_ = dynamic_cast<DeviceBackend*>(&draft_.model->backend());
  if (backend_ == nullptr) return usage_error("the draft model is not on a device");
  const ModelConfig& config = draft_.model->config();
  if (const std::string part = part_without_loop(config); !part.empty())
    return usage_error("the draft model has " + part);
  device_trees_.emplace(*backend_,
                        DeviceTrees::Network{.vocab_size = shared_.size,
                                             .row_size = config.vocab_size,
                                             .page_size = growth_.cache().shape().page_size},
                        device_growth_, shape);
  moves_.emplace(backend_->launcher().device(), growth_.cache());
  return {};
}

void DraftTargetDrafter::record(const simt::Trees& trees, DeviceList& list) {
  device_trees_->record(trees, list, {.forward = [&](const ForwardBatch& batch, int) {
                          draft_.model->forward(batch, growth_.cache());
                          return DeviceTrees::Output{.logits = draft_.model->logit_rows()};
                        }});
}

void DraftTargetDrafter::record_after_walk(const simt::Trees& trees, FloatAddress, DeviceList& list) {
  if (has_branches()) device_trees_->record_moves(trees, list, *moves_);
}

bool DraftTargetDrafter::start(std::span<const Row> rows) {
  std::vector<DeviceTrees::Row> of_rows(rows.size());
  std::vector<SamplingParams> samplings(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const DraftRequest& request = rows[i].request;
    if (request.max_draft_len == 0) {
      settle(request);
      continue;
    }
    if (!stage(rows[i])) return false;
    samplings[i] = device_growth_.sampling_of(request);
    of_rows[i].pages = {sequences_.at(request.sequence).kv.pages()};
    of_rows[i].choice = {&samplings[i], request.sample_index};
  }
  device_trees_->start(of_rows);
  return true;
}

// Entries that a draft between steps has staged are no entries of the run.
void DraftTargetDrafter::settle(const DraftRequest& request) {
  const auto found = sequences_.find(request.sequence);
  if (found != sequences_.end()) commit(found->second, request.tokens);
}

// The last pass of a run drafts after all tokens that the sequence may get in it. The nodes of a tree have
// entries behind the pending token's.
bool DraftTargetDrafter::stage(const Row& row) {
  DraftRequest last = row.request;
  last.max_draft_len += row.tokens;
  const std::span<const TokenId> tokens = row.request.tokens;
  DraftSequence* sequence = take_up(last, tokens);
  if (sequence == nullptr) return false;
  const auto uncached = tokens.subspan(static_cast<size_t>(sequence->kv.length()));
  if (!compute(*sequence, uncached.first(uncached.size() - 1))) return false;
  auto staged = growth_.cache().stage(sequence->kv, row.before_last + 1 + device_growth_.expanded_nodes());
  if (!staged.ok()) return false;
  sequence->staged = std::move(*staged);
  sequence->computed = 0;
  return true;
}

// The token before the pending one may have no entry yet.
void DraftTargetDrafter::finish(uint64_t sequence, std::span<const TokenId> tokens) {
  const auto found = sequences_.find(sequence);
  if (found == sequences_.end() || !found->second.staged) return;
  DraftSequence& of = found->second;
  // The last step may have had no drafts, and the last draft before it was not expanded.
  const auto length = static_cast<size_t>(of.kv.length()), end = std::max(tokens.size(), length + 3) - 3;
  path_.resize(end - length);
  std::iota(path_.begin(), path_.end(), 0);
  of.staged->commit(path_, tokens.empty() ? tokens : tokens.subspan(length, path_.size()));
  of.staged.reset();
}

DraftSequence& DraftTargetDrafter::open(const DraftRequest& request, std::span<const TokenId> tokens) {
  auto [found, is_new] = sequences_.try_emplace(request.sequence);
  DraftSequence& sequence = found->second;
  if (is_new) {
    sequence.kv = growth_.cache().open(tokens, request.scope);
    if (disk_) disk_->release();
    growth_.reserve(sequence, std::min(context_, max_length_));
  }
  return sequence;
}

// Keeps the entries of the last draft that became text, and gives the others back.
void DraftTargetDrafter::commit(DraftSequence& sequence, std::span<const TokenId> tokens) {
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

bool DraftTargetDrafter::compute(DraftSequence& sequence, std::span<const TokenId> tokens) {
  while (!tokens.empty()) {
    const auto chunk = tokens.first(std::min(tokens.size(), static_cast<size_t>(prefill_chunk_)));
    auto transaction = growth_.cache().stage(sequence.kv, static_cast<int>(chunk.size()));
    if (!transaction.ok()) return false;
    ForwardBatch& batch = growth_.batch();
    batch.clear();
    append_chain(batch, sequence.kv, *transaction, chunk, LogitsWanted::kNone);
    draft_.model->forward(batch, growth_.cache());
    path_.resize(chunk.size());
    std::iota(path_.begin(), path_.end(), 0);
    transaction->commit(path_, chunk);
    tokens = tokens.subspan(chunk.size());
  }
  return true;
}

// The options with the ranking temperature that the model's own config.json names. GGUF files name none.
Result<SpeculativeOptions> own_options(const ModelFile& file, SpeculativeOptions options) {
  if (file.document) OUTRIDER_RETURN_IF_ERROR(take_ranking_temperature(file.document->root(), options));
  return options;
}

// The token that a PARD model reads at places to be drafted.
Result<TokenId> read_mask(const ModelFile& file, int64_t vocab) {
  std::optional<int64_t> token;
  if (file.document) {
    OUTRIDER_TRY(token, file.document->root().integer(method_row(Method::kPard).config_mark));
  }
  if (token && *token >= 0 && *token < vocab) return static_cast<TokenId>(*token);
  return input_error(file.path.string() + ": expected config.json with a token of the model as " +
                     std::string(method_row(Method::kPard).config_mark) + ", 0 to " +
                     std::to_string(vocab - 1) + ", found " + (token ? std::to_string(*token) : "none") +
                     "; choose a model that was trained for PARD, or draft_target");
}

Result<std::shared_ptr<Drafter>> make_with(DraftTargetDrafter::Draft draft, const SpeculativeOptions& options,
                                           const DrafterContext& context) {
  Model& model = *draft.model;
  const int nodes = make_tree_policy(options)->max_expanded(max_tree_nodes(options), options.max_draft_len);
  OUTRIDER_RETURN_IF_ERROR(
      model.reserve(CachedGrowth::max_rows(options, context), int64_t{context.max_batch} * nodes));
  if (draft.output) draft.output->reserve(int64_t{context.max_batch} * nodes);
  const int64_t max_length = std::min(context.context, model.config().max_context);
  const KvShape shape = CachedGrowth::cache_shape(model.kv_shape(), max_length, options, context);
  return std::shared_ptr<Drafter>(
      std::make_shared<DraftTargetDrafter>(std::move(draft), shape, options, context));
}

// Makes what leads from the draft's vocabulary to the target's, where they differ. Error: nothing does.
Status match_vocabularies(const ModelFile& file, const SpeculativeOptions& options,
                          const DrafterContext& context, DraftTargetDrafter::Draft& draft) {
  OUTRIDER_TRY(const std::shared_ptr<const Tokenizer> tokenizer, Tokenizer::create(file.tokenizer));
  if (check_same_vocabulary(*context.tokenizer, *tokenizer).ok()) return {};
  draft.bridge.emplace(*context.tokenizer, tokenizer, context.vocab_size);
  draft.match = options.vocabulary_match;
  const Status shared = draft.bridge->check_shared();
  if (draft.match == VocabularyMatch::kTokens) return shared;
  if (!shared.ok()) draft.match = VocabularyMatch::kStrings;
  draft.strings.emplace(*context.tokenizer, context.vocab_size);
  return {};
}

// Leaves the draft only the tokens of speculative_token_map, if there is one.
Status reduce_output(const ModelFile& file, const SpeculativeOptions& options,
                     const ModelOptions& model_options, DraftTargetDrafter::Draft& draft) {
  OUTRIDER_TRY(std::vector<TokenId> ids, read_token_map(options.speculative_token_map));
  if (ids.empty()) return {};
  if (draft.bridge) {
    return usage_error(
        "speculative_token_map: expected a draft model with the target's vocabulary, found another one");
  }
  ModelFile with_rows = file;
  OUTRIDER_TRY(draft.output,
               PartialOutput::load(with_rows, draft.model.get(), std::move(ids), model_options));
  return {};
}

}  // namespace

Result<std::shared_ptr<Drafter>> make_draft_target_drafter(const SpeculativeOptions& options,
                                                           const DrafterContext& context) {
  const ModelFile* file =
      context.files == nullptr ? nullptr : context.files->model(options.speculative_model);
  if (file == nullptr) {
    return usage_error("decoding_type " + std::string(method_name(options.decoding_type)) +
                       " expects speculative_model, the path of a draft model; found none");
  }
  DraftTargetDrafter::Draft draft;
  OUTRIDER_RETURN_IF_ERROR(match_vocabularies(*file, options, context, draft));
  ModelOptions model_options = context.model_options();
  model_options.context = context.context;
  OUTRIDER_TRY(draft.model, Model::load(*file, model_options));
  OUTRIDER_RETURN_IF_ERROR(reduce_output(*file, options, model_options, draft));
  if (options.decoding_type == Method::kPard) {
    OUTRIDER_TRY(draft.mask, read_mask(*file, draft.model->config().vocab_size));
  }
  OUTRIDER_TRY(const SpeculativeOptions own, own_options(*file, options));
  return make_with(std::move(draft), own, context);
}

Result<std::shared_ptr<Drafter>> make_draft_target_drafter(std::unique_ptr<Model> model,
                                                           const SpeculativeOptions& options,
                                                           const DrafterContext& context) {
  return make_with({.model = std::move(model)}, options, context);
}

}  // namespace outrider
