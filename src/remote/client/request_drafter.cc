// SPDX-License-Identifier: Apache-2.0
#include "remote/client/request_drafter.h"

#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "engine/guarded_call.h"
#include "remote/session/likely_path.h"

namespace outrider {
namespace {

constexpr RequestId kOnlyRequest = 1;

}  // namespace

RequestDrafter::RequestDrafter(DraftingParts* parts, const Request* request)
    : parts_(*parts), request_(*request), drafter_(*parts->drafter), target_{.model = parts->ends.get()} {}

RequestDrafter::~RequestDrafter() {
  (void)guarded([this] { return drafter_.end(kOnlyRequest), Status(); });
}

void RequestDrafter::begin(std::span<const TokenId> tokens) {
  (void)guarded([&] { return drafter_.begin(kOnlyRequest, tokens), Status(); });
}

void RequestDrafter::absorb(std::span<const TokenId> tokens, DraftingSession& session) {
  const auto size = static_cast<int64_t>(session.limits().state_size);
  if (size == 0) return;
  for (;;) {
    const int64_t count =
        std::min({std::ssize(session.states()) / size, std::ssize(tokens) - 1 - session.first_state(),
                  int64_t{parts_.prefill_chunk}});
    if (count <= 0) return;
    state_rows_.resize(static_cast<size_t>(count));
    std::iota(state_rows_.begin(), state_rows_.end(), 0);
    const CommittedFeatures states{.sequence = kOnlyRequest,
                                   .tokens = tokens,
                                   .first = static_cast<int>(session.first_state()),
                                   .rows = state_rows_,
                                   .features = session.states().data(),
                                   .size = size};
    (void)guarded([&] { return drafter_.absorb({&states, 1}), Status(); });
    session.drop_states(count);
  }
}

TokenTree RequestDrafter::propose(const Ask& ask, SpeculationStats& stats) {
  DraftRequest request{
      .sequence = kOnlyRequest,
      .tokens = ask.tokens,
      .prompt_length = static_cast<int>(request_.prompt.size()),
      .max_draft_len = static_cast<int>(std::min<int64_t>(parts_.limits.max_draft_len, ask.max_draft_len)),
      .max_nodes = static_cast<int>(std::min<int64_t>(parts_.limits.max_nodes, ask.max_nodes)),
      .sampling = &request_.sampling,
      .sample_index = request_.sample_index,
      .wants_probabilities = ask.estimates != nullptr,
      .rate = ask.rate,
      .row_ms = ask.row_ms,
      .estimates = ask.estimates,
      .target = drafter_.traits().uses_target ? &target_ : nullptr};
  TokenTree tree(ask.tokens.back());
  if (request.max_draft_len <= 0 || request.max_nodes <= 0) return tree;
  const double start_ms = now_ms();
  const Status status = guarded([&] { return drafter_.draft({&request, 1}, {&tree, 1}); });
  last_ms_ = now_ms() - start_ms;
  stats.draft_ms += last_ms_;
  if (status.ok()) return tree;
  tree.reset(ask.tokens.back());
  ++stats.draft_failures;
  return tree;
}

void RequestDrafter::observe(const TokenTree& tree, const Verdict& verdict) {
  (void)guarded([&] { return drafter_.observe(kOnlyRequest, tree, verdict), Status(); });
}

// Drafters without probabilities, which repeat earlier text, have no opinion about what comes next.
std::vector<TokenId> RequestDrafter::write(const Ask& ask, SpeculationStats& stats) {
  if (!drafter_.traits().emits_probabilities) return {};
  return likeliest_path(propose(ask, stats));
}

}  // namespace outrider
