// SPDX-License-Identifier: Apache-2.0
#include "drafters/combined/combined.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/methods.h"
#include "drafters/combined/feature_share.h"
#include "drafters/ranked/ranked_drafter.h"
#include "drafters/shared_constraint.h"
#include "speculation/policy/draft_stats.h"
#include "speculation/tree/acceptance_estimates.h"
#include "speculation/tree/top_nodes.h"

namespace outrider {
namespace {

bool is_asked(const DraftRequest& request, size_t member) { return (request.members >> member & 1) != 0; }

class CombinedDrafter final : public Drafter {
 public:
  CombinedDrafter(std::string name, CombinedParts parts);

  const DrafterTraits& traits() const override { return traits_; }
  void begin(uint64_t sequence, std::span<const TokenId> prompt, uint64_t scope) override;
  void order(std::span<const DraftRequest> requests) override;
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;
  void observe(uint64_t sequence, const TokenTree& tree, const Verdict& verdict) override;
  void absorb(std::span<const CommittedFeatures> committed) override;
  void collect_states(const CommittedFeatures& committed, const TargetAccess& target, float* out) override;
  int64_t known_tokens(std::span<const TokenId> tokens, uint64_t scope) override;
  void end(uint64_t sequence) override;
  bool restore(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope, double limit_ms) override;
  bool save(bool everything) override;
  DrafterMemory memory() const override;

 private:
  // Outcomes of one member's drafts.
  struct Record {
    AcceptanceEstimates worth = AcceptanceEstimates();
    std::vector<double> alive = {};  // by depth - 1: fading share of paths that deep

    void learn(const TokenTree& tree, const Verdict& verdict);
  };
  struct Member {
    std::shared_ptr<Drafter> drafter;
    DraftTime time = {};                        // of one sequence's draft, where no text has to be read first
    std::optional<FeatureShare> features = {};  // its part of the features, if it learns from them
    Record priced = {};                         // with all sequences for which time has a price
  };
  // State of one member for one sequence.
  struct Share {
    Record record;
    TokenTree tree;          // the last draft, with the member's own probabilities
    size_t read = 0;         // tokens of the sequence when it was asked last
    int left_out = 0;        // steps since it was asked last
    bool is_priced = false;  // time has a price
  };
  using Shares = std::vector<Share>;  // one per member
  // The requests that go to one member in one draft.
  struct Call {
    std::vector<DraftRequest> requests;
    std::vector<TokenTree> trees;
    std::vector<size_t> places;                // index of each request among all
    std::deque<SharedConstraint> constraints;  // the requests' own, where members run side by side
    Status status;
  };

  Shares& shares_of(uint64_t sequence);
  void open_shares(const DraftRequest& request);
  void prepare(std::span<const DraftRequest> requests);
  void prepare(const DraftRequest& request, size_t place);
  bool takes_orders(size_t member) const { return members_[member].drafter->traits().takes_orders; }
  std::vector<int> deal(const Shares& shares, const DraftRequest& request) const;
  std::vector<size_t> members_in_turn(std::span<const DraftRequest> requests) const;
  void leave_out(size_t member, std::span<const DraftRequest> requests, std::span<const TokenTree> trees);
  void call(size_t member);
  void learn_time(size_t member, double ms);
  void merge(size_t member, std::span<TokenTree> trees);

  DrafterTraits traits_;
  std::vector<std::unique_ptr<ThreadPool>> own_pools_;  // outlive their users
  std::vector<Member> members_;
  std::optional<size_t> reader_;  // the only member that reads states of the target, if there is just one
  ThreadPool* team_;
  std::vector<Call> calls_;  // one per member
  std::mutex constraint_mutex_;
  std::unordered_map<uint64_t, Shares> sequences_;
  TopNodes likeliest_;
};

CombinedDrafter::CombinedDrafter(std::string name, CombinedParts parts)
    : own_pools_(std::move(parts.own_pools)), team_(parts.team), calls_(parts.drafters.size()) {
  traits_.name = std::move(name);
  traits_.drafts_ahead =
      std::ranges::all_of(parts.drafters, [](const auto& drafter) { return drafter->traits().drafts_ahead; });
  for (std::shared_ptr<Drafter>& drafter : parts.drafters) {
    const DrafterTraits& traits = drafter->traits();
    traits_.emits_probabilities |= traits.emits_probabilities;
    traits_.wants_choices |= traits.wants_choices;
    traits_.uses_target |= traits.uses_target;
    traits_.takes_orders |= traits.takes_orders;
    traits_.sources.push_back(traits.name);
    traits_.features = merge_features(traits_.features, traits.features);
    members_.push_back({std::move(drafter)});
  }
  int readers = 0;
  for (size_t m = 0; m < members_.size(); ++m) {
    const DrafterTraits& own = members_[m].drafter->traits();
    if (own.features.count() > 0) members_[m].features.emplace(own.features, traits_.features);
    if (own.states.size > 0 && ++readers == 1) reader_ = m;
  }
  if (readers > 1) reader_.reset();
  if (reader_) traits_.states = members_[*reader_].drafter->traits().states;
}

CombinedDrafter::Shares& CombinedDrafter::shares_of(uint64_t sequence) {
  Shares& shares = sequences_[sequence];
  shares.resize(members_.size());
  return shares;
}

// Under the policy `auto` drafts depend on measured times, and a sequence begins with what others proved.
// Elsewhere they depend only on its text.
void CombinedDrafter::open_shares(const DraftRequest& request) {
  if (request.rate == 0.0 || sequences_.contains(request.sequence)) return;
  Shares& shares = shares_of(request.sequence);
  for (size_t m = 0; m < members_.size(); ++m) {
    const Record& all = members_[m].priced;
    shares[m].record = {.worth = AcceptanceEstimates(&all.worth), .alive = all.alive};
    shares[m].is_priced = true;
  }
}

void CombinedDrafter::begin(uint64_t sequence, std::span<const TokenId> prompt, uint64_t scope) {
  for (const Member& member : members_) member.drafter->begin(sequence, prompt, scope);
}

void CombinedDrafter::end(uint64_t sequence) {
  sequences_.erase(sequence);
  for (const Member& member : members_) member.drafter->end(sequence);
}

void CombinedDrafter::absorb(std::span<const CommittedFeatures> committed) {
  for (Member& member : members_) {
    if (member.features) member.drafter->absorb(member.features->of(committed));
  }
  // States of a target elsewhere, which are no features.
  if (reader_ && !members_[*reader_].features) members_[*reader_].drafter->absorb(committed);
}

void CombinedDrafter::collect_states(const CommittedFeatures& committed, const TargetAccess& target,
                                     float* out) {
  Member& member = members_[*reader_];
  member.drafter->collect_states(member.features ? member.features->of({&committed, 1}).front() : committed,
                                 target, out);
}

int64_t CombinedDrafter::known_tokens(std::span<const TokenId> tokens, uint64_t scope) {
  int64_t known = std::ssize(tokens);
  for (const Member& member : members_) known = std::min(known, member.drafter->known_tokens(tokens, scope));
  return known;
}

bool CombinedDrafter::restore(uint64_t sequence, std::span<const TokenId> tokens, uint64_t scope,
                              double limit_ms) {
  return std::ranges::any_of(members_, [&](const Member& member) {
    return member.drafter->restore(sequence, tokens, scope, limit_ms);
  });
}

bool CombinedDrafter::save(bool everything) {
  return std::ranges::any_of(members_,
                             [&](const Member& member) { return member.drafter->save(everything); });
}

DrafterMemory CombinedDrafter::memory() const {
  DrafterMemory all;
  for (const Member& member : members_) {
    const DrafterMemory own = member.drafter->memory();
    all.weight_bytes += own.weight_bytes;
    all.cache_bytes += own.cache_bytes;
  }
  return all;
}

// A request is divided among members in the same way whenever it is asked for between two outcomes.
void CombinedDrafter::order(std::span<const DraftRequest> requests) {
  prepare(requests);
  for (size_t m = 0; m < members_.size(); ++m) {
    if (takes_orders(m)) members_[m].drafter->order(calls_[m].requests);
  }
}

Status CombinedDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  prepare(requests);
  // Members elsewhere begin, and the others draft meanwhile.
  for (size_t m = 0; m < members_.size(); ++m) {
    if (!takes_orders(m)) continue;
    leave_out(m, requests, trees);
    members_[m].drafter->order(calls_[m].requests);
  }
  if (team_ != nullptr) {
    team_->run(static_cast<int>(members_.size()),
               [&](Worker worker) { call(static_cast<size_t>(worker.index)); });
    for (size_t m = 0; m < members_.size(); ++m) merge(m, trees);
  } else {
    for (const size_t m : members_in_turn(requests)) {
      if (!takes_orders(m)) leave_out(m, requests, trees);
      call(m);
      merge(m, trees);
    }
  }
  const auto failed = [](const Call& call) { return !call.status.ok(); };
  if (std::all_of(calls_.begin(), calls_.end(), failed)) return calls_.front().status;
  for (size_t i = 0; i < requests.size(); ++i) likeliest_.keep(trees[i], requests[i].max_nodes);
  return {};
}

// Members draft in the order in which they are named, so that nothing depends on how long they take; but
// where time has a price, the fastest ones come first.
std::vector<size_t> CombinedDrafter::members_in_turn(std::span<const DraftRequest> requests) const {
  std::vector<size_t> order(members_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (std::all_of(requests.begin(), requests.end(), [](const auto& request) { return request.rate == 0.0; }))
    return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return members_[a].time.ms < members_[b].time.ms; });
  return order;
}

void CombinedDrafter::prepare(std::span<const DraftRequest> requests) {
  for (Call& call : calls_) {
    call.requests.clear();
    call.places.clear();
    call.constraints.clear();
    call.status = Status();
  }
  for (size_t i = 0; i < requests.size(); ++i) prepare(requests[i], i);
}

// Passes the request on to the members.
void CombinedDrafter::prepare(const DraftRequest& request, size_t place) {
  open_shares(request);
  Shares& shares = shares_of(request.sequence);
  const bool all_draws_stay =
      compares_distributions(request.acceptance) && request.sampling->temperature > 0.0;
  std::vector<int> nodes(members_.size(), request.max_nodes);
  if (all_draws_stay) nodes = deal(shares, request);
  for (size_t m = 0; m < members_.size(); ++m) {
    Call& call = calls_[m];
    shares[m].tree.reset(request.tokens.back());
    if (nodes[m] == 0 || !is_asked(request, m)) continue;
    call.places.push_back(place);
    call.requests.push_back(request);
    DraftRequest& own = call.requests.back();
    own.max_nodes = nodes[m];
    own.source = static_cast<int>(m);
    own.wants_probabilities = true;
    if (team_ != nullptr && own.constraint != nullptr)
      own.constraint = &call.constraints.emplace_back(own.constraint, &constraint_mutex_);
    if (own.estimates != nullptr) own.estimates = &shares[m].record.worth;
  }
}

// Where time has a price, a member skips the sequences to which it should add less than it costs, beyond what
// the members before it drafted, if anything. Accepted tokens count less the price of their rows. Now and
// then it is asked all the same, to see whether that still holds; this is rare enough that in a batch, too,
// few steps run a member for only one sequence.
void CombinedDrafter::leave_out(size_t member, std::span<const DraftRequest> requests,
                                std::span<const TokenTree> trees) {
  constexpr int kMaxLeftOut = 16;
  Call& call = calls_[member];
  size_t kept = 0;
  for (size_t j = 0; j < call.requests.size(); ++j) {
    const size_t place = call.places[j];
    Share& share = shares_of(requests[place].sequence)[member];
    const double rate = requests[place].rate;
    const double row_price = rate * requests[place].row_ms;
    double drafted = 0.0, expected = 0.0;
    for (const int node : likeliest_.order(trees[place]))
      drafted += std::max(0.0, likeliest_.path_probability(node) - row_price);
    for (const double alive : share.record.alive) expected += std::max(0.0, alive - row_price);
    const bool pays =
        rate == 0.0 || share.record.alive.empty() || expected - drafted > rate * members_[member].time.ms;
    share.left_out = pays ? 0 : (share.left_out + 1) % (kMaxLeftOut * static_cast<int>(requests.size()));
    if (share.left_out > 0) continue;
    call.requests[kept] = call.requests[j];
    call.places[kept++] = place;
  }
  call.requests.resize(kept);
  call.places.resize(kept);
}

// Nodes for each member: one each, then always one more for the member with the next node accepted most
// often. Where nodes have few children, one member draws all, because draws of several would have to be cut.
std::vector<int> CombinedDrafter::deal(const Shares& shares, const DraftRequest& request) const {
  constexpr double kUnknown = 0.5;
  std::vector<int> dealt(members_.size(), 0);
  const auto gain = [&](size_t m) {
    const auto next = static_cast<size_t>(dealt[m]);
    if (next == 0) return 1.0;
    double known = 1.0;
    for (size_t level = 0; level <= next; ++level)
      known = level < shares[m].record.alive.size() ? shares[m].record.alive[level] : known * kUnknown;
    return known;
  };
  const auto best = [&] {
    size_t best = members_.size();
    for (size_t m = 0; m < members_.size(); ++m)
      if (is_asked(request, m) && (best == members_.size() || gain(m) > gain(best))) best = m;
    return best;
  };
  if (best() == members_.size()) return dealt;
  if (request.max_children > 0) {
    const auto proved = [&](size_t m) {
      return shares[m].record.alive.empty() ? kUnknown : shares[m].record.alive.front();
    };
    size_t only = best();
    for (size_t m = 0; m < members_.size(); ++m)
      if (is_asked(request, m) && proved(m) > proved(only)) only = m;
    dealt[only] = request.max_nodes;
    return dealt;
  }
  for (int nodes = request.max_nodes; nodes > 0; --nodes) ++dealt[best()];
  return dealt;
}

void CombinedDrafter::call(size_t member) {
  Call& call = calls_[member];
  if (call.requests.empty()) return;
  const auto start = std::chrono::steady_clock::now();
  call.trees.resize(std::max(call.trees.size(), call.requests.size()));
  const auto trees = std::span(call.trees).first(call.requests.size());
  for (size_t j = 0; j < trees.size(); ++j) trees[j].reset(call.requests[j].tokens.back());
  try {
    call.status = members_[member].drafter->draft(call.requests, trees);
  } catch (const std::exception& error) {
    call.status = input_error(traits_.sources[member] + " threw: " + error.what());
  } catch (...) {
    call.status = input_error(traits_.sources[member] + " threw an unknown exception");
  }
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  learn_time(member, spent.count() / static_cast<double>(trees.size()));
}

// A member that has missed text reads it before it drafts: its time is an upper bound on later drafts' times,
// which may only lower the estimate.
void CombinedDrafter::learn_time(size_t member, double ms) {
  bool has_read = false;
  for (const DraftRequest& request : calls_[member].requests) {
    size_t& read = sequences_.at(request.sequence)[member].read;
    const size_t usual =
        static_cast<size_t>(request.max_draft_len) + 1;  // tokens that a step commits at most
    has_read |= request.tokens.size() > read + usual;
    read = request.tokens.size();
  }
  DraftTime& time = members_[member].time;
  if (!has_read || ms < time.ms) time.learn(ms);
}

// Adds the member's nodes to the shared trees, each with the probability that nodes of its kind proved to
// have.
void CombinedDrafter::merge(size_t member, std::span<TokenTree> trees) {
  Call& call = calls_[member];
  if (!call.status.ok()) return;
  for (size_t j = 0; j < call.requests.size(); ++j) {
    Share& share = shares_of(call.requests[j].sequence)[member];
    std::swap(share.tree, call.trees[j]);
    TokenTree weighed = share.tree;
    for (int node = 1; node < weighed.size(); ++node) {
      weighed.set_probability(node,
                              share.record.worth.estimate(weighed.depth(node), weighed.probability(node)));
    }
    trees[call.places[j]].merge(weighed, static_cast<int>(member));
  }
}

void CombinedDrafter::Record::learn(const TokenTree& tree, const Verdict& verdict) {
  constexpr double kFading = 0.1;
  const auto followed = static_cast<size_t>(worth.learn(tree, verdict.tokens));
  int levels = 0;
  for (int node = 1; node < tree.size(); ++node) levels = std::max(levels, tree.depth(node));
  for (size_t level = 0; std::cmp_less(level, levels); ++level) {
    if (level == alive.size()) alive.push_back(level == 0 ? 0.5 : alive.back());
    alive[level] += kFading * ((followed > level ? 1.0 : 0.0) - alive[level]);
  }
}

void CombinedDrafter::observe(uint64_t sequence, const TokenTree& tree, const Verdict& verdict) {
  Shares& shares = shares_of(sequence);
  for (size_t m = 0; m < members_.size(); ++m) {
    Share& share = shares[m];
    if (share.tree.drafted() > 0) share.record.learn(share.tree, verdict);
    if (share.tree.drafted() > 0 && share.is_priced) members_[m].priced.learn(share.tree, verdict);
    members_[m].drafter->observe(sequence, tree, verdict);
  }
}

}  // namespace

std::shared_ptr<Drafter> combine_drafters(std::string name, CombinedParts parts) {
  return std::make_shared<CombinedDrafter>(std::move(name), std::move(parts));
}

Status check_member_count(std::string_view key, size_t count) {
  if (count >= 1 && count <= size_t{kMaxMembers}) return {};
  return usage_error(std::string(key) + " must name 1 to " + std::to_string(kMaxMembers) +
                     " drafters, found " + std::to_string(count));
}

Result<std::shared_ptr<Drafter>> make_spec_infer_drafter(const SpeculativeOptions& options,
                                                         const DrafterContext& context) {
  const size_t count = options.speculative_models.size();
  OUTRIDER_RETURN_IF_ERROR(check_member_count("speculative_models", count));
  CombinedParts parts;
  for (const auto& path : options.speculative_models) {
    SpeculativeOptions own = options;
    own.decoding_type = Method::kDraftTarget;
    own.speculative_model = path;
    DrafterContext own_context = context;
    own_context.share = {.index = static_cast<int>(parts.drafters.size()), .count = static_cast<int>(count)};
    if (count > 1 && !context.team) {
      const int threads = std::max(1, context.pool->size() / static_cast<int>(count));
      parts.own_pools.push_back(std::make_unique<ThreadPool>(threads));
      own_context.pool = parts.own_pools.back().get();
    }
    OUTRIDER_TRY(std::shared_ptr<Drafter> drafter, make_draft_model_drafter(own, own_context));
    parts.drafters.push_back(std::move(drafter));
  }
  if (count > 1 && !context.team) parts.team = context.pool;
  return combine_drafters(std::string(method_name(options.decoding_type)), std::move(parts));
}

}  // namespace outrider
