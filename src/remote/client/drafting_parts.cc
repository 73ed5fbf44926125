// SPDX-License-Identifier: Apache-2.0
#include "remote/client/drafting_parts.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "config/methods.h"
#include "draft_heads/head_file.h"
#include "engine/storage_type.h"
#include "formats/model_file.h"
#include "kernels/kernel_table.h"
#include "open/corpus_files.h"
#include "open/device_choice.h"
#include "open/resolved.h"
#include "remote/protocol/vocabulary.h"

namespace outrider {
namespace {

// Longest sequence that a drafter prepares for; the server's own limit comes with its first answer.
constexpr int64_t kLongest = 1 << 17;

Status check_speculation(const SpeculativeOptions& options) {
  for (const MethodRow& row : method_table()) {
    if (!row.needs_target || !drafts_with(options, row.method)) continue;
    return usage_error(std::string(row.name) +
                       " runs layers of the target, which stay on the server; use ngram, suffix, "
                       "draft_target or a draft head "
                       "with --server");
  }
  return {};
}

// The parts of the target that draft heads share, with the last layers that a head runs.
Result<std::unique_ptr<Model>> open_ends(const ModelFile& file, const EngineOptions& options,
                                         const HeadFile* head, const KernelTable* kernels, ThreadPool* pool) {
  int64_t layers = 0;
  if (head != nullptr) {
    OUTRIDER_TRY(layers, tail_layers(*head, file.config));
  }
  return Model::load(file, {.kernels = kernels,
                            .pool = pool,
                            .weights = storage_type(options.weights),
                            .context = options.context,
                            .first_layer = file.config.layer_count - layers,
                            .device = backend_name(options.device)});
}

DrafterContext context_of(const DraftingParts& parts, const ModelFile& file, const EngineOptions& options,
                          const KernelTable* kernels) {
  return {.tokenizer = parts.tokenizer.get(),
          .target_fingerprint = parts.ends ? target_fingerprint(file) : "",
          .vocab_size = std::min<int64_t>(file.config.vocab_size, parts.tokenizer->vocab_size()),
          .layer_count = file.config.layer_count,
          .target = parts.ends.get(),
          .is_remote = true,
          .context = options.context != 0 ? options.context : std::min(file.config.max_context, kLongest),
          .max_batch = 1,
          .prefill_chunk = options.prefill_chunk,
          .page_size = options.page_size,
          .kernels = kernels,
          .pool = parts.pool.get(),
          .weights = storage_type(options.weights),
          .user_drafter = nullptr,
          .device = backend_name(options.device)};
}

Status open_text(DraftingParts& parts, const ModelFile& file) {
  OUTRIDER_TRY(parts.tokenizer, Tokenizer::create(file.tokenizer));
  parts.chat = chat_format_of(file);
  parts.vocabulary = fingerprint_of(*parts.tokenizer);
  return {};
}

}  // namespace

Result<DraftingParts> open_drafting(Names names) {
  OUTRIDER_TRY(OpenedFiles files, open_files(std::move(names)));
  take_device(files.names.options, files.target);
  const EngineOptions& options = files.names.options;
  const ModelFile& file = files.target;
  OUTRIDER_TRY(const SpeculativeOptions speculation, resolve_speculation(options.speculation, files.drafts));
  OUTRIDER_RETURN_IF_ERROR(check_speculation(speculation));
  OUTRIDER_TRY(const KernelTable* kernels, kernels_of(options));
  const int threads = options.threads != 0
                          ? options.threads
                          : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  DraftingParts parts;
  parts.pool = std::make_unique<ThreadPool>(threads, std::vector<int>());
  OUTRIDER_RETURN_IF_ERROR(open_text(parts, file));
  if (find_need(speculation, MethodNeeds::kHead) != nullptr) {
    OUTRIDER_TRY(parts.ends, open_ends(file, options, files.drafts.head_file(), kernels, parts.pool.get()));
  }
  DrafterContext context = context_of(parts, file, options, kernels);
  EngineOptions resolved = options;
  resolved.speculation = speculation;
  resolved.threads = threads;
  OUTRIDER_TRY(context.corpus, open_corpus_of(resolved, *parts.tokenizer));
  context.files = &files.drafts;
  OUTRIDER_TRY(parts.drafter, make_drafter(speculation, context));
  parts.limits = limits_of(speculation);
  parts.context = context.context;
  parts.stop_tokens = file.config.stop_tokens;
  parts.is_auto = speculation.is_auto;
  parts.prefill_chunk = options.prefill_chunk;
  parts.info.model_path = file.path.string();
  parts.info.family = file.config.family;
  parts.info.kernels = kernels->name;
  parts.info.drafter = parts.drafter->traits().name;
  parts.info.threads = threads;
  parts.info.vocab_size = context.vocab_size;
  parts.info.load_ms = now_ms() - files.start_ms;
  return parts;
}

}  // namespace outrider
