// SPDX-License-Identifier: Apache-2.0
// The member that "speculative": {"trace": "summary" | "detailed"} adds to the choice of every chunk of a
// stream:
//
//   "speculation": {
//     "tokens": [{"text": " girl", "origin": "plain" | "accepted" | "recovered" | "bonus"}, ...],
//     "tree": {                                       // if detailed and something was drafted
//       "step": 12, "draft_ms": 0.1, "verify_ms": 0.6,
//       "sequences": 3, "rows": 17,                   // of the forward pass, over all requests
//       "nodes": [{"text": " a", "parent": -1, "fate": "accepted", "cause": "", "q": 0.5, "p": null}, ...]
//     }
//   }
//
// The texts of a choice's tokens, concatenated, are its whole output. A character that takes several tokens
// is the text of the last of them. Node 0 is the root: the last token before the step. q is the drafter's
// estimate, p the target's probability, which is null if the node's parent was not reached. Fates: accepted,
// rejected, unreached, past stop, over budget. docs/reference/trace.md lists the causes.
#pragma once

#include <memory>

#include "server/api/choice_delta.h"
#include "server/api/json_writer.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// Writes the member for the chunks of one choice.
class SpeculationWriter {
 public:
  SpeculationWriter(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special)
      : tokenizer_(std::move(tokenizer)), decoder_(tokenizer_, skip_special) {}

  // Writes the member "speculation".
  void write(JsonWriter& json, const ChoiceDelta& delta);

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  StreamDecoder decoder_;
};

}  // namespace outrider
