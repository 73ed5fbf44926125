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

constexpr std::array kMethods = {
#define OUTRIDER_METHOD(value, ...) MethodRow{.method = Method::value, __VA_ARGS__},
#include "outrider/method_rows.inc"
#undef OUTRIDER_METHOD
};

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

bool reads_corpus(const SpeculativeOptions& options) {
  return std::ranges::any_of(
      kMethods, [&](const MethodRow& row) { return row.reads_corpus && drafts_with(options, row.method); });
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
