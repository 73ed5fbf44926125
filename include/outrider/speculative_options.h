// SPDX-License-Identifier: Apache-2.0
// How an engine speculates. Names and meaning follow TensorRT-LLM's speculative_config, where it has them;
// docs/reference/options.md lists the methods and all keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "outrider/token.h"

namespace outrider {

// Where drafts come from. The rows say of each method what it is called and what it needs.
enum class Method : uint8_t {
#define OUTRIDER_METHOD(value, ...) value,
#include "outrider/method_rows.inc"
#undef OUTRIDER_METHOD
};

// Shape of drafted trees.
enum class TreeKind : uint8_t {
  kChain,    // one node per level
  kStatic,   // SpecInfer's expansion: every node of level i gets expansion[i] children (2305.09781)
  kDynamic,  // EAGLE-2's: the likeliest paths, whatever their shape (2406.16858)
  kChoices,  // Medusa's: nodes listed by the ranks on their paths (2401.10774)
};

// How a drafter with probabilities picks the children of a node.
enum class ChildrenChoice : uint8_t {
  kSampled,      // drawn without replacement; under the coupled rule with the target's own noise
  kTop,          // the likeliest
  kIndependent,  // drawn with replacement
};

enum class LengthSchedule : uint8_t {
  kConstant,   // max_draft_len levels, always
  kHeuristic,  // two more after a draft accepted whole, else one less (Hugging Face's)
};

// The quantity that the relaxed rule compares with its delta.
enum class RelaxedSpace : uint8_t { kProbability, kLogProbability };

// How a draft model with another vocabulary drafts for a target.
enum class VocabularyMatch : uint8_t {
  kAuto,     // kStrings for greedy requests, else kTokens
  kTokens,   // it proposes only tokens that the target has as well (2502.05202, TLI)
  kStrings,  // its likeliest text, in tokens of the target (2502.05202, SLEM)
};

struct TreeOptions {
  TreeKind kind = TreeKind::kChain;
  std::vector<int> expansion = {1, 1, 3, 1, 1, 1, 1, 1};  // kStatic: children per node, by level
  int dynamic_tree_max_top_k = 4;                         // kDynamic: children asked of a node
  int max_total_draft_tokens = 16;                        // kDynamic: nodes of the tree
  std::vector<std::vector<int>> choices;  // kChoices: by node, the rank of each token on its path; empty:
                                          // the head's own, or the published ones
  // kChoices without choices: by level, how often the token of each rank is right. The last list also holds
  // for the levels below it, and the nodes with the largest products are the tree.
  std::vector<std::vector<double>> accuracies;
  ChildrenChoice children = ChildrenChoice::kSampled;
};

// Drafting stops early after a token that fails one of these tests; 0 switches a test off.
struct StopOptions {
  double assistant_confidence_threshold = 0.0;  // least probability of the token (Hugging Face's)
  double entropy_threshold = 0.0;  // greatest sqrt(0.15 * entropy) of the token's distribution (SVIP)
};

struct NGramOptions {
  int max_matching_ngram_size = 2;  // longest pattern looked up, in tokens
  bool is_keep_all = true;          // keep every continuation of a pattern, else only the longest newest one
  bool is_use_oldest = true;        // propose the oldest continuation kept, else the newest
  bool is_public_pool = false;      // one pool for all sequences (leaks text between them), else one each
  int64_t max_pool_patterns = 1 << 20;  // patterns kept; the oldest leave first
};

// The names are ArcticInference's without their prefix.
struct SuffixOptions {
  int max_tree_depth = 64;          // tokens of the longest suffix kept
  int64_t max_cached_requests = 0;  // finished requests in the tree all share (leaks text); 0: none
  double max_spec_factor = 1.0;     // greatest number of drafted tokens per token matched
  double min_token_prob = 0.1;      // least probability of a drafted path
};

struct LookaheadOptions {
  int max_window_size = 4;            // W: columns of the window
  int max_ngram_size = 3;             // N: tokens of an n-gram, its key included
  int max_verification_set_size = 4;  // G: n-grams verified per step
};

struct EarlyExitOptions {
  int exit_layer = 0;                      // draft with so many first layers; 0: a third of them
  std::vector<int> skip_attention_layers;  // draft with all layers but these parts (Draft & Verify)
  std::vector<int> skip_mlp_layers;
};

// A row of a schedule by batch size.
struct BatchDraftLen {
  int sequences = 1;      // the row holds from so many sequences in a batch on, up to the next row
  int max_draft_len = 0;  // 0: nothing is drafted
};

// AcceptanceRule::kTypical: the target's probability of a token must exceed
// min(epsilon, delta * exp(-entropy)).
struct TypicalOptions {
  double epsilon = 0.09;
  double delta = 0.3;
};

// AcceptanceRule::kRelaxed: a token passes if it is among the target's top k and within delta of the first.
struct RelaxedOptions {
  bool for_thinking = false;  // asks for the rule: use_relaxed_acceptance_for_thinking
  int top_k = 1;
  double delta = 0.0;
  RelaxedSpace space = RelaxedSpace::kLogProbability;
  TokenId begin_thinking_token = -1;  // -1: the token of the vocabulary that is spelled "<think>"
  TokenId end_thinking_token = -1;    // -1: likewise "</think>"
};

// Parts of a tree's shape that nobody asked for: the engine takes what is usual for the method.
struct UnsetShape {
  bool kind = false;
  bool max_draft_len = false;
  bool dynamic_tree_max_top_k = false;
  bool max_total_draft_tokens = false;
};

struct SpeculativeOptions {
  Method decoding_type = Method::kNone;
  int max_draft_len = 4;  // levels of the drafted tree, 1..64
  TreeOptions tree;
  StopOptions stop;

  // Drafts are proposed at the request's temperature times this: a drafter that is too sure agrees more often
  // above 1.
  double draft_temperature = 1.0;
  // Where requests are greedy, drafted nodes are ranked by the drafter's probabilities at this temperature;
  // 0: the one that a learned drafter's files name, else 1.
  double ranking_temperature = 0.0;
  LengthSchedule draft_len_schedule = LengthSchedule::kConstant;
  std::vector<BatchDraftLen> draft_len_by_batch;  // rising; empty: max_draft_len for every batch
  int acceptance_window = 0;                 // finished requests with acceptance that is averaged; 0: no test
  double acceptance_length_threshold = 0.0;  // drafting ends for good when that average of accepted tokens
                                             // per pass falls below this
  bool is_auto = false;  // policy auto: measured costs and acceptance decide how much is drafted, if anything

  std::filesystem::path speculative_model;  // DraftTarget: the draft model; else a learned drafter's files
  std::vector<std::filesystem::path> speculative_models;  // SpecInfer: several draft models
  // The tokens that a head which drafts with the target's output head may propose; empty: the tokens that its
  // files name, or all.
  std::filesystem::path speculative_token_map;
  VocabularyMatch vocabulary_match = VocabularyMatch::kAuto;
  std::vector<Method> combine;  // Combined: methods that share one tree
  // Eagle3: layers of the target that it reads outputs of; empty: the layers that the drafter's files name.
  std::vector<int> eagle3_layers_to_capture;
  // Open questions, which the engine answers when it has opened the files:
  bool method_unset = false;  // the files in speculative_model say decoding_type
  UnsetShape shape_unset = {};

  NGramOptions ngram;
  SuffixOptions suffix;
  LookaheadOptions lookahead;
  EarlyExitOptions early_exit;
  TypicalOptions typical;
  RelaxedOptions relaxed;
};

}  // namespace outrider
