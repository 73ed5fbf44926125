// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/sequence.h"
#include "remote/client/request_drafter.h"

namespace outrider {

// Text that the client writes offline, with its drafter's opinion in place of the target's.
struct LoneProgress {
  std::string_view text;
  std::span<const TokenId> tokens;
};
using LoneSink = std::function<void(const LoneProgress&)>;

// A text that the client continues offline, by the stop rules of its request.
class LoneText {
 public:
  // request: with the output so far.
  LoneText(Request request, const DraftingParts& parts, const Sequence::Limits& limits, const LoneSink& sink);

  // Writes some tokens. False: the drafter does not know how to go on.
  bool write(RequestDrafter& drafter);
  // Ends it where it is.
  void stop();
  bool finished() const { return sequence_->finished(); }
  std::span<const TokenId> tokens() const { return sequence_->tokens(); }  // prompt and output
  Completion& completion() { return sequence_->completion(); }

 private:
  std::unique_ptr<Sequence> sequence_;
};

}  // namespace outrider
