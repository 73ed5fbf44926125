// SPDX-License-Identifier: Apache-2.0
#include "config/methods.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/message_text.h"
#include "config/option_table.h"
#include "config/option_value.h"

namespace outrider {
namespace {

TEST(Methods, EveryRowIsComplete) {
  for (const MethodRow& row : method_table()) {
    EXPECT_FALSE(row.name.empty());
    EXPECT_FALSE(row.help.empty()) << row.name;
    const bool has_marks = !row.marks.all.empty() || !row.marks.any.empty();
    EXPECT_EQ(has_marks, row.needs == MethodNeeds::kHead) << row.name;
    EXPECT_GE(row.usual.max_draft_len, 0) << row.name;
    EXPECT_LE(row.usual.max_draft_len, kMaxDraftLen) << row.name;
    EXPECT_EQ(&method_row(row.method), &row) << row.name;
  }
}

TEST(Methods, EverySpellingNamesOneMethod) {
  std::set<std::string> spellings;
  for (const MethodRow& row : method_table()) {
    std::vector<std::string_view> names = {row.name};
    for (const std::string_view alias : split(row.aliases, '|')) {
      if (!alias.empty()) names.push_back(alias);
    }
    for (const std::string_view name : names) {
      EXPECT_TRUE(spellings.insert(folded_name(name)).second) << name;
      EXPECT_EQ(find_method(name), row.method) << name;
    }
    EXPECT_EQ(find_method(method_key(row.method)), row.method) << row.name;
  }
  EXPECT_EQ(find_method("ngrm"), std::nullopt);
  EXPECT_EQ(find_method(""), std::nullopt);
}

TEST(Methods, DocumentationListsAll) {
  const std::string text = option_reference();
  for (const MethodRow& row : method_table()) {
    EXPECT_NE(text.find("\n| " + std::string(row.name) + " |"), std::string::npos) << row.name;
    EXPECT_EQ(method_names().find(row.name) != std::string::npos, row.is_named) << row.name;
  }
}

TEST(Methods, HeadsAreRecognisedByTheirTensors) {
  struct Case {
    std::vector<std::string_view> tensors;
    std::optional<Method> method;
  };
  const Case cases[] = {
      {{"0.0.linear.weight", "0.1.weight"}, Method::kMedusa},
      {{"medusa_head.0.0.linear.weight"}, Method::kMedusa},
      {{"fc.weight", "layers.0.self_attn.q_proj.weight"}, Method::kEagle},
      {{"fc.weight", "midlayer.hidden_norm.weight", "midlayer.self_attn.q_proj.weight"}, Method::kEagle3},
      {{"fc.weight", "layers.0.hidden_norm.weight", "layers.0.self_attn.q_proj.weight"}, Method::kEagle3},
      {{"fc.weight", "hidden_norm.weight", "layers.0.self_attn.q_proj.weight"}, Method::kDFlash},
      {{"fc.weight", "layers.0.hidden_norm.weight", "mask_hidden"}, Method::kPEagle},
      {{"fc.weight", "hidden_norm.weight", "markov_head.markov_w1.weight"}, Method::kDSpark},
      {{"pre_projection.weight", "post_projection.weight", "model.norm.weight"}, Method::kAssistant},
      {{"mtp.fc.weight", "mtp.layers.0.self_attn.q_proj.weight"}, Method::kMtp},
      {{"model.layers.61.eh_proj.weight"}, Method::kMtp},
      {{"Ekv2E.weight"}, Method::kMoa},
      {{"self_attention.self_attn.q_proj.weight"}, Method::kMoa},
      {{"fc.weight"}, std::nullopt},
      {{"model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight"}, std::nullopt},
      {{}, std::nullopt},
  };
  for (const Case& one : cases)
    EXPECT_EQ(recognise_head(one.tensors), one.method) << (one.tensors.empty() ? "" : one.tensors.front());
}

constexpr UnsetShape kAllUnset{true, true, true, true};
constexpr UnsetShape kLengthGiven{true, false, true, true};

SpeculativeOptions usual(Method method, const UnsetShape& unset = kAllUnset,
                         SpeculativeOptions options = {}) {
  options.decoding_type = method;
  options.shape_unset = unset;
  take_usual_tree(options);
  return options;
}

TEST(Methods, WhatIsNotGivenIsUsual) {
  EXPECT_EQ(usual(Method::kMedusa).tree.kind, TreeKind::kChoices);
  EXPECT_EQ(usual(Method::kMedusa, kLengthGiven).tree.kind, TreeKind::kChain);
  EXPECT_EQ(usual(Method::kMedusa, {}).tree.kind, TreeKind::kChain);
  EXPECT_EQ(usual(Method::kSpecInfer, kLengthGiven).tree.kind, TreeKind::kStatic);
  EXPECT_EQ(usual(Method::kSpecInfer, kLengthGiven).max_draft_len, 8);  // as many as its expansion
  EXPECT_FALSE(usual(Method::kMedusa).shape_unset.kind);
  EXPECT_EQ(usual(Method::kNGram).max_draft_len, SpeculativeOptions{}.max_draft_len);
  EXPECT_EQ(usual(Method::kAuto).max_draft_len, 8);
  EXPECT_EQ(usual(Method::kAuto).tree.kind, TreeKind::kDynamic);
  EXPECT_EQ(usual(Method::kAuto, kLengthGiven).tree.kind, TreeKind::kChain);
  const SpeculativeOptions moa = usual(Method::kMoa);
  EXPECT_EQ(moa.tree.kind, TreeKind::kDynamic);
  EXPECT_EQ(moa.max_draft_len, 6);
  EXPECT_EQ(moa.tree.dynamic_tree_max_top_k, 8);
  EXPECT_EQ(moa.tree.max_total_draft_tokens, 62);
  SpeculativeOptions small;
  small.tree.kind = TreeKind::kDynamic;
  small.tree.max_total_draft_tokens = 24;
  const SpeculativeOptions given =
      usual(Method::kMoa, {.max_draft_len = true, .dynamic_tree_max_top_k = true}, small);
  EXPECT_EQ(given.tree.max_total_draft_tokens, 24);
  EXPECT_EQ(given.tree.dynamic_tree_max_top_k, 8);
}

TEST(Methods, DraftAloneOrWithOthers) {
  SpeculativeOptions options;
  options.combine = {Method::kNGram};
  EXPECT_FALSE(drafts_with(options, Method::kNGram));
  options.decoding_type = Method::kCombined;
  EXPECT_TRUE(drafts_with(options, Method::kNGram));
  EXPECT_FALSE(drafts_with(options, Method::kSuffix));
}

}  // namespace
}  // namespace outrider
