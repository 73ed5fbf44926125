// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "engine/scheduler.h"
#include "engine/slot_texts.h"
#include "kv/kv_cache.h"
#include "models/model.h"
#include "outrider/drafter.h"
#include "outrider/engine.h"
#include "speculation/policy/speculation_limits.h"
#include "speculation/policy/speculation_policy.h"

namespace outrider {

class DeviceLoop;
class PassChoices;

// The parts of the engine that the stages of a step work with. All of them outlive the step.
struct StepParts {
  Model* target = nullptr;
  KvCache* cache = nullptr;
  Drafter* drafter = nullptr;
  Scheduler* scheduler = nullptr;
  SlotTexts* slots = nullptr;
  SpeculationPolicy* policy = nullptr;
  SpeculationLimits* speculation_limits = nullptr;
  DeviceLoop* device_loop = nullptr;    // steps on the device of the target; null: there are none
  PassChoices* pass_choices = nullptr;  // on that device; null: this machine chooses the tokens
  const std::atomic<bool>* is_interrupted = nullptr;  // a call for several steps ends after the present one
  int64_t vocab_size = 0;                             // ids that may be chosen: [0, vocab_size)
  std::span<const TokenId> unused_tokens = {};        // ids among them that are never chosen
  AcceptanceRule acceptance = AcceptanceRule::kCoupled;  // for requests that name no rule
  DraftAhead draft_ahead = DraftAhead::kAuto;
  const SpeculativeOptions* options = nullptr;  // parameters of the lossy rules
  ForwardBatch::Limits limits;                  // limits of one forward pass
  int max_nodes = 0;                            // drafted nodes of one tree
};

}  // namespace outrider
