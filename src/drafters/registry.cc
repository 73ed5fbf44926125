// SPDX-License-Identifier: Apache-2.0
#include "drafters/registry.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "draft_heads/head_file.h"
#include "draft_heads/medusa.h"
#include "drafters/combined/combined.h"
#include "drafters/draft_target/draft_target.h"
#include "drafters/early_exit/early_exit.h"
#include "drafters/learned/dflash.h"
#include "drafters/learned/medusa.h"
#include "drafters/learned/moa.h"
#include "drafters/learned/recurrent.h"
#include "drafters/lookahead/lookahead.h"
#include "drafters/ngram/ngram.h"
#include "drafters/none.h"
#include "drafters/ranking_temperature.h"
#include "drafters/suffix/suffix.h"
#include "speculation/tree/tree_choices.h"
#include "speculation/tree/tree_policy.h"

namespace outrider {
namespace {

using Maker = Result<std::shared_ptr<Drafter>> (*)(const SpeculativeOptions&, const DrafterContext&);

Result<std::shared_ptr<Drafter>> use_user_drafter(const SpeculativeOptions&, const DrafterContext& context) {
  if (context.user_drafter == nullptr) {
    return usage_error("decoding_type UserProvided expects a drafter given through the C++ API, found none");
  }
  return context.user_drafter;
}

struct Entry {
  std::string_view name;
  Maker make;
};

constexpr std::array kDrafters = {
    Entry{"None", make_none_drafter},
    Entry{"NGram", make_ngram_drafter},
    Entry{"DraftTarget", make_draft_target_drafter},
    Entry{"SpecInfer", make_spec_infer_drafter},
    Entry{"Combined", make_combined_drafter},
    Entry{"Suffix", make_suffix_drafter},
    Entry{"Lookahead", make_lookahead_drafter},
    Entry{"EarlyExit", make_early_exit_drafter},
    Entry{"Eagle", make_recurrent_drafter},
    Entry{"Eagle3", make_recurrent_drafter},
    Entry{"MTP", make_recurrent_drafter},
    Entry{"Medusa", make_medusa_drafter},
    Entry{"MoA", make_moa_drafter},
    Entry{"DFlash", make_dflash_drafter},
    Entry{"UserProvided", use_user_drafter},
};

// Of methods whose authors had another than a chain of max_draft_len.
Status take_usual_shape(SpeculativeOptions& options, const std::optional<HeadFile>& head) {
  options.shape_unset = false;
  if (options.decoding_type == "Medusa") options.tree = TreeKind::kChoices;
  if (options.decoding_type == "MoA") {
    options.tree = TreeKind::kDynamic;
    options.dynamic_tree_max_top_k = 8;
    options.max_total_draft_tokens = 62;
    options.max_draft_len = 6;
  }
  if (options.decoding_type == "DFlash" && head) {
    // One pass drafts the whole block.
    OUTRIDER_TRY(const auto block, head->config.root().integer("block_size"));
    if (block) options.max_draft_len = static_cast<int>(std::clamp<int64_t>(*block - 1, 1, 64));
  }
  return {};
}

}  // namespace

Result<SpeculativeOptions> settled(SpeculativeOptions options) {
  std::optional<HeadFile> head;
  if (head_kind_named(options.decoding_type) && !options.speculative_model.empty()) {
    OUTRIDER_TRY(head, open_head(options.speculative_model));
  } else {
    OUTRIDER_TRY(head, find_head(options.speculative_model));
  }
  const std::string method(head ? head_kind_name(head->kind) : "DraftTarget");
  if (options.method_unset) {
    options.decoding_type = method;
    options.method_unset = false;
  }
  if (head && options.decoding_type == "DraftTarget") {
    return head->fail("holds a drafter of the kind " + method +
                      ", found decoding_type DraftTarget; leave decoding_type out");
  }
  if (options.decoding_type == "Auto") {
    options.decoding_type = "Combined";
    options.combine = {"Suffix"};
    if (!options.speculative_model.empty()) options.combine.push_back(method);
  }
  // Of drafters that share a tree each is settled for itself.
  if (head && options.decoding_type == method)
    OUTRIDER_RETURN_IF_ERROR(take_ranking_temperature(head->config.root(), options));
  if (options.shape_unset) OUTRIDER_RETURN_IF_ERROR(take_usual_shape(options, head));
  if (options.tree == TreeKind::kChoices) {
    if (options.medusa_choices.empty() && head && head->kind == HeadKind::kMedusa) {
      OUTRIDER_TRY(options.medusa_choices,
                   medusa_tree(*head, static_cast<size_t>(options.max_total_draft_tokens)));
    }
    if (options.medusa_choices.empty()) options.medusa_choices = published_choices();
    OUTRIDER_RETURN_IF_ERROR(check_tree_choices(options.medusa_choices));
    options.max_draft_len = depth_of(options.medusa_choices);
  }
  return options;
}

DraftLimits limits_of(const SpeculativeOptions& options) {
  constexpr int kUserTreeNodes = 64;  // room to branch
  if (options.decoding_type == "None") return {};
  if (options.decoding_type == "UserProvided") return {options.max_draft_len, kUserTreeNodes};
  const DraftLimits window{lookahead_depth(options), lookahead_nodes(options)};
  if (options.decoding_type == "Lookahead") return window;
  DraftLimits limits{options.max_draft_len, largest_tree(options)};
  const auto& combined = options.combine;
  if (options.decoding_type == "Combined" &&
      std::find(combined.begin(), combined.end(), "Lookahead") != combined.end()) {
    limits.depth = std::max(limits.depth, window.depth);
    limits.nodes += window.nodes;
  }
  return limits;
}

Result<std::shared_ptr<Drafter>> make_drafter(const SpeculativeOptions& options,
                                              const DrafterContext& context) {
  if (options.max_draft_len < 1 || options.max_draft_len > 64) {
    return usage_error("max_draft_len must be 1 to 64, found " + std::to_string(options.max_draft_len));
  }
  std::string known;
  for (const Entry& entry : kDrafters) {
    if (entry.name == options.decoding_type) return entry.make(options, context);
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return usage_error("unknown decoding_type '" + options.decoding_type + "', expected one of " + known);
}

}  // namespace outrider
