// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "drafters/target_access.h"
#include "outrider/engine.h"
#include "remote/client/drafting_parts.h"
#include "remote/session/drafting_session.h"

namespace outrider {

// The drafter while it drafts for one request. An error inside it costs speed only.
class RequestDrafter {
 public:
  // Both must outlive it; the request's prompt is the beginning of all tokens below.
  RequestDrafter(DraftingParts* parts, const Request* request);
  ~RequestDrafter();
  RequestDrafter(const RequestDrafter&) = delete;
  RequestDrafter& operator=(const RequestDrafter&) = delete;

  void begin(std::span<const TokenId> tokens);
  // Hands over the states that came of these tokens, as many at a time as an engine would. The last token is
  // pending.
  void absorb(std::span<const TokenId> tokens, DraftingSession& session);

  struct Ask {
    std::span<const TokenId> tokens;  // the last one becomes the root
    int64_t max_draft_len = 0;
    int64_t max_nodes = 0;
    double rate = 0, row_ms = 0;  // as in DraftRequest
    const AcceptanceEstimates* estimates = nullptr;
  };
  // A tree within these limits and the drafter's; failures are counted.
  TokenTree propose(const Ask& ask, SpeculationStats& stats);
  double last_ms() const { return last_ms_; }  // time of the last proposal
  void observe(const TokenTree& tree, const Verdict& verdict);

  // It may be asked after tokens that are taken back later.
  bool drafts_ahead() const { return drafter_.traits().drafts_ahead; }
  // The tokens that come next in its own opinion: none where it has none. It has no states of the last
  // tokens.
  std::vector<TokenId> write(const Ask& ask, SpeculationStats& stats);

 private:
  DraftingParts& parts_;
  const Request& request_;
  Drafter& drafter_;
  TargetAccess target_;          // only its ends
  std::vector<int> state_rows_;  // 0, 1, ...
  double last_ms_ = 0;
};

}  // namespace outrider
