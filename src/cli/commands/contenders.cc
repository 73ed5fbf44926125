// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/commands/comparison.h"
#include "config/message_text.h"
#include "config/speculative_config.h"
#include "drafters/registry.h"
#include "speculation/tree/tree_choices.h"

namespace outrider {
namespace {

constexpr int kWidest = 4;
constexpr int kDeepest = 8;

std::string text_of(const std::vector<std::vector<int>>& choices) {
  std::vector<std::string> nodes;
  for (const auto& choice : choices) nodes.push_back(fmt::format("[{}]", fmt::join(choice, ",")));
  return fmt::format("[{}]", fmt::join(nodes, ","));
}

class Field {
 public:
  explicit Field(NodeBudget budget) : budget_(budget) {}

  // `method` as in --speculative; paths may hold commas, so that they are set aside.
  Status add(const std::string& drafter, const std::string& method, const SpeculativeOptions& files = {}) {
    const std::string depth = fmt::format("max_draft_len={}", budget_.levels);
    OUTRIDER_RETURN_IF_ERROR(add_shape({drafter, "chain", method + ",tree=chain," + depth}, files));
    return add_shape({drafter, "dynamic",
                      fmt::format("{},tree=dynamic,{},dynamic_tree_max_topK={},max_total_draft_tokens={}",
                                  method, depth, budget_.width, budget_.nodes)},
                     files);
  }

  // Guesses and n-grams, three tokens long, take about half of the nodes each.
  Status add_lookahead() {
    const int columns = std::clamp((budget_.nodes + 1) / 4, 1, 32);
    return add_shape(
        {"Lookahead", "window",
         fmt::format("lookahead,max_ngram_size=3,max_window_size={0},max_verification_set_size={0}",
                     columns)},
        {});
  }

  // Medusa's own tree, as far as the budget goes.
  Status add_choices(const std::string& drafter, const SpeculativeOptions& files) {
    SpeculativeOptions options = files;
    options.decoding_type = "Medusa";
    options.tree = TreeKind::kChoices;
    options.max_total_draft_tokens = budget_.nodes;
    OUTRIDER_TRY(options, settled(std::move(options)));
    options.medusa_choices =
        first_choices(options.medusa_choices, kDeepest, static_cast<size_t>(budget_.nodes));
    return add_shape({drafter, "choices", "medusa,medusa_choices=" + text_of(options.medusa_choices)}, files);
  }

  std::vector<Contender> take() { return std::move(contenders_); }

 private:
  struct Shape {
    std::string drafter, tree, speculative;
  };
  Status add_shape(Shape shape, const SpeculativeOptions& files) {
    OUTRIDER_TRY(const SpeculativeConfig config, parse_speculative(shape.speculative));
    Contender contender{.drafter = std::move(shape.drafter),
                        .tree = std::move(shape.tree),
                        .speculative = std::move(shape.speculative),
                        .path = files.speculative_model,
                        .options = config.options};
    contender.options.speculative_model = files.speculative_model;
    contender.options.speculative_models = files.speculative_models;
    if (!files.speculative_model.empty())
      contender.speculative += ",speculative_model=" + files.speculative_model.string();
    for (const auto& path : files.speculative_models) {
      contender.speculative +=
          (&path == &files.speculative_models.front() ? ",speculative_models=[" : ",") + path.string();
    }
    if (!files.speculative_models.empty()) contender.speculative += "]";
    contenders_.push_back(std::move(contender));
    return {};
  }

  NodeBudget budget_;
  std::vector<Contender> contenders_;
};

}  // namespace

NodeBudget::NodeBudget(int count)
    : nodes(count), width(std::min(kWidest, count)), levels(std::clamp(count / kWidest, 1, kDeepest)) {}

Result<std::vector<Contender>> contenders(const std::vector<FoundDrafter>& found, NodeBudget budget) {
  Field field(budget);
  OUTRIDER_RETURN_IF_ERROR(field.add("NGram", "ngram"));
  OUTRIDER_RETURN_IF_ERROR(field.add("Suffix", "suffix"));
  OUTRIDER_RETURN_IF_ERROR(field.add_lookahead());
  OUTRIDER_RETURN_IF_ERROR(field.add("EarlyExit", "early_exit"));
  OUTRIDER_RETURN_IF_ERROR(field.add("Suffix+NGram", "combine=[suffix,ngram]"));
  std::vector<std::filesystem::path> drafts;
  for (const FoundDrafter& drafter : found) {
    SpeculativeOptions files;
    files.speculative_model = drafter.path;
    const std::string method(drafter.kind ? head_kind_name(*drafter.kind) : "DraftTarget");
    const std::string name = drafter.path.filename().string();
    OUTRIDER_RETURN_IF_ERROR(field.add(method + " " + name, snake_name(method), files));
    if (drafter.kind == HeadKind::kMedusa)
      OUTRIDER_RETURN_IF_ERROR(field.add_choices(method + " " + name, files));
    OUTRIDER_RETURN_IF_ERROR(field.add("Suffix+" + method + " " + name,
                                       fmt::format("combine=[suffix,{}]", snake_name(method)), files));
    if (!drafter.kind) drafts.push_back(drafter.path);
  }
  if (drafts.size() > 1) {
    SpeculativeOptions files;
    files.speculative_models = drafts;
    OUTRIDER_RETURN_IF_ERROR(
        field.add(fmt::format("SpecInfer {} drafts", drafts.size()), "spec_infer", files));
  }
  return field.take();
}

}  // namespace outrider
