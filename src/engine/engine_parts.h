// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "chat_template/plain_chat.h"
#include "drafters/registry.h"
#include "engine/adapter_table.h"
#include "kv/disk/kv_disk.h"
#include "kv/kv_cache.h"
#include "models/backend/device/device_loop.h"
#include "models/backend/device/pass_choices.h"
#include "models/model.h"
#include "outrider/engine.h"
#include "speculation/policy/pass_costs.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

class Corpus;
class DraftTeam;

// Everything that an engine is made of, opened and fitted together. Members are destroyed in reverse order,
// users before what they use.
struct EngineParts {
  EngineOptions options;  // resolved: threads, context and kv_pages are set
  EngineInfo info;
  std::unique_ptr<ThreadPool> pool;
  std::shared_ptr<const Tokenizer> tokenizer;
  ChatFormat chat;
  std::shared_ptr<Communicator> target_ranks;  // ranks that have the target; null: see EngineOptions
  std::unique_ptr<Model> target;
  AdapterTable adapters;
  std::unique_ptr<KvCache> cache;
  std::string
      cache_identity;  // all that the bits of pages depend on besides tokens and shape; empty: unknown
  std::unique_ptr<KvDisk> disk;           // of the cache; null: it is not kept
  std::shared_ptr<DraftTeam> draft_team;  // ranks that draft, or null
  std::shared_ptr<const Corpus> corpus;   // texts of others, or null
  std::shared_ptr<Drafter> drafter;
  std::unique_ptr<DeviceLoop> device_loop;    // steps on the device of the target; null: there are none
  std::unique_ptr<PassChoices> pass_choices;  // of tokens on that device, or null
  double agreement = 0.0;                     // of the draft head, as its files say (HeadSummary); 0: unknown
  PassCosts costs;                            // of the target; empty unless the policy needs them
  int max_preemptions = 8;                    // a request that lost its pages this often runs to its end
  int preempt_every = 0;  // steps after which a request loses its pages without need, for tests; 0: never
  std::vector<TokenId> unused_tokens;  // ids within vocab_size that no token has, never chosen
  int64_t vocab_size = 0;  // ids that have a meaning; rows of the output head beyond them are never chosen
};

// Rows with logits that prompts may have in one step.
inline constexpr int kMaxPromptLogits = 32;

// Limits of one drafted tree: levels and nodes below the root.
int max_draft_len(const EngineParts& parts);
int max_nodes(const EngineParts& parts);
// Levels and nodes of a chain from a request's prediction.
int max_predicted(const EngineParts& parts);
// Limits of any tree, offered and predicted ones included.
DraftLimits tree_limits(const EngineParts& parts);
// The largest batch that a step can make.
ForwardBatch::Limits batch_limits(const EngineParts& parts);
// How many rows of pending tokens and trees that batch can have; all of them want logits.
int64_t max_logits(const EngineParts& parts);
// Rows of pending tokens and trees in passes without a prediction.
int64_t usual_logits(const EngineParts& parts);

}  // namespace outrider
