// SPDX-License-Identifier: Apache-2.0
// What "speculative": {"trace": "summary" | "detailed"} adds to every chunk of a stream, at its choice:
//
//   "speculation": {
//     "tokens": [{"text": " girl", "origin": "plain" | "accepted" | "recovered" | "bonus"}, ...],
//     "tree": {                                       // detailed, where something was drafted
//       "step": 12, "draft_ms": 0.1, "verify_ms": 0.6,
//       "sequences": 3, "rows": 17,                   // of the pass, all requests
//       "nodes": [{"text": " a", "parent": -1, "fate": "accepted", "cause": "", "q": 0.5, "p": null}, ...]
//     }
//   }
//
// The texts of a choice's tokens, one after the other, are its whole output; a character that takes several
// tokens comes with the last of them. Node 0 is the root: the last token before the step. q is the drafter's
// guess, p the target's probability, null where the node's parent was not reached. Fates: accepted, rejected,
// unreached, past stop, over budget. Causes: docs/trace.md.
#pragma once

#include <memory>
#include <string>

#include "server/api/generation_call.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// Of one choice.
class SpeculationWriter {
 public:
  SpeculationWriter(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special)
      : tokenizer_(std::move(tokenizer)), decoder_(tokenizer_, skip_special) {}

  // ,"speculation":{...}
  void append(std::string& out, const ChoiceDelta& delta);

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  StreamDecoder decoder_;
};

}  // namespace outrider
