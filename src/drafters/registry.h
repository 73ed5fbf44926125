// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "formats/model_file.h"
#include "kernels/kernel_table.h"
#include "models/model.h"
#include "outrider/drafter.h"
#include "outrider/engine.h"
#include "outrider/result.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// What a drafter may need to know of the target and the engine when it is made.
struct DrafterContext {
  const Tokenizer* tokenizer = nullptr;  // the target's
  std::string target_fingerprint = {};   // see heads/head_file.h
  int64_t vocab_size = 0;                // ids the target can choose: [0, vocab_size)
  int64_t layer_count = 0;               // of the target
  Model* target = nullptr;               // that learned drafters share embedding and output head with
  int64_t context = 0;                   // longest sequence in tokens
  int max_batch = 1;
  int prefill_chunk = 256;
  int page_size = 16;
  DType kv_type = DType::kBF16;  // of the target's cache
  const KernelTable* kernels = nullptr;
  ThreadPool* pool = nullptr;
  std::optional<DType> weights;
  std::shared_ptr<Drafter> user_drafter;
};

// The options with everything filled in that files decide: which method speculative_model is for, where none
// was named; what decoding_type Auto stands for: drafters that need no model, and what speculative_model
// holds, in one tree; the method's usual tree, where none was given; and the nodes of a tree of choices,
// where none were listed. Errors: a learned drafter
// that cannot be read, or is named as another method's; choices that make no tree.
Result<SpeculativeOptions> settled(SpeculativeOptions options);

// Limits of the trees that options ask for.
struct DraftLimits {
  int depth = 0;
  int nodes = 0;
};
DraftLimits limits_of(const SpeculativeOptions& options);

// The drafter that options.decoding_type names. Errors: unknown name (lists the known ones), options out of
// range, or whatever keeps this drafter from serving this target.
Result<std::shared_ptr<Drafter>> make_drafter(const SpeculativeOptions& options,
                                              const DrafterContext& context);

}  // namespace outrider
