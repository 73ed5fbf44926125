// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/thread_pool.h"
#include "chat_template/chat_template.h"
#include "kv/kv_cache.h"
#include "models/model.h"
#include "outrider/engine.h"
#include "speculation/policy/pass_costs.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// Everything an engine is made of, opened and fitted together: the one place that knows all of it. Members
// are destroyed in reverse order, users before what they use.
struct EngineParts {
  EngineOptions options;  // resolved: threads, context and kv_pages are set
  EngineInfo info;
  std::unique_ptr<ThreadPool> pool;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  std::string bos_token, eos_token;
  std::unique_ptr<Model> target;
  std::unique_ptr<KvCache> cache;
  std::shared_ptr<Drafter> drafter;
  PassCosts costs;          // of the target; empty unless the policy needs them
  int max_preemptions = 8;  // of one request; then it runs to its end
  int preempt_every = 0;    // steps; for tests: a request loses its pages without need; 0: never
  int64_t vocab_size = 0;   // ids that have a meaning; rows of the output head beyond them are never chosen
};

// Limits of one drafted tree.
int max_draft_depth(const EngineParts& parts);
int max_draft_nodes(const EngineParts& parts);
// The largest batch that a step can make, and how many of its rows may want logits.
ForwardBatch::Limits batch_limits(const EngineParts& parts);
int64_t max_logits(const EngineParts& parts);
// Rows of prompts that have logits in one step, beyond those.
constexpr int kMaxPromptLogits = 32;

// What opening does, one after the other.
enum class LoadStage : uint8_t { kFiles, kWeights, kDrafter, kCosts };
inline constexpr std::array<std::string_view, 4> kLoadStages = {"files", "weights", "drafter", "costs"};
using LoadSink = std::function<void(LoadStage)>;

// sink: told of every stage as it begins; may be empty.
Result<std::unique_ptr<EngineParts>> open_parts(EngineOptions options, const LoadSink& sink = {});

}  // namespace outrider
