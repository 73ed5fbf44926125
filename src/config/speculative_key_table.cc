// SPDX-License-Identifier: Apache-2.0
#include "config/speculative_key_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "config/message_text.h"
#include "config/option_value.h"

namespace outrider {
namespace {

// TensorRT-LLM's names; UserProvided exists, but only a program that links the library can provide the
// drafter.
constexpr std::array<std::string_view, 15> kMethods = {
    "None", "NGram",  "DraftTarget", "SpecInfer", "Suffix", "Lookahead", "EarlyExit", "Combined",
    "Auto", "Medusa", "Eagle",       "Eagle3",    "MTP",    "MoA",       "DFlash"};

Result<std::string> canonical_method(std::string_view text) {
  const std::string folded = folded_name(text);
  const std::string_view wanted = folded == "draftmodel" ? "drafttarget" : std::string_view(folded);
  for (const std::string_view method : kMethods) {
    if (folded_name(method) == wanted) return std::string(method);
  }
  if (wanted == "userprovided") {
    return usage_error(
        fmt::format("UserProvided needs a drafter from a C++ program (EngineOptions::user_drafter); "
                    "use one of {}",
                    speculative_methods()));
  }
  return usage_error(fmt::format("expected a method ({}), found {}; did you mean '{}'?",
                                 speculative_methods(), quote(text), nearest_name(text, kMethods)));
}

constexpr int64_t kLargestToken = std::numeric_limits<TokenId>::max();

template <int64_t kMin, int64_t kMax, auto kMember>
Status assign_integer(SpeculativeConfig& config, std::string_view text) {
  OUTRIDER_TRY(const int64_t value, parse_integer(text, kMin, kMax));
  config.options.*kMember = static_cast<std::remove_reference_t<decltype(config.options.*kMember)>>(value);
  return {};
}

template <auto kMember>
Status assign_flag(SpeculativeConfig& config, std::string_view text) {
  OUTRIDER_TRY(config.options.*kMember, parse_flag(text));
  return {};
}

template <auto kMember>
Status assign_number(SpeculativeConfig& config, std::string_view text) {
  constexpr double kMax = 100.0;
  OUTRIDER_TRY(config.options.*kMember, parse_number(text, 0.0, kMax));
  return {};
}

template <double SpeculativeOptions::*kMember>
Status assign_temperature(SpeculativeConfig& config, std::string_view text) {
  constexpr double kMin = 0.1, kMax = 10.0;
  OUTRIDER_TRY(config.options.*kMember, parse_number(text, kMin, kMax));
  return {};
}

// "a,b", in brackets or not.
std::vector<std::string_view> list_parts(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  if (trimmed(text).empty()) return {};
  std::vector<std::string_view> parts = split(text, ',');
  for (std::string_view& part : parts) part = trimmed(part);
  return parts;
}

template <int64_t kMin, int64_t kMax, auto kMember>
Status assign_integers(SpeculativeConfig& config, std::string_view text) {
  auto& list = config.options.*kMember;
  list.clear();
  for (const std::string_view part : list_parts(text)) {
    OUTRIDER_TRY(const int64_t value, parse_integer(part, kMin, kMax));
    list.push_back(static_cast<int>(value));
  }
  return {};
}

// [[0],[0,0],[1]]
Status assign_medusa_choices(SpeculativeConfig& config, std::string_view text) {
  auto& choices = config.options.medusa_choices;
  choices.clear();
  const auto wrong = [&] {
    return usage_error(fmt::format("expected lists of ranks, as in [[0],[0,0],[1]], found {}", quote(text)));
  };
  std::string_view lists = trimmed(text);
  if (!lists.starts_with('[') || !lists.ends_with(']')) return wrong();
  lists = lists.substr(1, lists.size() - 2);
  for (const std::string_view part : split_outside_brackets(lists)) {
    const std::string_view list = trimmed(part);
    if (!list.starts_with('[') || !list.ends_with(']')) return wrong();
    choices.emplace_back();
    for (const std::string_view rank : list_parts(list)) {
      const auto value = parse_integer(rank, 0, 63);
      if (!value.ok()) return wrong();
      choices.back().push_back(static_cast<int>(*value));
    }
  }
  return {};
}

template <auto kMember, typename Value, size_t kCount>
Status assign_choice(SpeculativeConfig& config, std::string_view text,
                     const std::array<std::pair<std::string_view, Value>, kCount>& names) {
  std::vector<std::string_view> known;
  for (const auto& [name, value] : names) {
    known.push_back(name);
    if (folded_name(text) != folded_name(name)) continue;
    config.options.*kMember = value;
    return {};
  }
  return usage_error(fmt::format("expected one of {}, found {}", joined(known), quote(text)));
}

Status assign_tree(SpeculativeConfig& config, std::string_view text) {
  return assign_choice<&SpeculativeOptions::tree>(
      config, text,
      std::array<std::pair<std::string_view, TreeKind>, 4>{{{"chain", TreeKind::kChain},
                                                            {"static", TreeKind::kStatic},
                                                            {"dynamic", TreeKind::kDynamic},
                                                            {"choices", TreeKind::kChoices}}});
}

Status assign_children(SpeculativeConfig& config, std::string_view text) {
  return assign_choice<&SpeculativeOptions::children>(
      config, text,
      std::array<std::pair<std::string_view, ChildrenChoice>, 3>{
          {{"sampled", ChildrenChoice::kSampled},
           {"top", ChildrenChoice::kTop},
           {"independent", ChildrenChoice::kIndependent}}});
}

Status assign_schedule(SpeculativeConfig& config, std::string_view text) {
  return assign_choice<&SpeculativeOptions::draft_len_schedule>(
      config, text,
      std::array<std::pair<std::string_view, LengthSchedule>, 2>{
          {{"constant", LengthSchedule::kConstant}, {"heuristic", LengthSchedule::kHeuristic}}});
}

Status assign_relaxed_space(SpeculativeConfig& config, std::string_view text) {
  return assign_choice<&SpeculativeOptions::relaxed_space>(
      config, text,
      std::array<std::pair<std::string_view, RelaxedSpace>, 2>{
          {{"probability", RelaxedSpace::kProbability}, {"log_probability", RelaxedSpace::kLogProbability}}});
}

Status assign_policy(SpeculativeConfig& config, std::string_view text) {
  return assign_choice<&SpeculativeOptions::is_auto>(
      config, text, std::array<std::pair<std::string_view, bool>, 2>{{{"fixed", false}, {"auto", true}}});
}

Status assign_method(SpeculativeConfig& config, std::string_view text) {
  OUTRIDER_TRY(config.options.decoding_type, canonical_method(text));
  return {};
}

Status assign_model(SpeculativeConfig& config, std::string_view text) {
  if (text.empty()) return usage_error("expected the path of a draft model, found nothing");
  config.options.speculative_model = std::string(text);
  return {};
}

Status assign_models(SpeculativeConfig& config, std::string_view text) {
  config.options.speculative_models.clear();
  for (const std::string_view part : list_parts(text)) {
    if (part.empty()) return usage_error("expected paths of draft models, found an empty one");
    config.options.speculative_models.emplace_back(std::string(part));
  }
  return {};
}

Status assign_combine(SpeculativeConfig& config, std::string_view text) {
  config.options.combine.clear();
  for (const std::string_view part : list_parts(text)) {
    OUTRIDER_TRY(std::string method, canonical_method(part));
    if (method == "None" || method == "Combined" || method == "Auto") {
      return usage_error(
          fmt::format("expected methods that draft, as in [NGram, DraftTarget], found {}", method));
    }
    config.options.combine.push_back(std::move(method));
  }
  if (config.options.combine.empty())
    return usage_error("expected methods that draft, as in [NGram, DraftTarget], found none");
  return {};
}

Status warn_shortest_pattern(SpeculativeConfig& config, std::string_view text) {
  OUTRIDER_TRY(const int64_t value, parse_integer(text, 1, 16));
  if (value > 1) {
    config.warnings.push_back("prompt_lookup_min has no effect: NGram looks up every length down to 1");
  }
  return {};
}

// decoding_type comes first.
constexpr std::array kKeys = {
    SpeculativeKeyRow{
        {"decoding_type", "method", "", "None",
         "None, NGram, DraftTarget, SpecInfer, Suffix, Lookahead, EarlyExit, Medusa, Eagle, Eagle3, MTP, "
         "MoA, DFlash or Combined; case, - and _ do not matter"},
        assign_method},
    SpeculativeKeyRow{{"max_draft_len", "num_speculative_tokens", "", "4",
                       "levels of the drafted tree, 0 to 64; 0 drafts nothing"},
                      assign_integer<0, 64, &SpeculativeOptions::max_draft_len>},
    SpeculativeKeyRow{{"tree", "", "", "chain",
                       "chain, static (expansion), dynamic (the likeliest paths, whatever their shape) or "
                       "choices (medusa_choices; what Medusa does if nothing is said)"},
                      assign_tree},
    SpeculativeKeyRow{
        {"expansion", "", "", "[1,1,3,1,1,1,1,1]",
         "tree: static: children of every node of each level, from the root down; sets max_draft_len"},
        assign_integers<1, 64, &SpeculativeOptions::expansion>},
    SpeculativeKeyRow{
        {"dynamic_tree_max_topK", "", "", "4", "tree: dynamic: children asked of a node, 1 to 64"},
        assign_integer<1, 64, &SpeculativeOptions::dynamic_tree_max_top_k>},
    SpeculativeKeyRow{{"max_total_draft_tokens", "", "", "16",
                       "tree: dynamic, or choices by accuracies: nodes of the tree, 1 to 1024"},
                      assign_integer<1, 1024, &SpeculativeOptions::max_total_draft_tokens>},
    SpeculativeKeyRow{{"medusa_choices", "", "", "",
                       "tree: choices: the nodes, each by the ranks of the tokens on its path, as in "
                       "[[0],[0,0],[1]]; without it those that config.json of a Medusa drafter lists, the "
                       "max_total_draft_tokens best by its medusa_accuracies, or mc_sim_7b_63"},
                      assign_medusa_choices},
    SpeculativeKeyRow{
        {"children", "", "", "sampled",
         "at temperatures above 0: sampled (without replacement), top (the likeliest) or independent"},
        assign_children},
    SpeculativeKeyRow{{"assistant_confidence_threshold", "", "", "0",
                       "stop drafting after a token of lower probability; 0: never, except that "
                       "EarlyExit's chains adapt a threshold"},
                      assign_number<&SpeculativeOptions::assistant_confidence_threshold>},
    SpeculativeKeyRow{
        {"entropy_threshold", "", "", "0",
         "stop drafting after a token whose distribution has sqrt(0.15 entropy) above this (SVIP); 0: never"},
        assign_number<&SpeculativeOptions::entropy_threshold>},
    SpeculativeKeyRow{
        {"draft_temperature", "", "", "1",
         "drafters with probabilities propose at the temperature of the request times this, 0.1 to "
         "10; `outrider doctor` says which is best"},
        assign_temperature<&SpeculativeOptions::draft_temperature>},
    SpeculativeKeyRow{
        {"ranking_temperature", "", "", "the drafter's own, or 1",
         "where requests are greedy, drafted nodes are ranked by the drafter's probabilities at this "
         "temperature, 0.1 to 10; below 1 trees get narrower and deeper"},
        assign_temperature<&SpeculativeOptions::ranking_temperature>},
    SpeculativeKeyRow{{"draft_len_schedule", "num_assistant_tokens_schedule", "", "constant",
                       "constant, or heuristic: two levels more after a draft accepted whole, else one less"},
                      assign_schedule},
    SpeculativeKeyRow{{"policy", "", "", "fixed",
                       "fixed: every step drafts what the other keys say; auto: at most that, as measured "
                       "costs and observed "
                       "acceptance advise, down to nothing"},
                      assign_policy},
    SpeculativeKeyRow{{"speculative_model", "speculative_model_dir|model",
                       "DraftTarget|Medusa|Eagle|Eagle3|MTP|MoA|DFlash|Combined|Auto", "",
                       "the draft model, or the directory of a learned drafter; without decoding_type it "
                       "decides that, too; with the default target, the default draft"},
                      assign_model},
    SpeculativeKeyRow{
        {"speculative_models", "", "SpecInfer|Combined|Auto", "", "several draft models that share one tree"},
        assign_models},
    SpeculativeKeyRow{
        {"combine", "", "Combined", "", "methods that share one tree, as in [NGram, DraftTarget]"},
        assign_combine},
    SpeculativeKeyRow{{"max_matching_ngram_size", "prompt_lookup_max", "NGram|Combined|Auto", "2",
                       "longest pattern looked up, 1 to 16"},
                      assign_integer<1, 16, &SpeculativeOptions::max_matching_ngram_size>},
    SpeculativeKeyRow{{"is_keep_all", "", "NGram|Combined|Auto", "true",
                       "keep every continuation of a pattern, else the longest newest one"},
                      assign_flag<&SpeculativeOptions::is_keep_all>},
    SpeculativeKeyRow{{"is_use_oldest", "", "NGram|Combined|Auto", "true",
                       "propose the oldest continuation kept, else the newest"},
                      assign_flag<&SpeculativeOptions::is_use_oldest>},
    SpeculativeKeyRow{{"is_public_pool", "", "NGram|Combined|Auto", "false",
                       "one pool for all sequences, which shows one request's text to others; else one each"},
                      assign_flag<&SpeculativeOptions::is_public_pool>},
    SpeculativeKeyRow{{"max_pool_patterns", "", "NGram|Combined|Auto", "1048576",
                       "patterns kept in a pool, 1 to 2^30; the oldest leave first"},
                      assign_integer<1, int64_t{1} << 30, &SpeculativeOptions::max_pool_patterns>},
    SpeculativeKeyRow{{"suffix_max_tree_depth", "suffix_decoding_max_tree_depth", "Suffix|Combined|Auto",
                       "64", "longest suffix kept, 2 to 256 tokens"},
                      assign_integer<2, 256, &SpeculativeOptions::suffix_max_tree_depth>},
    SpeculativeKeyRow{
        {"suffix_max_cached_requests", "suffix_decoding_max_cached_requests", "Suffix|Combined|Auto", "0",
         "finished requests that later ones draft from, which shows one request's text to others; 0: none"},
        assign_integer<0, 1 << 20, &SpeculativeOptions::suffix_max_cached_requests>},
    SpeculativeKeyRow{{"suffix_max_spec_factor", "suffix_decoding_max_spec_factor", "Suffix|Combined|Auto",
                       "1", "drafted tokens per token matched, at most"},
                      assign_number<&SpeculativeOptions::suffix_max_spec_factor>},
    SpeculativeKeyRow{{"suffix_min_token_prob", "suffix_decoding_min_token_prob", "Suffix|Combined|Auto",
                       "0.1", "least probability of a drafted path by the counts of the suffix tree"},
                      assign_number<&SpeculativeOptions::suffix_min_token_prob>},
    SpeculativeKeyRow{
        {"max_window_size", "", "Lookahead|Combined|Auto", "4", "columns of the window, 1 to 32"},
        assign_integer<1, 32, &SpeculativeOptions::max_window_size>},
    SpeculativeKeyRow{{"max_ngram_size", "", "Lookahead|Combined|Auto", "3",
                       "tokens of an n-gram, its first included, 2 to 16"},
                      assign_integer<2, 16, &SpeculativeOptions::max_ngram_size>},
    SpeculativeKeyRow{{"max_verification_set_size", "", "Lookahead|Combined|Auto", "4",
                       "n-grams verified per step, 0 to 64"},
                      assign_integer<0, 64, &SpeculativeOptions::max_verification_set_size>},
    SpeculativeKeyRow{{"exit_layer", "", "EarlyExit|Combined|Auto", "0",
                       "draft with the first so many layers of the target; 0: a third of them"},
                      assign_integer<0, 1024, &SpeculativeOptions::exit_layer>},
    SpeculativeKeyRow{{"skip_attention_layers", "", "EarlyExit|Combined|Auto", "",
                       "draft with all layers but the attention of these, as in [2,3]"},
                      assign_integers<0, 1023, &SpeculativeOptions::skip_attention_layers>},
    SpeculativeKeyRow{{"skip_mlp_layers", "", "EarlyExit|Combined|Auto", "", "the same for their MLPs"},
                      assign_integers<0, 1023, &SpeculativeOptions::skip_mlp_layers>},
    SpeculativeKeyRow{{"typical_epsilon", "", "", "0.09",
                       "--acceptance typical: tokens likelier than this always pass, 0 to 1"},
                      assign_number<&SpeculativeOptions::typical_epsilon>},
    SpeculativeKeyRow{{"typical_delta", "", "", "0.3",
                       "--acceptance typical: so do tokens likelier than this times exp(-entropy)"},
                      assign_number<&SpeculativeOptions::typical_delta>},
    SpeculativeKeyRow{{"use_relaxed_acceptance_for_thinking", "", "", "false",
                       "the same as --acceptance relaxed: lossy while the model thinks"},
                      assign_flag<&SpeculativeOptions::use_relaxed_acceptance_for_thinking>},
    SpeculativeKeyRow{{"relaxed_topk", "", "", "1",
                       "--acceptance relaxed: tokens among the target's so many likeliest pass, 1 to 1024"},
                      assign_integer<1, 1024, &SpeculativeOptions::relaxed_topk>},
    SpeculativeKeyRow{
        {"relaxed_delta", "", "", "0", "--acceptance relaxed: if no more than this below the likeliest"},
        assign_number<&SpeculativeOptions::relaxed_delta>},
    SpeculativeKeyRow{{"relaxed_space", "", "", "probability",
                       "--acceptance relaxed: what relaxed_delta is measured in, probability or "
                       "log_probability"},
                      assign_relaxed_space},
    SpeculativeKeyRow{
        {"begin_thinking_phase_token", "", "", "128798", "--acceptance relaxed: id that opens the thinking"},
        assign_integer<0, kLargestToken, &SpeculativeOptions::begin_thinking_phase_token>},
    SpeculativeKeyRow{
        {"end_thinking_phase_token", "", "", "128799", "--acceptance relaxed: id that closes it"},
        assign_integer<0, kLargestToken, &SpeculativeOptions::end_thinking_phase_token>},
    SpeculativeKeyRow{{"prompt_lookup_min", "", "NGram|Combined|Auto", "", "vLLM's; read and without effect"},
                      warn_shortest_pattern},
};

}  // namespace

std::span<const SpeculativeKeyRow> speculative_key_table() { return kKeys; }

std::string speculative_methods() { return joined(kMethods); }

}  // namespace outrider
