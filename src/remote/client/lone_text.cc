// SPDX-License-Identifier: Apache-2.0
#include "remote/client/lone_text.h"

#include <limits>
#include <utility>

namespace outrider {
namespace {

constexpr RequestId kLoneRequest = 1;

}  // namespace

LoneText::LoneText(Request request, const DraftingParts& parts, const Sequence::Limits& limits,
                   const LoneSink& sink) {
  const auto publish = [sink](RequestId, const Progress& progress) {
    if (sink) sink({.text = progress.text, .tokens = progress.tokens});
  };
  sequence_ = std::make_unique<Sequence>(kLoneRequest, std::move(request), publish, parts.tokenizer, limits);
}

bool LoneText::write(RequestDrafter& drafter) {
  const std::vector<TokenId> next = drafter.write({.tokens = sequence_->tokens(),
                                                   .max_draft_len = sequence_->remaining(),
                                                   .max_nodes = std::numeric_limits<int>::max()},
                                                  sequence_->completion().speculation);
  if (next.empty()) return false;
  sequence_->commit(next, std::vector<TokenOrigin>(next.size(), TokenOrigin::kPlain));
  sequence_->publish();
  return true;
}

void LoneText::stop() {
  sequence_->finish(FinishReason::kCancelled);
  sequence_->publish();
}

}  // namespace outrider
