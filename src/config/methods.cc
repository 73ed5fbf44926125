// SPDX-License-Identifier: Apache-2.0
#include "config/methods.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "config/message_text.h"
#include "config/option_value.h"

namespace outrider {
namespace {

// A norm of the target's features; EAGLE-3 and DFlash differ from EAGLE and from each other by its place.
constexpr std::string_view kLayerNorms = "midlayer.hidden_norm.weight|layers.0.hidden_norm.weight";
constexpr std::string_view kNotDFlash =
    "midlayer.hidden_norm.weight|layers.0.hidden_norm.weight|markov_head.markov_w1.weight";
constexpr std::string_view kAnyHiddenNorm =
    "midlayer.hidden_norm.weight|layers.0.hidden_norm.weight|hidden_norm.weight";

// One method is a few lines, so that the table can be read as one.
// clang-format off
constexpr std::array kMethods = {
    MethodRow{.method = Method::kNone, .name = "None", .shares_trees = false,
     .help = "plain decoding"},
    MethodRow{.method = Method::kNGram, .name = "NGram",
              .aliases = "ngram_gpu|ngram-simple|ngram-map-k|ngram-map-k4v|ngram-mod|ngram-cache",
     .help = "tokens that followed the last ones where these occurred before (prompt lookup)"},
    MethodRow{.method = Method::kDraftTarget, .name = "DraftTarget", .aliases = "draft_model|draft|draft-simple|standalone",
     .needs = MethodNeeds::kDraftModel, .stands_for = "PARD",
     .help = "a smaller model (arXiv 2211.17192)"},
    MethodRow{.method = Method::kPard, .name = "PARD", .needs = MethodNeeds::kDraftModel,
     .usual = {.max_draft_len = 8}, .config_mark = "pard_token",
     .help = "a smaller model that predicts all tokens of a draft in one pass (arXiv 2504.18583)"},
    MethodRow{.method = Method::kSpecInfer, .name = "SpecInfer", .needs = MethodNeeds::kDraftModels,
     .usual = {.kind = TreeKind::kStatic},
     .help = "several draft models that share one tree (arXiv 2305.09781)"},
    MethodRow{.method = Method::kSuffix, .name = "Suffix", .aliases = "SA",
     .help = "tokens that most often followed the longest suffixes seen before (arXiv 2411.04975)"},
    MethodRow{.method = Method::kLookahead, .name = "Lookahead", .needs_target = true, .has_own_tree = true,
     .help = "n-grams out of a window of guesses that every pass computes along (arXiv 2402.02057)"},
    MethodRow{.method = Method::kEarlyExit, .name = "EarlyExit", .needs_target = true,
     .help = "the target's own first layers, or all but some (arXiv 2404.16710, 2309.08168)"},
    MethodRow{.method = Method::kMedusa, .name = "Medusa", .needs = MethodNeeds::kHead,
     .usual = {.kind = TreeKind::kChoices},
     .marks = {.any = "0.0.linear.weight|medusa_head.0.0.linear.weight"},
     .head = {.target_hidden_size = "*0.0.linear.weight:1",
              .target_vocab_size = "*0.1.weight|*0.2.weight|*0.3.weight|*0.4.weight|*0.5.weight",
              .weight_files = "medusa_lm_head.safetensors|medusa_lm_head.pt"},
     .help = "one output head per level on the target's last state (arXiv 2401.10774)"},
    MethodRow{.method = Method::kEagle, .name = "Eagle", .needs = MethodNeeds::kHead,
              .stands_for = "Eagle3|PEagle|MTP",
     .marks = {.all = "fc.weight|layers.0.self_attn.q_proj.weight", .none = kAnyHiddenNorm},
     .head = {.target_hidden_size = "*fc.weight", .drafts_with_target_head = true},
     .help = "a layer over the target's last features (arXiv 2401.15077)"},
    MethodRow{.method = Method::kEagle3, .name = "Eagle3", .aliases = "draft-eagle3",
              .needs = MethodNeeds::kHead, .stands_for = "PEagle",
     .marks = {.all = "fc.weight", .any = kLayerNorms, .none = "mask_hidden"},
     .head = {.target_hidden_size = "*fc.weight"},
     .help = "a layer over features of several of the target's layers (arXiv 2503.01840)"},
    MethodRow{.method = Method::kPEagle, .name = "PEagle", .needs = MethodNeeds::kHead,
     .usual = {.max_draft_len = 8},
     .marks = {.all = "fc.weight|mask_hidden", .any = kLayerNorms},
     .head = {.target_hidden_size = "*fc.weight"},
     .help = "EAGLE-3 that predicts all levels in one pass (P-EAGLE)"},
    MethodRow{.method = Method::kMtp, .name = "MTP", .aliases = "nextn|*mtp",
              .needs = MethodNeeds::kHead,
     .marks = {.any = "mtp.fc.weight|*.eh_proj.weight"},
     .head = {.target_hidden_size = "*hnorm.weight|*pre_fc_norm_hidden.weight", .drafts_with_target_head = true},
     .help = "multi-token prediction modules, which many models bring along (arXiv 2412.19437)"},
    MethodRow{.method = Method::kMoa, .name = "MoA", .needs = MethodNeeds::kHead, .reads_target_kv = true,
     .usual = {.kind = TreeKind::kDynamic, .max_draft_len = 6, .dynamic_tree_max_top_k = 8,
               .max_total_draft_tokens = 62},
     .marks = {.any = "Ekv2E.weight|self_attention.self_attn.q_proj.weight"},
     .head = {.target_hidden_size = "self_attention.input_layernorm.weight", .drafts_with_target_head = true},
     .help = "a mixture of attentions over all layers of the target's cache (arXiv 2410.03804)"},
    MethodRow{.method = Method::kDFlash, .name = "DFlash", .aliases = "draft-dflash|dflash2",
              .needs = MethodNeeds::kHead,
     .usual = {.fills_block = true},
     .marks = {.all = "fc.weight|hidden_norm.weight", .none = kNotDFlash},
     .head = {.target_hidden_size = "*hidden_norm.weight", .drafts_with_target_head = true,
              .own_output_head = "lm_head.weight"},
     .help = "a block of tokens in one pass (arXiv 2602.06036)"},
    MethodRow{.method = Method::kDSpark, .name = "DSpark", .aliases = "draft-dspark",
              .needs = MethodNeeds::kHead,
     .usual = {.fills_block = true},
     .marks = {.all = "fc.weight|hidden_norm.weight|markov_head.markov_w1.weight", .none = kLayerNorms},
     .head = {.target_hidden_size = "*hidden_norm.weight"},
     .help = "DFlash with tokens that depend on the one before them (arXiv 2607.05147)"},
    MethodRow{.method = Method::kAssistant, .name = "Assistant", .aliases = "gemma4_assistant",
              .needs = MethodNeeds::kHead, .reads_target_kv = true,
     .marks = {.all = "pre_projection.weight|post_projection.weight"},
     .head = {.target_hidden_size = "*post_projection.weight", .has_own_embedding = true},
     .help = "the drafter of Gemma 4, which reads the target's keys and values"},
    MethodRow{.method = Method::kCombined, .name = "Combined", .needs = MethodNeeds::kMethods,
     .shares_trees = false,
     .help = "the methods of `combine`, which share one tree"},
    MethodRow{.method = Method::kAuto, .name = "Auto", .needs = MethodNeeds::kMethods, .shares_trees = false,
              .finds_files = true,
     .usual = {.kind = TreeKind::kDynamic, .max_draft_len = 8, .dynamic_tree_max_top_k = 4,
               .max_total_draft_tokens = 24},
     .help = "Suffix, NGram and what speculative_model holds share a tree; without speculative_model the "
             "drafter that is found for the target"},
    MethodRow{.method = Method::kUserProvided, .name = "UserProvided", .needs = MethodNeeds::kUserDrafter,
     .is_named = false,
     .help = "the drafter that a program brings along, in C++, C or Python"},
};
// clang-format on

constexpr bool is_in_order() {
  for (size_t i = 0; i < kMethods.size(); ++i) {
    if (kMethods[i].method != static_cast<Method>(i)) return false;
  }
  return kMethods.back().method == Method::kUserProvided;
}
static_assert(is_in_order(), "the table has one row per method, in the order of the enumeration");

bool bears(const TensorMarks& marks, std::span<const std::string_view> tensors) {
  const auto found = [&](std::string_view mark) {
    return std::ranges::any_of(tensors, [&](std::string_view name) { return is_name_of(mark, name); });
  };
  return (marks.all.empty() || std::ranges::all_of(split(marks.all, '|'), found)) &&
         (marks.any.empty() || std::ranges::any_of(split(marks.any, '|'), found)) &&
         (marks.none.empty() || std::ranges::none_of(split(marks.none, '|'), found));
}

void take_number(int& value, int usual, bool is_unset) {
  if (usual > 0 && is_unset) value = usual;
}

}  // namespace

std::span<const MethodRow> method_table() { return kMethods; }

const MethodRow& method_row(Method method) { return kMethods[static_cast<size_t>(method)]; }

std::string_view method_name(Method method) { return method_row(method).name; }

std::string method_key(Method method) { return snake_name(method_name(method)); }

std::optional<Method> find_method(std::string_view name) {
  const std::string wanted = folded_name(name);
  for (const MethodRow& row : kMethods) {
    if (folded_name(row.name) == wanted) return row.method;
    for (const std::string_view alias : split(row.aliases, '|')) {
      if (alias.starts_with('*') ? wanted.ends_with(alias.substr(1))
                                 : folded_name(alias) == wanted && !alias.empty())
        return row.method;
    }
  }
  return std::nullopt;
}

bool stands_for(Method named, Method found) {
  const std::vector<std::string_view> others = split(method_row(named).stands_for, '|');
  return named == found || std::ranges::find(others, method_name(found)) != others.end();
}

std::string method_names() {
  std::vector<std::string_view> names;
  for (const MethodRow& row : kMethods) {
    if (row.is_named) names.push_back(row.name);
  }
  return joined(names);
}

bool is_name_of(std::string_view mark, std::string_view name) {
  return mark.starts_with('*') ? name.ends_with(mark.substr(1)) : name == mark;
}

std::optional<Method> recognise_head(std::span<const std::string_view> tensors) {
  for (const MethodRow& row : kMethods) {
    if (row.needs == MethodNeeds::kHead && bears(row.marks, tensors)) return row.method;
  }
  return std::nullopt;
}

Method recognise_draft_model(const std::function<bool(std::string_view)>& has_key) {
  const MethodRow* unmarked = nullptr;
  for (const MethodRow& row : kMethods) {
    if (row.needs != MethodNeeds::kDraftModel) continue;
    if (row.config_mark.empty()) {
      unmarked = &row;
    } else if (has_key(row.config_mark)) {
      return row.method;
    }
  }
  return unmarked->method;
}

const MethodRow* find_need(const SpeculativeOptions& options, MethodNeeds needs) {
  const auto* const found = std::ranges::find_if(
      kMethods, [&](const MethodRow& row) { return row.needs == needs && drafts_with(options, row.method); });
  return found == kMethods.end() ? nullptr : found;
}

void expand_auto(SpeculativeOptions& options, Method of_files) {
  options.decoding_type = Method::kCombined;
  options.combine = {Method::kSuffix, Method::kNGram};
  if (!options.speculative_model.empty()) options.combine.push_back(of_files);
}

Method usual_method(bool has_draft_model) { return has_draft_model ? Method::kDraftTarget : Method::kNGram; }

bool drafts_with(const SpeculativeOptions& options, Method method) {
  return options.decoding_type == method ||
         (options.decoding_type == Method::kCombined &&
          std::ranges::find(options.combine, method) != options.combine.end());
}

std::string_view tree_kind_name(TreeKind kind) {
  switch (kind) {
    case TreeKind::kChain:
      return "chain";
    case TreeKind::kStatic:
      return "static";
    case TreeKind::kDynamic:
      return "dynamic";
    case TreeKind::kChoices:
      return "choices";
  }
  return "";
}

void take_usual_tree(SpeculativeOptions& options) {
  const UsualTree& usual = method_row(options.decoding_type).usual;
  const UnsetShape unset = std::exchange(options.shape_unset, {});
  // A length asks for a chain, except that a static tree is as deep as its expansion anyway.
  const bool asks_for_chain = !unset.max_draft_len && usual.kind != TreeKind::kStatic;
  if (usual.kind && unset.kind && !asks_for_chain) {
    options.tree.kind = *usual.kind;
    take_expansion_length(options);
  }
  if (usual.kind && options.tree.kind != *usual.kind) return;
  take_number(options.max_draft_len, usual.max_draft_len, unset.max_draft_len);
  take_number(options.tree.dynamic_tree_max_top_k, usual.dynamic_tree_max_top_k,
              unset.dynamic_tree_max_top_k);
  take_number(options.tree.max_total_draft_tokens, usual.max_total_draft_tokens,
              unset.max_total_draft_tokens);
}

void take_expansion_length(SpeculativeOptions& options) {
  const TreeOptions& tree = options.tree;
  if (tree.kind == TreeKind::kStatic && !tree.expansion.empty())
    options.max_draft_len = std::min(static_cast<int>(tree.expansion.size()), kMaxDraftLen);
}

}  // namespace outrider
