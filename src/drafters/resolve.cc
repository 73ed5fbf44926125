// SPDX-License-Identifier: Apache-2.0
#include "drafters/resolve.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "config/methods.h"
#include "draft_heads/dflash_network.h"
#include "draft_heads/medusa.h"
#include "draft_heads/vocabulary/output_rows.h"
#include "draft_heads/vocabulary/token_map.h"
#include "speculation/tree/tree_choices.h"

namespace outrider {
namespace {

Result<std::optional<HeadFile>> open_head_of(const SpeculativeOptions& options) {
  const bool needs_head = method_row(options.decoding_type).needs == MethodNeeds::kHead;
  if (!needs_head || options.speculative_model.empty()) return find_head(options.speculative_model);
  OUTRIDER_TRY(HeadFile head, open_head(options.speculative_model));
  return std::optional<HeadFile>(std::move(head));
}

Status resolve_method(const std::optional<HeadFile>& head, SpeculativeOptions& options) {
  Method method = Method::kDraftTarget;  // that the files of speculative_model are for
  if (head) {
    method = head->method;
  } else {
    OUTRIDER_TRY(method, draft_model_method(options.speculative_model));
  }
  if (options.method_unset) options.decoding_type = method;
  options.method_unset = false;
  if (stands_for(options.decoding_type, method)) options.decoding_type = method;
  if (head && options.decoding_type == Method::kDraftTarget) {
    return head->fail("holds a drafter of the kind " + std::string(method_name(method)) +
                      ", found decoding_type " + std::string(method_name(Method::kDraftTarget)) +
                      "; leave decoding_type out");
  }
  if (options.decoding_type != Method::kAuto) return {};
  options.decoding_type = Method::kCombined;
  options.combine = {Method::kSuffix, Method::kNGram};
  if (!options.speculative_model.empty()) options.combine.push_back(method);
  return {};
}

Status resolve_shape(const std::optional<HeadFile>& head, SpeculativeOptions& options) {
  if (!options.shape_unset) return {};
  options.shape_unset = false;
  take_usual_tree(options, {});
  if (!method_row(options.decoding_type).usual.fills_block || !head) return {};
  OUTRIDER_TRY(const auto places, drafted_places(*head));
  if (places) options.max_draft_len = std::min(*places, kMaxDraftLen);
  return {};
}

Status resolve_choices(const std::optional<HeadFile>& head, SpeculativeOptions& options) {
  TreeOptions& tree = options.tree;
  if (tree.kind != TreeKind::kChoices) return {};
  if (tree.choices.empty() && head && head->method == Method::kMedusa) {
    OUTRIDER_TRY(tree.choices, medusa_tree(*head, static_cast<size_t>(tree.max_total_draft_tokens)));
  }
  if (tree.choices.empty()) tree.choices = published_choices();
  OUTRIDER_RETURN_IF_ERROR(check_tree_choices(tree.choices));
  options.max_draft_len = depth_of(tree.choices);
  return {};
}

}  // namespace

Result<ResolvedSpeculation> resolve(SpeculativeOptions options) {
  OUTRIDER_TRY(std::optional<HeadFile> head, open_head_of(options));
  OUTRIDER_RETURN_IF_ERROR(resolve_method(head, options));
  if (head && options.decoding_type == head->method)
    OUTRIDER_RETURN_IF_ERROR(take_ranking_temperature(head->config.root(), options));
  OUTRIDER_RETURN_IF_ERROR(resolve_shape(head, options));
  OUTRIDER_RETURN_IF_ERROR(resolve_choices(head, options));
  return ResolvedSpeculation{.options = std::move(options), .head = std::move(head)};
}

Status take_vocabulary(std::optional<HeadFile>& head, const ModelFile& target,
                       const SpeculativeOptions& options) {
  const std::filesystem::path& path = options.speculative_token_map;
  if (!path.empty() && options.speculative_model.empty())
    return usage_error(
        "speculative_token_map: expected a speculative_model that drafts its tokens, found none");
  if (!head) return {};  // a draft model reads the map itself
  OUTRIDER_TRY(const std::vector<TokenId> map, read_token_map(path));
  return take_output_rows(*head, target, map);
}

Result<std::optional<JsonFile>> read_draft_config(const std::filesystem::path& model) {
  const std::filesystem::path config = model / "config.json";
  std::error_code ignored;
  if (model.empty() || !std::filesystem::exists(config, ignored)) return std::optional<JsonFile>();
  OUTRIDER_TRY(JsonFile document, JsonFile::read(config));
  return std::optional<JsonFile>(std::move(document));
}

Result<Method> draft_model_method(const std::filesystem::path& model) {
  OUTRIDER_TRY(const auto config, read_draft_config(model));
  return config && config->root().contains(kPardToken) ? Method::kPard : Method::kDraftTarget;
}

Status take_ranking_temperature(const JsonObject& config, SpeculativeOptions& options) {
  if (options.ranking_temperature > 0.0) return {};
  OUTRIDER_TRY(const auto named, config.number("outrider_ranking_temperature"));
  if (named && *named > 0.0) options.ranking_temperature = *named;
  return {};
}

}  // namespace outrider
