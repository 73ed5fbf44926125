// SPDX-License-Identifier: Apache-2.0
#include "drafters/registry.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "config/methods.h"
#include "config/speculative_key_table.h"
#include "drafters/combined/combined.h"
#include "drafters/early_exit/early_exit.h"
#include "drafters/learned/assistant.h"
#include "drafters/learned/dflash.h"
#include "drafters/learned/medusa.h"
#include "drafters/learned/moa.h"
#include "drafters/learned/recurrent.h"
#include "drafters/lookahead/lookahead.h"
#include "drafters/ngram/ngram.h"
#include "drafters/none.h"
#include "drafters/ranked/ranked_drafter.h"
#include "drafters/suffix/suffix.h"
#include "speculation/tree/tree_policy.h"

namespace outrider {
namespace {

Result<std::shared_ptr<Drafter>> use_user_drafter(const SpeculativeOptions& options,
                                                  const DrafterContext& context) {
  if (context.user_drafter != nullptr) return context.user_drafter;
  return usage_error("decoding_type " + std::string(method_name(options.decoding_type)) +
                     " expects a drafter given through the C++, C or Python API, found none");
}

Result<std::shared_ptr<Drafter>> make_combined_drafter(const SpeculativeOptions& options,
                                                       const DrafterContext& context) {
  OUTRIDER_RETURN_IF_ERROR(check_member_count("combine", options.combine.size()));
  CombinedParts parts;
  std::string name;
  for (const Method method : options.combine) {
    if (!method_row(method).shares_trees) {
      return usage_error("combine must name methods that draft, found " + std::string(method_name(method)));
    }
    SpeculativeOptions own = options;
    own.decoding_type = method;
    if (context.files != nullptr) OUTRIDER_RETURN_IF_ERROR(take_method(*context.files, own));
    OUTRIDER_TRY(std::shared_ptr<Drafter> drafter, make_drafter(own, context));
    name += (name.empty() ? "" : "+") + drafter->traits().name;
    parts.drafters.push_back(std::move(drafter));
  }
  return combine_drafters(std::move(name), std::move(parts));
}

DraftLimits limits_of_tree(const SpeculativeOptions& options) {
  return {options.max_draft_len, max_tree_nodes(options)};
}

DraftLimits limits_of_window(const SpeculativeOptions& options) {
  return {lookahead_draft_len(options), lookahead_nodes(options)};
}

Result<int64_t> no_layers(const HeadFile&, const ModelConfig&) { return 0; }

struct Entry {
  Method method;
  DrafterMaker make;
  DraftLimits (*limits)(const SpeculativeOptions&) = limits_of_tree;
  Result<int64_t> (*tail_layers)(const HeadFile&, const ModelConfig&) = no_layers;
};

constexpr std::array kDrafters = {
    Entry{Method::kNone, make_none_drafter, [](const SpeculativeOptions&) { return DraftLimits(); }},
    Entry{Method::kNGram, make_ngram_drafter},
    Entry{Method::kDraftTarget, make_draft_model_drafter},
    Entry{Method::kPard, make_draft_model_drafter},
    Entry{Method::kSpecInfer, make_spec_infer_drafter},
    Entry{Method::kSuffix, make_suffix_drafter},
    Entry{Method::kLookahead, make_lookahead_drafter, limits_of_window},
    Entry{Method::kEarlyExit, make_early_exit_drafter},
    Entry{Method::kMedusa, make_medusa_drafter},
    Entry{Method::kEagle, make_recurrent_drafter},
    Entry{Method::kEagle3, make_recurrent_drafter},
    Entry{Method::kPEagle, make_recurrent_drafter},
    Entry{Method::kMtp, make_recurrent_drafter},
    Entry{Method::kMoa, make_moa_drafter, limits_of_tree, moa_tail_layers},
    Entry{Method::kDFlash, make_dflash_drafter},
    Entry{Method::kDSpark, make_dflash_drafter},
    Entry{Method::kAssistant, make_assistant_drafter},
    Entry{Method::kCombined, make_combined_drafter},
    Entry{Method::kUserProvided, use_user_drafter,
          [](const SpeculativeOptions& options) {
            return DraftLimits{options.max_draft_len, kUserTreeNodes};
          }},
};

const Entry* find_entry(Method method) {
  const auto* const found = std::ranges::find(kDrafters, method, &Entry::method);
  return found == kDrafters.end() ? nullptr : found;
}

}  // namespace

DraftLimits limits_of(const SpeculativeOptions& options) {
  const Entry* entry = find_entry(options.decoding_type);
  DraftLimits limits = (entry == nullptr ? limits_of_tree : entry->limits)(options);
  // Trees of a size of their own come on top of what the other members share.
  for (const MethodRow& row : method_table()) {
    if (!row.has_own_tree || options.decoding_type == row.method || !drafts_with(options, row.method))
      continue;
    const DraftLimits own = find_entry(row.method)->limits(options);
    limits = {std::max(limits.max_draft_len, own.max_draft_len), limits.max_nodes + own.max_nodes};
  }
  return limits;
}

Result<int64_t> tail_layers(const HeadFile& head, const ModelConfig& target) {
  return find_entry(head.method)->tail_layers(head, target);
}

Result<std::shared_ptr<Drafter>> make_drafter(const SpeculativeOptions& options,
                                              const DrafterContext& context) {
  if (options.max_draft_len < 1 || options.max_draft_len > kMaxDraftLen) {
    return usage_error("max_draft_len must be 1 to " + std::to_string(kMaxDraftLen) + ", found " +
                       std::to_string(options.max_draft_len));
  }
  OUTRIDER_RETURN_IF_ERROR(check_method_options(options, options.decoding_type));
  const Entry* entry = find_entry(options.decoding_type);
  if (entry != nullptr) return entry->make(options, context);
  return usage_error("decoding_type " + std::string(method_name(options.decoding_type)) +
                     " stands for others, which are not known yet");
}

}  // namespace outrider
