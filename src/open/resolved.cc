// SPDX-License-Identifier: Apache-2.0
#include "open/resolved.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "config/methods.h"
#include "draft_heads/dflash_network.h"
#include "draft_heads/medusa.h"
#include "models/team/rank_worker.h"
#include "open/default_context.h"
#include "open/device_choice.h"
#include "platform/cpu_topology.h"
#include "platform/machine_memory.h"
#include "speculation/tree/tree_choices.h"

namespace outrider {
namespace {

Status take_shape(const DraftFiles& files, SpeculativeOptions& options) {
  const bool is_usual = options.shape_unset.kind && options.shape_unset.max_draft_len;
  take_usual_tree(options);
  if (!is_usual || !method_row(options.decoding_type).usual.fills_block || !files.head) return {};
  OUTRIDER_TRY(const auto places, drafted_places(*files.head));
  if (places) options.max_draft_len = std::min(*places, kMaxDraftLen);
  return {};
}

// The best nodes by the accuracies of the options, which they replace; none: there are no accuracies.
TreeChoices take_accuracies(SpeculativeOptions& options) {
  std::vector<std::vector<double>> levels = std::exchange(options.tree.accuracies, {});
  if (levels.empty()) return {};
  levels.resize(static_cast<size_t>(options.max_draft_len), std::vector<double>(levels.back()));
  return best_choices(levels, static_cast<size_t>(options.tree.max_total_draft_tokens));
}

Status take_choices(const DraftFiles& files, SpeculativeOptions& options) {
  TreeOptions& tree = options.tree;
  if (tree.kind != TreeKind::kChoices) return {};
  if (tree.choices.empty()) tree.choices = take_accuracies(options);
  if (tree.choices.empty() && files.head && method_row(files.head->method).usual.kind == tree.kind) {
    OUTRIDER_TRY(tree.choices, medusa_tree(*files.head, static_cast<size_t>(tree.max_total_draft_tokens)));
  }
  if (tree.choices.empty()) tree.choices = published_choices();
  OUTRIDER_RETURN_IF_ERROR(check_tree_choices(tree.choices));
  options.max_draft_len = depth_of(tree.choices);
  return {};
}

Status check_range(std::string_view name, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return usage_error(std::string(name) + " must be " + std::to_string(low) + " to " + std::to_string(high) +
                     ", found " + std::to_string(value));
}

bool has_draft_model(const SpeculativeOptions& options) {
  return find_need(options, MethodNeeds::kDraftModel) || find_need(options, MethodNeeds::kDraftModels);
}

// Errors: no ranks for what is asked of them; methods that do not draft with a model.
Status check_draft_ranks(const EngineOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(check_range("draft ranks", options.draft_ranks, 0, 256));
  if (options.ranks && options.ranks->size() != all_rank_count(options)) {
    return usage_error("expected a job of " + std::to_string(all_rank_count(options)) +
                       " ranks, tensor parallel times pipeline parallel and the draft ranks, found " +
                       std::to_string(options.ranks->size()) + "; start it with mpirun -n " +
                       std::to_string(all_rank_count(options)));
  }
  const Method method = options.speculation.decoding_type;
  if (options.draft_ranks == 0 || method == Method::kNone || has_draft_model(options.speculation)) return {};
  return usage_error(
      "--draft-ranks expects a method that drafts with a draft model, such as draft_target or " +
      std::string("spec_infer, found ") + std::string(method_name(method)) + "; leave out --draft-ranks");
}

// Error: the target is divided among ranks, and something else needs all of it here.
Status check_ranks(const EngineOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(check_range("tensor parallel", options.tensor_parallel, 1, 256));
  OUTRIDER_RETURN_IF_ERROR(check_range("pipeline parallel", options.pipeline_parallel, 1, 256));
  OUTRIDER_RETURN_IF_ERROR(check_draft_ranks(options));
  if (target_rank_count(options) == 1) return {};
  if (!options.prompt_cache.empty()) {
    return usage_error(
        "expected --prompt-cache, or a target divided by --tensor-parallel or --pipeline-parallel, found "
        "both");
  }
  if (options.memory_limit > 0) {
    return usage_error(
        "expected --memory, or a target divided by --tensor-parallel or --pipeline-parallel, found both");
  }
  for (const MethodRow& row : method_table()) {
    if (!row.reads_target_kv || !drafts_with(options.speculation, row.method)) continue;
    return usage_error(
        std::string(row.name) +
        " reads keys and values of all heads of the target, found one divided among ranks; choose "
        "another method, or leave out --tensor-parallel and --pipeline-parallel");
  }
  return {};
}

// Ranks that are threads share the threads asked for.
void take_threads(EngineOptions& options) {
  if (options.ranks && options.threads == 0) options.threads = threads_of_rank(*options.ranks);
  if (options.threads == 0) options.threads = best_worker_count(places_of(allowed_cpus()));
  if (!options.ranks) options.threads = std::max(1, options.threads / all_rank_count(options));
}

int64_t unasked_context(const EngineOptions& options, const OpenedFiles& files) {
  const bool reads_layers = options.memory_limit > 0;
  std::optional<int64_t> free_bytes;
  if (options.device == ComputeDevice::kCpu && !reads_layers) free_bytes = available_memory();
  return default_context(options, files.target, files.drafts, free_bytes);
}

Status take_limits(EngineOptions& options, const OpenedFiles& files) {
  OUTRIDER_RETURN_IF_ERROR(check_range("threads", options.threads, 0, 1024));
  OUTRIDER_RETURN_IF_ERROR(check_range("page size", options.page_size, 1, 4096));
  OUTRIDER_RETURN_IF_ERROR(check_range("max batch", options.max_batch, 1, 4096));
  OUTRIDER_RETURN_IF_ERROR(check_range("prefill chunk", options.prefill_chunk, 1, 8192));
  if (options.max_batch_rows != 0)
    OUTRIDER_RETURN_IF_ERROR(check_range("max batch rows", options.max_batch_rows, options.max_batch, 65536));
  OUTRIDER_RETURN_IF_ERROR(check_range("max waiting", options.max_waiting, 0, 1 << 30));
  OUTRIDER_RETURN_IF_ERROR(check_range("background beside", options.background_beside, 0, 4096));
  OUTRIDER_RETURN_IF_ERROR(check_range("offered nodes", options.offered_nodes, 0, 1024));
  OUTRIDER_RETURN_IF_ERROR(check_range("context", options.context, 0, int64_t{1} << 24));
  take_threads(options);
  if (options.context == 0) options.context = unasked_context(options, files);
  const int64_t trained = files.target.config.max_context;
  if (options.context > trained) {
    return input_error("context of " + std::to_string(options.context) +
                       " tokens asked for, but the model was made for " + std::to_string(trained) +
                       "; lower --ctx");
  }
  return {};
}

Status check_acceptance(const EngineOptions& options) {
  if (!options.speculation.relaxed.for_thinking || options.acceptance == AcceptanceRule::kCoupled ||
      options.acceptance == AcceptanceRule::kRelaxed) {
    return {};
  }
  return usage_error(
      "use_relaxed_acceptance_for_thinking goes with coupled or relaxed acceptance, found another rule");
}

}  // namespace

int target_rank_count(const EngineOptions& options) {
  return options.tensor_parallel * options.pipeline_parallel;
}

int all_rank_count(const EngineOptions& options) { return target_rank_count(options) + options.draft_ranks; }

Result<SpeculativeOptions> resolve_speculation(SpeculativeOptions options, const DraftFiles& files) {
  OUTRIDER_RETURN_IF_ERROR(take_method(files, options));
  OUTRIDER_RETURN_IF_ERROR(take_shape(files, options));
  if (method_row(options.decoding_type).finds_files) expand_auto(options, method_of(files, options));
  OUTRIDER_RETURN_IF_ERROR(take_choices(files, options));
  return options;
}

Result<ResolvedOptions> resolve_options(const OpenedFiles& files) {
  ResolvedOptions resolved{.engine = files.names.options};
  EngineOptions& options = resolved.engine;
  OUTRIDER_RETURN_IF_ERROR(check_acceptance(options));
  OUTRIDER_TRY(options.speculation, resolve_speculation(options.speculation, files.drafts));
  if (options.gpu_layers == 0) options.device = ComputeDevice::kCpu;
  take_device(options, files.target);
  OUTRIDER_RETURN_IF_ERROR(check_ranks(options));
  const int given_threads = options.threads;
  OUTRIDER_RETURN_IF_ERROR(take_limits(options, files));
  const std::optional<int64_t> device_bytes = free_device_bytes(options.device);
  OUTRIDER_RETURN_IF_ERROR(take_placement(options, files.target, files.drafts, device_bytes));
  resolved.rank_threads = options.ranks ? given_threads : options.threads;
  return resolved;
}

}  // namespace outrider
