// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "capi/handles.h"
#include "outrider/drafter.h"
#include "outrider/outrider.h"

namespace outrider {

// A drafter made of the functions of a C program.
class CallbackDrafter final : public Drafter {
 public:
  // Precondition: there is a draft function, and an absorb function where features are wanted.
  explicit CallbackDrafter(const outrider_drafter& functions);
  ~CallbackDrafter() override;
  CallbackDrafter(const CallbackDrafter&) = delete;
  CallbackDrafter& operator=(const CallbackDrafter&) = delete;

  const DrafterTraits& traits() const override { return traits_; }
  void begin(uint64_t sequence, std::span<const TokenId> prompt, uint64_t scope) override;
  Status draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) override;
  void observe(uint64_t sequence, const TokenTree& tree, const Verdict& verdict) override;
  void absorb(std::span<const CommittedFeatures> committed) override;
  void end(uint64_t sequence) override;

 private:
  outrider_drafter functions_;
  DrafterTraits traits_;
  // Arguments of one call.
  std::vector<outrider_draft_request> requests_;
  std::vector<outrider_tree> trees_;
  std::vector<outrider_tree*> tree_pointers_;
  std::vector<outrider_features> features_;
  std::vector<const float*> rows_;  // of all sequences, one after the other
};

}  // namespace outrider
