// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/commands/comparison.h"
#include "config/methods.h"
#include "config/speculative_config.h"
#include "open/resolved.h"
#include "speculation/tree/tree_choices.h"

namespace outrider {
namespace {

constexpr int kMaxWidth = 4;
constexpr int kDraftLen = 8;

std::string text_of(const std::vector<std::vector<int>>& choices) {
  std::vector<std::string> nodes;
  for (const auto& choice : choices) nodes.push_back(fmt::format("[{}]", fmt::join(choice, ",")));
  return fmt::format("[{}]", fmt::join(nodes, ","));
}

class Field {
 public:
  explicit Field(NodeBudget budget) : budget_(budget) {}

  // `method` is text as in --speculative; `files` holds paths, which may contain commas.
  Status add(const std::string& drafter, const std::string& method, const SpeculativeOptions& files = {}) {
    const std::string length = fmt::format("max_draft_len={}", budget_.max_draft_len);
    OUTRIDER_RETURN_IF_ERROR(add_shape({drafter, "chain", method + ",tree=chain," + length}, files));
    return add_shape({drafter, "dynamic",
                      fmt::format("{},tree=dynamic,{},dynamic_tree_max_topK={},max_total_draft_tokens={}",
                                  method, length, budget_.width, budget_.nodes)},
                     files);
  }

  // Guesses and n-grams, three tokens long, take about half of the nodes each.
  Status add_lookahead() {
    const int columns = std::clamp((budget_.nodes + 1) / 4, 1, 32);
    return add_shape({std::string(method_name(Method::kLookahead)), "window",
                      fmt::format("{0},max_ngram_size=3,max_window_size={1},max_verification_set_size={1}",
                                  method_key(Method::kLookahead), columns)},
                     {});
  }

  // The tree that the head's own files list, as far as the budget goes.
  Status add_choices(const std::string& drafter, Method method, const SpeculativeOptions& files) {
    SpeculativeOptions options = files;
    options.decoding_type = method;
    options.tree.kind = TreeKind::kChoices;
    options.tree.max_total_draft_tokens = budget_.nodes;
    OUTRIDER_TRY(const DraftFiles opened, open_draft_files(options));
    OUTRIDER_TRY(const SpeculativeOptions resolved, resolve_speculation(std::move(options), opened));
    const auto choices = first_choices(resolved.tree.choices, kDraftLen, static_cast<size_t>(budget_.nodes));
    return add_shape({drafter, "choices", method_key(method) + ",medusa_choices=" + text_of(choices)}, files);
  }

  // Suffix and another method share one tree.
  Status add_beside_suffix(Method method, const std::string& folder = {},
                           const SpeculativeOptions& files = {}) {
    return add(fmt::format("{}+{}{}", method_name(Method::kSuffix), method_name(method), folder),
               fmt::format("combine=[{},{}]", method_key(Method::kSuffix), method_key(method)), files);
  }

  std::vector<Contender> take() { return std::move(contenders_); }

 private:
  struct Shape {
    std::string drafter, tree, speculative;
  };
  Status add_shape(Shape shape, const SpeculativeOptions& files) {
    shape.speculative += ",policy=fixed";  // shapes are compared, not what a policy makes of them
    OUTRIDER_TRY(const SpeculativeConfig config, parse_speculative(shape.speculative));
    SpeculativeOptions options = config.options;
    options.speculative_model = files.speculative_model;
    options.speculative_models = files.speculative_models;
    Contender contender{.drafter = std::move(shape.drafter),
                        .tree = std::move(shape.tree),
                        .speculative = speculative_text(options),
                        .path = files.speculative_model,
                        .options = std::move(options)};
    contenders_.push_back(std::move(contender));
    return {};
  }

  NodeBudget budget_;
  std::vector<Contender> contenders_;
};

}  // namespace

NodeBudget::NodeBudget(int count)
    : nodes(count),
      width(std::min(kMaxWidth, count)),
      max_draft_len(std::clamp(count / kMaxWidth, 1, kDraftLen)) {}

Result<std::vector<Contender>> contenders(const std::vector<FoundDrafter>& found, NodeBudget budget) {
  Field field(budget);
  for (const MethodRow& row : method_table()) {
    if (row.needs != MethodNeeds::kNothing || !row.shares_trees) continue;
    OUTRIDER_RETURN_IF_ERROR(row.has_own_tree ? field.add_lookahead()
                                              : field.add(std::string(row.name), method_key(row.method)));
  }
  OUTRIDER_RETURN_IF_ERROR(field.add_beside_suffix(Method::kNGram));
  std::vector<std::filesystem::path> drafts;
  for (const FoundDrafter& drafter : found) {
    SpeculativeOptions files;
    files.speculative_model = drafter.path;
    const std::string folder = " " + drafter.path.filename().string();
    const std::string name = std::string(method_name(drafter.method)) + folder;
    OUTRIDER_RETURN_IF_ERROR(field.add(name, method_key(drafter.method), files));
    if (method_row(drafter.method).usual.kind == TreeKind::kChoices)
      OUTRIDER_RETURN_IF_ERROR(field.add_choices(name, drafter.method, files));
    OUTRIDER_RETURN_IF_ERROR(field.add_beside_suffix(drafter.method, folder, files));
    if (drafter.method == Method::kDraftTarget) drafts.push_back(drafter.path);
  }
  if (drafts.size() > 1) {
    SpeculativeOptions files;
    files.speculative_models = drafts;
    OUTRIDER_RETURN_IF_ERROR(
        field.add(fmt::format("{} {} drafts", method_name(Method::kSpecInfer), drafts.size()),
                  method_key(Method::kSpecInfer), files));
  }
  return field.take();
}

}  // namespace outrider
