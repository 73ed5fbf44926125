// SPDX-License-Identifier: Apache-2.0
#include "drafters/ranked/ranked_drafter.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/methods.h"
#include "drafters/draft_target/draft_target.h"
#include "drafters/ranked/draft_messages.h"
#include "drafters/ranked/draft_team.h"

namespace outrider {
namespace {

class RankedDrafter final : public Drafter {
 public:
  RankedDrafter(std::string name, std::shared_ptr<DraftTeam> team)
      : traits_{.name = std::move(name),
                .emits_probabilities = true,
                .drafts_ahead = true,
                .takes_orders = true},
        team_(std::move(team)),
        number_(team_->next_drafter()) {}
  ~RankedDrafter() override;

  // Opens the draft model at the ranks that are this drafter's share.
  Status open(const DrafterSettings& settings, const DraftShare& share);

  const DrafterTraits& traits() const override { return traits_; }
  void order(std::span<const DraftRequest> requests) override;
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;
  void end(uint64_t sequence) override;
  DrafterMemory memory() const override { return memory_; }

 private:
  // A sequence and its last order.
  struct Draft {
    int rank = 0;                // that caches the sequence; 0: none yet
    std::vector<TokenId> known;  // the tokens that this rank has
    uint64_t order = 0;          // number of the order; 0: there is none that a draft may use
    size_t length = 0;           // tokens of the sequence when it was ordered
    int max_draft_len = 0;
    int max_nodes = 0;
    TokenConstraint* constraint = nullptr;
    bool is_answered = false;
    TokenTree tree = TokenTree();
  };
  // Orders on their way to one rank.
  struct Parcel {
    MessageWriter orders;
    std::vector<std::pair<uint64_t, uint64_t>> drafts;  // sequence and number of each order
  };

  int rank_for_new_sequence() const;
  static bool serves(const Draft& draft, const DraftRequest& request);
  void write(const DraftRequest& request, Draft& draft, Parcel& parcel);
  void send(int rank, Parcel parcel);
  Draft* find(const std::pair<uint64_t, uint64_t>& order);

  DrafterTraits traits_;
  std::shared_ptr<DraftTeam> team_;
  int number_;              // of the drafter at its ranks
  std::vector<int> ranks_;  // that have it
  DrafterMemory memory_;
  uint64_t last_order_ = 0;
  std::unordered_map<uint64_t, Draft> drafts_;
};

// Answers under way have nobody to go to.
RankedDrafter::~RankedDrafter() {
  drafts_.clear();
  for (const int rank : ranks_) {
    while (team_->collect(rank)) {
    }
  }
}

Status RankedDrafter::open(const DrafterSettings& settings, const DraftShare& share) {
  const int ranks = team_->size();
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank % share.count == share.index || (ranks < share.count && rank == share.index % ranks))
      ranks_.push_back(rank + 1);
  }
  MessageWriter message(RankCommand::kOpenDrafter);
  message.field(number_);
  write_settings(message, settings);
  for (const int rank : ranks_) {
    OUTRIDER_TRY(const DrafterMemory memory, team_->open(rank, message));
    memory_.weight_bytes += memory.weight_bytes;
    memory_.cache_bytes += memory.cache_bytes;
  }
  return {};
}

// The one with the fewest sequences; 0: all have ended.
int RankedDrafter::rank_for_new_sequence() const {
  int best = 0;
  std::ptrdiff_t fewest = 0;
  for (const int rank : ranks_) {
    if (!team_->works(rank)) continue;
    const auto count =
        std::ranges::count_if(drafts_, [&](const auto& one) { return one.second.rank == rank; });
    if (best != 0 && count >= fewest) continue;
    best = rank;
    fewest = count;
  }
  return best;
}

// Whether the order made for this text keeps within the limits of the request.
bool RankedDrafter::serves(const Draft& draft, const DraftRequest& request) {
  return draft.order != 0 && draft.length == request.tokens.size() &&
         draft.max_draft_len <= request.max_draft_len && draft.max_nodes <= request.max_nodes;
}

void RankedDrafter::order(std::span<const DraftRequest> requests) {
  std::map<int, Parcel> parcels;  // by rank
  for (const DraftRequest& request : requests) {
    Draft& draft = drafts_[request.sequence];
    if (draft.rank != 0 && !team_->works(draft.rank)) draft = {};
    if (serves(draft, request)) continue;
    if (draft.rank == 0) draft.rank = rank_for_new_sequence();
    if (draft.rank != 0) write(request, draft, parcels[draft.rank]);
  }
  for (auto& [rank, parcel] : parcels) send(rank, std::move(parcel));
}

void RankedDrafter::write(const DraftRequest& request, Draft& draft, Parcel& parcel) {
  const auto kept =
      static_cast<size_t>(std::ranges::mismatch(draft.known, request.tokens).in1 - draft.known.begin());
  const auto added = request.tokens.subspan(kept);
  DraftOrder order{.sequence = request.sequence,
                   .scope = request.scope,
                   .kept = static_cast<int64_t>(kept),
                   .tokens = {added.begin(), added.end()},
                   .prompt_length = request.prompt_length,
                   .max_draft_len = request.max_draft_len,
                   .max_nodes = request.max_nodes,
                   .max_children = request.max_children,
                   .sampling = *request.sampling,
                   .sample_index = request.sample_index,
                   .source = request.source,
                   .acceptance = request.acceptance,
                   .is_constrained = request.constraint != nullptr,
                   .constraint_state = request.constraint_state,
                   .wants_probabilities = request.wants_probabilities,
                   .may_guess = request.may_guess,
                   .rate = request.rate,
                   .row_ms = request.row_ms,
                   .estimates = {}};
  for (const AcceptanceEstimates* one = request.estimates; one != nullptr; one = one->prior())
    order.estimates.push_back(*one);
  write_order(parcel.orders, order);
  parcel.drafts.emplace_back(request.sequence, ++last_order_);
  draft.known.resize(kept);
  draft.known.insert(draft.known.end(), added.begin(), added.end());
  draft.order = last_order_;
  draft.length = request.tokens.size();
  draft.max_draft_len = request.max_draft_len;
  draft.max_nodes = request.max_nodes;
  draft.constraint = request.constraint;
  draft.is_answered = false;
  draft.tree.reset(request.tokens.back());
}

void RankedDrafter::send(int rank, Parcel parcel) {
  MessageWriter message(RankCommand::kDraft);
  message.field(number_);
  message.field(parcel.drafts.size());
  message.append(parcel.orders.bytes());
  const auto drafts =
      std::make_shared<const std::vector<std::pair<uint64_t, uint64_t>>>(std::move(parcel.drafts));
  team_->order(rank, message,
               {.constraint =
                    [this, drafts](int i) {
                      const Draft* draft = find((*drafts)[static_cast<size_t>(i)]);
                      return draft == nullptr ? nullptr : draft->constraint;
                    },
                .take =
                    [this, drafts](MessageReader& answer) {
                      TokenTree unwanted;
                      for (const auto& order : *drafts) {
                        Draft* draft = find(order);
                        unwanted.reset(0);
                        read_tree(answer, draft == nullptr ? unwanted : draft->tree);
                        if (draft != nullptr) draft->is_answered = true;
                      }
                    }});
}

// Null: the sequence is gone, or a later order took the place of this one.
RankedDrafter::Draft* RankedDrafter::find(const std::pair<uint64_t, uint64_t>& order) {
  const auto found = drafts_.find(order.first);
  return found == drafts_.end() || found->second.order != order.second ? nullptr : &found->second;
}

Status RankedDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  order(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    Draft& draft = drafts_[requests[i].sequence];
    while (draft.order != 0 && !draft.is_answered && team_->collect(draft.rank)) {
    }
    if (draft.order != 0 && draft.is_answered) std::swap(trees[i], draft.tree);
    draft.order = 0;
  }
  if (std::ranges::any_of(ranks_, [&](int rank) { return team_->works(rank); })) return {};
  return io_error("expected a rank that drafts, found that all have ended; start the job again");
}

void RankedDrafter::end(uint64_t sequence) {
  const auto found = drafts_.find(sequence);
  if (found == drafts_.end()) return;
  const int rank = found->second.rank;
  drafts_.erase(found);
  if (rank == 0) return;
  MessageWriter message(RankCommand::kForget);
  message.field(number_);
  message.field(sequence);
  team_->tell(rank, message);
}

DrafterSettings settings_of(const SpeculativeOptions& options, const DrafterContext& context) {
  return {.target = context.target_path.string(),
          .kernels = std::string(context.kernels->name),
          .converts = context.weights.has_value(),
          .weights = context.weights.value_or(DType::kF32),
          .kv_type = context.kv_type,
          .vocab_size = context.vocab_size,
          .context = context.context,
          .max_batch = context.max_batch,
          .prefill_chunk = context.prefill_chunk,
          .page_size = context.page_size,
          .threads = context.team->threads(),
          .device = std::string(context.device),
          .first_device = context.team->first_device(),
          .speculation = options};
}

}  // namespace

Result<std::shared_ptr<Drafter>> make_draft_model_drafter(const SpeculativeOptions& options,
                                                          const DrafterContext& context) {
  if (!context.team) return make_draft_target_drafter(options, context);
  auto drafter =
      std::make_shared<RankedDrafter>(std::string(method_name(options.decoding_type)), context.team);
  OUTRIDER_RETURN_IF_ERROR(drafter->open(settings_of(options, context), context.share));
  return std::shared_ptr<Drafter>(std::move(drafter));
}

}  // namespace outrider
