// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "chat_template/plain_chat.h"
#include "drafters/registry.h"
#include "models/model.h"
#include "open/names.h"
#include "outrider/drafter.h"
#include "outrider/engine.h"
#include "outrider/result.h"
#include "remote/protocol/messages.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// An engine's parts without its target: what drafts on this machine while the target is on another one.
// Members are destroyed in reverse order, users before what they use.
struct DraftingParts {
  EngineInfo info;
  std::unique_ptr<ThreadPool> pool;
  std::shared_ptr<const Tokenizer> tokenizer;
  ChatFormat chat;
  std::unique_ptr<Model> ends;  // the target's embedding and output head; null: the drafter shares none
  std::shared_ptr<Drafter> drafter;
  DraftLimits limits;                // of a tree
  int64_t context = 0;               // longest sequence in tokens that the drafter is ready for
  std::vector<TokenId> stop_tokens;  // end-of-text ids of the target
  bool is_auto = false;   // measured times and acceptance say how deep trees grow within the limits
  int prefill_chunk = 0;  // tokens with states that the drafter takes at a time
  VocabularyFingerprint vocabulary = {};
};

// The model of the names gives tokenizer and chat template, and its embedding and output head to draft heads;
// its layers are not read. Errors: a drafter that runs layers of the target, and whatever keeps the model or
// the drafter from being opened.
Result<DraftingParts> open_drafting(Names names);

}  // namespace outrider
