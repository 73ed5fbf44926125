// SPDX-License-Identifier: Apache-2.0
// The one table of methods. Command line, documentation, defaults, messages, the recognition of files and the
// comparison of drafters read it; a new method is a row of method_rows.inc, a folder in src/drafters and a
// line in src/drafters/registry.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "outrider/speculative_options.h"

namespace outrider {

constexpr int kMaxDraftLen = 64;    // levels of a drafted tree
constexpr int kMaxMembers = 32;     // drafters that share a tree
constexpr int kUserTreeNodes = 64;  // nodes of a tree that a program's own drafter may grow

// The thing that a method drafts with, beside the target and its text.
enum class MethodNeeds : uint8_t {
  kNothing,
  kDraftModel,   // speculative_model: a smaller model
  kDraftModels,  // speculative_models: several of them
  kHead,         // speculative_model: a network trained for the target
  kMethods,      // other methods
  kUserDrafter,  // EngineOptions::user_drafter
};

// The tree that a method drafts where no key asks for another. Numbers that are 0 come from
// SpeculativeOptions; the others hold for trees of this kind, or of every kind where none is named.
struct UsualTree {
  std::optional<TreeKind> kind = {};
  int max_draft_len = 0;
  int dynamic_tree_max_top_k = 0;
  int max_total_draft_tokens = 0;
  bool fills_block = false;  // max_draft_len: as many levels as the head drafts in one pass
};

// Tensors by which a head's files are recognised; names are separated by '|', and '*' stands for any
// beginning.
struct TensorMarks {
  std::string_view all = {};   // all of them are there
  std::string_view any = {};   // one of them is there, if some are named
  std::string_view none = {};  // none of them is there
};

// The things that a head's tensors show. Names are separated by '|', the first that is there counts; '*'
// stands for any beginning, and a number behind ':' is a dimension, the first where there is none.
struct HeadTraits {
  std::string_view target_hidden_size = {};  // tensors with a dimension of the target's hidden size
  std::string_view target_vocab_size = "*t2d|*embed_tokens.weight";  // the same of its vocabulary
  bool has_own_embedding = false;         // of the name that whole models have for theirs
  bool drafts_with_target_head = false;   // drafts are made by rows of the target's output head,
  std::string_view own_output_head = {};  // unless this tensor is there
  std::string_view weight_files = {};     // further names of the file of weights, separated by '|'
};

struct MethodRow {
  Method method = Method::kNone;
  std::string_view name = {};     // as decoding_type spells it
  std::string_view aliases = {};  // further spellings, separated by '|'; '*' stands for any beginning
  MethodNeeds needs = MethodNeeds::kNothing;
  // Methods that other systems call by this name, separated by '|': the files tell which one is meant.
  std::string_view stands_for = {};
  bool is_named = true;          // options given as text may name it
  bool shares_trees = true;      // it may be one of the methods of `combine`
  bool needs_target = false;     // it drafts by passes of the target; so do all heads
  bool reads_target_kv = false;  // keys and values of all heads of the target
  bool reads_corpus = false;     // it drafts from EngineOptions::corpus
  bool finds_files = false;      // without speculative_model it drafts with what is found for the target
  bool has_own_tree = false;     // its options give the tree's size; max_draft_len and tree do not
  UsualTree usual = {};
  TensorMarks marks = {};
  HeadTraits head = {};
  std::string_view config_mark = {};  // the key of config.json by which a draft model is recognised
  std::string_view help = {};
};

// One row per method, in the order of the enumeration.
std::span<const MethodRow> method_table();
const MethodRow& method_row(Method method);

std::string_view method_name(Method method);  // "DraftTarget", as in statistics
std::string method_key(Method method);        // "draft_target", as on the command line
// The method of that name or alias; letter case, '-' and '_' do not matter.
std::optional<Method> find_method(std::string_view name);
// Whether files of a head for the method `found` may be named as `named`.
bool stands_for(Method named, Method found);
// "None, NGram, ...": the methods that text may name.
std::string method_names();

// Whether a tensor has the name that a mark stands for.
bool is_name_of(std::string_view mark, std::string_view name);
// The method with a head of these tensors.
std::optional<Method> recognise_head(std::span<const std::string_view> tensors);

// The method that drafts with a model in which `has_key` finds the keys of config.json.
Method recognise_draft_model(const std::function<bool(std::string_view)>& has_key);

// Whether `method` drafts, with or without others; whether one does that reads a corpus; the row of a method
// that drafts and needs this, or null.
bool drafts_with(const SpeculativeOptions& options, Method method);
bool reads_corpus(const SpeculativeOptions& options);
const MethodRow* find_need(const SpeculativeOptions& options, MethodNeeds needs);

// Puts the methods that Auto stands for in its place: the methods that draft from the text, and `of_files`,
// the method that the files of speculative_model are for.
void expand_auto(SpeculativeOptions& options, Method of_files);

// The method of commands that examine drafts, where none was asked for.
Method usual_method(bool has_draft_model);

std::string_view tree_kind_name(TreeKind kind);  // "dynamic", as on the command line

// Sets the unset parts of the shape to what is usual for options.decoding_type.
void take_usual_tree(SpeculativeOptions& options);
// A static tree has as many levels as its expansion.
void take_expansion_length(SpeculativeOptions& options);

}  // namespace outrider
