// SPDX-License-Identifier: Apache-2.0
#include "config/speculative_key_table.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "config/message_text.h"
#include "config/methods.h"
#include "config/option_value.h"

namespace outrider {
namespace {

Result<Method> parse_method(std::string_view text) {
  const std::optional<Method> method = find_method(text);
  if (method && method_row(*method).is_named) return *method;
  if (method) {
    return usage_error(fmt::format("{} needs a drafter from a program in C++, C or Python; use one of {}",
                                   method_name(*method), method_names()));
  }
  std::vector<std::string_view> names;
  for (const MethodRow& row : method_table()) {
    if (row.is_named) names.push_back(row.name);
  }
  return usage_error(fmt::format("expected a method ({}), found {}; did you mean '{}'?", joined(names),
                                 quote(text), nearest_name(text, names)));
}

using Options = SpeculativeOptions;

constexpr int64_t kMaxToken = std::numeric_limits<TokenId>::max();

// The member of `object` at the end of a path of members.
template <auto kFirst, auto... kRest>
auto& member(auto& object) {
  if constexpr (sizeof...(kRest) == 0) {
    return object.*kFirst;
  } else {
    return member<kRest...>(object.*kFirst);
  }
}

template <int64_t kMin, int64_t kMax, auto... kPath>
Status assign_integer(SpeculativeConfig& config, std::string_view text) {
  OUTRIDER_TRY(const int64_t value, parse_integer(text, kMin, kMax));
  auto& number = member<kPath...>(config.options);
  number = static_cast<std::remove_reference_t<decltype(number)>>(value);
  return {};
}

template <auto... kPath>
Status assign_flag(SpeculativeConfig& config, std::string_view text) {
  OUTRIDER_TRY(member<kPath...>(config.options), parse_flag(text));
  return {};
}

template <auto... kPath>
Status assign_number(SpeculativeConfig& config, std::string_view text) {
  constexpr double kMax = 100.0;
  OUTRIDER_TRY(member<kPath...>(config.options), parse_number(text, 0.0, kMax));
  return {};
}

template <auto... kPath>
Status assign_temperature(SpeculativeConfig& config, std::string_view text) {
  constexpr double kMin = 0.1, kMax = 10.0;
  OUTRIDER_TRY(member<kPath...>(config.options), parse_number(text, kMin, kMax));
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

template <int64_t kMin, int64_t kMax, auto... kPath>
Status assign_integers(SpeculativeConfig& config, std::string_view text) {
  auto& list = member<kPath...>(config.options);
  list.clear();
  for (const std::string_view part : list_parts(text)) {
    OUTRIDER_TRY(const int64_t value, parse_integer(part, kMin, kMax));
    list.push_back(static_cast<int>(value));
  }
  return {};
}

// "[[0],[0,0],[1]]", also with round brackets and a comma after the last number, as Python writes tuples.
std::optional<std::vector<std::vector<int>>> integer_lists(std::string_view text, int64_t max) {
  std::string plain;
  for (const char c : text) {
    if (c == ' ') continue;
    const bool closes = c == ')' || c == ']';
    if (closes && plain.ends_with(',')) plain.pop_back();
    plain += c == '(' ? '[' : closes ? ']' : c;
  }
  if (!plain.starts_with('[') || !plain.ends_with(']')) return std::nullopt;
  std::vector<std::vector<int>> lists;
  for (const std::string_view list :
       split_outside_brackets(std::string_view(plain).substr(1, plain.size() - 2))) {
    if (!list.starts_with('[') || !list.ends_with(']')) return std::nullopt;
    lists.emplace_back();
    for (const std::string_view part : list_parts(list)) {
      const auto value = parse_integer(part, 0, max);
      if (!value.ok()) return std::nullopt;
      lists.back().push_back(static_cast<int>(*value));
    }
  }
  return lists;
}

Status assign_choices(SpeculativeConfig& config, std::string_view text) {
  constexpr int64_t kMaxRank = 63;
  auto choices = integer_lists(text, kMaxRank);
  if (!choices) {
    return usage_error(fmt::format("expected lists of ranks, as in [[0],[0,0],[1]], found {}", quote(text)));
  }
  config.options.tree.choices = std::move(*choices);
  return {};
}

// Takes a whole schedule. Errors: another key gave one; rows out of order.
Status take_schedule(SpeculativeConfig& config, std::vector<BatchDraftLen> rows) {
  std::vector<BatchDraftLen>& schedule = config.options.draft_len_by_batch;
  if (!schedule.empty()) {
    return usage_error(
        "expected one of draft_len_schedule, draft_len_by_batch and max_concurrency, found two; keep one");
  }
  bool rises = !rows.empty() && rows.front().sequences == 1;
  for (size_t i = 1; i < rows.size(); ++i) rises = rises && rows[i].sequences > rows[i - 1].sequences;
  if (!rises) return usage_error("expected batch sizes that rise from 1");
  schedule = std::move(rows);
  return {};
}

constexpr int64_t kMaxBatch = 1 << 20;

// [[1,4],[5,2],[33,0]]: levels from a batch size on; [[1,4,4],[5,32,2]]: levels from one batch size to
// another, and those of the last row beyond it (vLLM).
Status assign_by_batch(SpeculativeConfig& config, std::string_view text) {
  const auto lists = integer_lists(text, kMaxBatch);
  std::vector<BatchDraftLen> rows;
  for (const std::vector<int>& list : lists.value_or(std::vector<std::vector<int>>{{}})) {
    const bool fits =
        (list.size() == 2 || (list.size() == 3 && list[0] <= list[1])) && list.back() <= kMaxDraftLen;
    if (!fits) {
      return usage_error(
          fmt::format("expected [[sequences,levels],...] or [[from,to,levels],...], found {}", quote(text)));
    }
    rows.push_back({.sequences = list.front(), .levels = list.back()});
  }
  return take_schedule(config, std::move(rows));
}

Status assign_concurrency(SpeculativeConfig& config, std::string_view text) {
  OUTRIDER_TRY(const int64_t sequences, parse_integer(text, 0, kMaxBatch));
  std::vector<BatchDraftLen> rows = {{.sequences = static_cast<int>(sequences) + 1, .levels = 0}};
  if (sequences > 0) rows.insert(rows.begin(), {.sequences = 1, .levels = kMaxDraftLen});
  return take_schedule(config, std::move(rows));
}

// {4:4,8:2}: levels up to a batch size, and nothing beyond the last (TensorRT-LLM).
Status assign_schedule_map(SpeculativeConfig& config, std::string_view text) {
  std::vector<BatchDraftLen> rows;
  int next = 1;
  for (const std::string_view pair : split(text.substr(1, text.size() - 2), ',')) {
    const size_t colon = std::min(pair.find(':'), pair.size());
    const auto sequences = parse_integer(trimmed(pair.substr(0, colon)), next, kMaxBatch);
    const auto levels =
        parse_integer(trimmed(pair.substr(std::min(colon + 1, pair.size()))), 0, kMaxDraftLen);
    if (!sequences.ok() || !levels.ok()) {
      return usage_error(
          fmt::format("expected rising batch sizes and levels, as in {{4:4,8:2}}, found {}", quote(text)));
    }
    rows.push_back({.sequences = next, .levels = static_cast<int>(*levels)});
    next = static_cast<int>(*sequences) + 1;
  }
  rows.push_back({.sequences = next, .levels = 0});
  return take_schedule(config, std::move(rows));
}

template <auto... kPath, typename Value, size_t kCount>
Status assign_choice(SpeculativeConfig& config, std::string_view text,
                     const std::array<std::pair<std::string_view, Value>, kCount>& names) {
  std::vector<std::string_view> known;
  for (const auto& [name, value] : names) {
    known.push_back(name);
    if (folded_name(text) != folded_name(name)) continue;
    member<kPath...>(config.options) = value;
    return {};
  }
  return usage_error(fmt::format("expected one of {}, found {}", joined(known), quote(text)));
}

Status assign_tree(SpeculativeConfig& config, std::string_view text) {
  const auto named = [](TreeKind kind) { return std::pair(tree_kind_name(kind), kind); };
  return assign_choice<&Options::tree, &TreeOptions::kind>(
      config, text,
      std::array{named(TreeKind::kChain), named(TreeKind::kStatic), named(TreeKind::kDynamic),
                 named(TreeKind::kChoices)});
}

Status assign_children(SpeculativeConfig& config, std::string_view text) {
  return assign_choice<&Options::tree, &TreeOptions::children>(
      config, text,
      std::array<std::pair<std::string_view, ChildrenChoice>, 3>{
          {{"sampled", ChildrenChoice::kSampled},
           {"top", ChildrenChoice::kTop},
           {"independent", ChildrenChoice::kIndependent}}});
}

Status assign_schedule(SpeculativeConfig& config, std::string_view text) {
  if (text.starts_with('{') && text.ends_with('}')) return assign_schedule_map(config, text);
  return assign_choice<&Options::draft_len_schedule>(
      config, text,
      std::array<std::pair<std::string_view, LengthSchedule>, 2>{
          {{"constant", LengthSchedule::kConstant}, {"heuristic", LengthSchedule::kHeuristic}}});
}

Status assign_relaxed_space(SpeculativeConfig& config, std::string_view text) {
  return assign_choice<&Options::relaxed, &RelaxedOptions::space>(
      config, text,
      std::array<std::pair<std::string_view, RelaxedSpace>, 2>{
          {{"log_probability", RelaxedSpace::kLogProbability}, {"probability", RelaxedSpace::kProbability}}});
}

Status assign_vocabulary_match(SpeculativeConfig& config, std::string_view text) {
  return assign_choice<&Options::vocabulary_match>(
      config, text,
      std::array<std::pair<std::string_view, VocabularyMatch>, 3>{{{"auto", VocabularyMatch::kAuto},
                                                                   {"tokens", VocabularyMatch::kTokens},
                                                                   {"strings", VocabularyMatch::kStrings}}});
}

Status assign_policy(SpeculativeConfig& config, std::string_view text) {
  return assign_choice<&Options::is_auto>(
      config, text, std::array<std::pair<std::string_view, bool>, 2>{{{"fixed", false}, {"auto", true}}});
}

Status assign_combine(SpeculativeConfig& config, std::string_view text) {
  config.options.combine.clear();
  for (const std::string_view part : list_parts(text)) {
    OUTRIDER_TRY(const Method method, parse_method(part));
    if (!method_row(method).shares_trees) {
      return usage_error(fmt::format("expected methods that draft, as in [NGram, DraftTarget], found {}",
                                     method_name(method)));
    }
    config.options.combine.push_back(method);
  }
  if (config.options.combine.empty())
    return usage_error("expected methods that draft, as in [NGram, DraftTarget], found none");
  return {};
}

// The nodes of a tree and its root.
Status assign_verified(SpeculativeConfig& config, std::string_view text) {
  OUTRIDER_TRY(const int64_t value, parse_integer(text, 2, 1025));
  config.options.tree.max_total_draft_tokens = static_cast<int>(value) - 1;
  return {};
}

Status assign_with_suffix(SpeculativeConfig& config, std::string_view text) {
  OUTRIDER_TRY(config.with_suffix, parse_flag(text));
  return {};
}

Status assign_method(SpeculativeConfig& config, std::string_view text) {
  if (text.find(',') != std::string_view::npos) return assign_combine(config, text);
  OUTRIDER_TRY(config.options.decoding_type, parse_method(text));
  return {};
}

Status assign_model(SpeculativeConfig& config, std::string_view text) {
  if (text.empty()) return usage_error("expected the path of a draft model, found nothing");
  config.options.speculative_model = std::string(text);
  return {};
}

Status assign_token_map(SpeculativeConfig& config, std::string_view text) {
  if (text.empty()) return usage_error("expected the path of a list of token ids, found nothing");
  config.options.speculative_token_map = std::string(text);
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

constexpr uint32_t kAllMethods = ~uint32_t{0};

constexpr uint32_t bit(Method method) { return 1u << static_cast<unsigned>(method); }

// A method's own keys may also be given where it can be one of several methods.
constexpr uint32_t keys_of(Method method) {
  return bit(method) | bit(Method::kCombined) | bit(Method::kAuto);
}

// The methods that draft with files of their own.
uint32_t methods_with_model() {
  uint32_t methods = 0;
  for (const MethodRow& row : method_table()) {
    if (row.needs == MethodNeeds::kDraftModel || row.needs == MethodNeeds::kHead)
      methods |= keys_of(row.method);
  }
  return methods;
}
const uint32_t kModelMethods = methods_with_model();

// decoding_type comes first. One key is a few lines, so that the table can be read as one.
// clang-format off
const SpeculativeKey kKeys[] = {
    {"decoding_type", kAllMethods, method_name(Method::kNone),
     "where drafts come from, one of the methods above; case, - and _ do not matter",
     assign_method},
    {"max_draft_len", kAllMethods, "4",
     "levels of the drafted tree, 0 to 64; 0 drafts nothing",
     assign_integer<0, kMaxDraftLen, &Options::max_draft_len>},
    {"tree", kAllMethods, "chain",
     "chain, static (expansion), dynamic (the likeliest paths, whatever their shape) or choices "
     "(medusa_choices; what Medusa does if nothing is said)",
     assign_tree},
    {"expansion", kAllMethods, "[1,1,3,1,1,1,1,1]",
     "tree: static: children of every node of each level, from the root down; sets max_draft_len",
     assign_integers<1, 64, &Options::tree, &TreeOptions::expansion>},
    {"dynamic_tree_max_topK", kAllMethods, "4",
     "tree: dynamic: children asked of a node, 1 to 64",
     assign_integer<1, 64, &Options::tree, &TreeOptions::dynamic_tree_max_top_k>},
    {"max_total_draft_tokens", kAllMethods, "16",
     "tree: dynamic, or choices by accuracies: nodes of the tree, 1 to 1024",
     assign_integer<1, 1024, &Options::tree, &TreeOptions::max_total_draft_tokens>},
    {"verified_tokens", kAllMethods, "",
     "tree: dynamic: nodes of the tree and its root, 2 to 1025, in place of max_total_draft_tokens; without "
     "max_draft_len the tree may be as deep",
     assign_verified},
    {"medusa_choices", kAllMethods, "",
     "tree: choices: the nodes, each by the ranks of the tokens on its path, as in [[0],[0,0],[1]]; without "
     "it those that config.json of a Medusa drafter lists, the max_total_draft_tokens best by its "
     "medusa_accuracies, or mc_sim_7b_63",
     assign_choices},
    {"children", kAllMethods, "sampled",
     "at temperatures above 0: sampled (without replacement), top (the likeliest) or independent",
     assign_children},
    {"assistant_confidence_threshold", kAllMethods, "0",
     "stop drafting after a token of lower probability; 0: never, except that EarlyExit's chains adapt a "
     "threshold",
     assign_number<&Options::stop, &StopOptions::assistant_confidence_threshold>},
    {"entropy_threshold", kAllMethods, "0",
     "stop drafting after a token whose distribution has sqrt(0.15 entropy) above this (SVIP); 0: never",
     assign_number<&Options::stop, &StopOptions::entropy_threshold>},
    {"draft_temperature", kAllMethods, "1",
     "drafters with probabilities propose at the temperature of the request times this, 0.1 to 10; "
     "`outrider doctor` says which is best",
     assign_temperature<&Options::draft_temperature>},
    {"ranking_temperature", kAllMethods, "the drafter's own, or 1",
     "where requests are greedy, drafted nodes are ranked by the drafter's probabilities at this "
     "temperature, 0.1 to 10; below 1 trees get narrower and deeper",
     assign_temperature<&Options::ranking_temperature>},
    {"draft_len_schedule", kAllMethods, "constant",
     "constant, or heuristic: two levels more after a draft accepted whole, else one less; or levels by batch "
     "size, as in {4:4,8:2}: 4 levels up to 4 sequences, 2 up to 8, none with more",
     assign_schedule},
    {"draft_len_by_batch", kAllMethods, "",
     "levels by batch size, at most, as in [[1,4],[5,2],[33,0]]: 4 levels, 2 from 5 sequences on, none from 33 "
     "on; [[1,4,4],[5,32,2]] says the same with ends of ranges, and keeps the last levels beyond them",
     assign_by_batch},
    {"max_concurrency", kAllMethods, "",
     "draft nothing while more sequences than this run together",
     assign_concurrency},
    {"acceptance_window", kAllMethods, "0",
     "finished requests whose acceptance is averaged for acceptance_length_threshold, 0 to 1048576; 0: no test",
     assign_integer<0, 1 << 20, &Options::acceptance_window>},
    {"acceptance_length_threshold", kAllMethods, "0",
     "drafting ends for good when the drafted tokens accepted per pass, averaged over acceptance_window "
     "requests, fall below this",
     assign_number<&Options::acceptance_length_threshold>},
    {"policy", kAllMethods, "auto",
     "auto: drafts are at most what the other keys say, and as much of it as measured costs and observed "
     "acceptance advise, down to nothing; fixed: every step drafts all of it",
     assign_policy},
    {"speculative_model", kModelMethods, "",
     "the draft model, or the directory of a learned drafter; without decoding_type it decides that, too; "
     "with the default target, the default draft",
     assign_model},
    {"speculative_models", keys_of(Method::kSpecInfer), "",
     "several draft models that share one tree",
     assign_models},
    {"speculative_token_map",
     keys_of(Method::kDraftTarget) | keys_of(Method::kPard) | keys_of(Method::kEagle) | keys_of(Method::kMtp) |
         keys_of(Method::kMoa) | keys_of(Method::kDFlash), "",
     "file with the ids of the tokens that may be drafted (JSON, or a list by torch.save()), for a draft model or a "
     "head that uses the target's output head: frequent tokens alone make drafts from a large vocabulary cheaper "
     "(FR-Spec)",
     assign_token_map},
    {"vocabulary_match", keys_of(Method::kDraftTarget) | keys_of(Method::kPard) | keys_of(Method::kSpecInfer), "auto",
     "how a draft model with another tokenizer drafts: tokens (those that both have), strings (its likeliest "
     "text, in tokens of the target) or auto (strings for greedy requests, else tokens)",
     assign_vocabulary_match},
    {"use_sa_spec", kModelMethods, "false",
     "the method shares its trees with Suffix, as in combine=[Suffix, Eagle3]",
     assign_with_suffix},
    {"eagle3_layers_to_capture", keys_of(Method::kEagle3) | keys_of(Method::kPEagle) | keys_of(Method::kEagle), "",
     "layers of the target whose output the drafter reads, as in [1,15,28]; without it those that its files name",
     assign_integers<0, 1023, &Options::eagle3_layers_to_capture>},
    {"combine", bit(Method::kCombined), "",
     "methods that share one tree, as in [NGram, DraftTarget]",
     assign_combine},
    {"max_matching_ngram_size", keys_of(Method::kNGram), "2",
     "longest pattern looked up, 1 to 16",
     assign_integer<1, 16, &Options::ngram, &NGramOptions::max_matching_ngram_size>},
    {"is_keep_all", keys_of(Method::kNGram), "true",
     "keep every continuation of a pattern, else the longest newest one",
     assign_flag<&Options::ngram, &NGramOptions::is_keep_all>},
    {"is_use_oldest", keys_of(Method::kNGram), "true",
     "propose the oldest continuation kept, else the newest",
     assign_flag<&Options::ngram, &NGramOptions::is_use_oldest>},
    {"is_public_pool", keys_of(Method::kNGram), "false",
     "one pool for all sequences, which shows one request's text to others; else one each",
     assign_flag<&Options::ngram, &NGramOptions::is_public_pool>},
    {"max_pool_patterns", keys_of(Method::kNGram), "1048576",
     "patterns kept in a pool, 1 to 2^30; the oldest leave first",
     assign_integer<1, int64_t{1} << 30, &Options::ngram, &NGramOptions::max_pool_patterns>},
    {"suffix_max_tree_depth", keys_of(Method::kSuffix), "64",
     "longest suffix kept, 2 to 256 tokens",
     assign_integer<2, 256, &Options::suffix, &SuffixOptions::max_tree_depth>},
    {"suffix_max_cached_requests", keys_of(Method::kSuffix), "0",
     "finished requests that later ones draft from, which shows one request's text to others; 0: none",
     assign_integer<0, 1 << 20, &Options::suffix, &SuffixOptions::max_cached_requests>},
    {"suffix_max_spec_factor", keys_of(Method::kSuffix), "1",
     "drafted tokens per token matched, at most",
     assign_number<&Options::suffix, &SuffixOptions::max_spec_factor>},
    {"suffix_min_token_prob", keys_of(Method::kSuffix), "0.1",
     "least probability of a drafted path by the counts of the suffix tree",
     assign_number<&Options::suffix, &SuffixOptions::min_token_prob>},
    {"max_window_size", keys_of(Method::kLookahead), "4",
     "columns of the window, 1 to 32",
     assign_integer<1, 32, &Options::lookahead, &LookaheadOptions::max_window_size>},
    {"max_ngram_size", keys_of(Method::kLookahead), "3",
     "tokens of an n-gram, its first included, 2 to 16",
     assign_integer<2, 16, &Options::lookahead, &LookaheadOptions::max_ngram_size>},
    {"max_verification_set_size", keys_of(Method::kLookahead), "4",
     "n-grams verified per step, 0 to 64",
     assign_integer<0, 64, &Options::lookahead, &LookaheadOptions::max_verification_set_size>},
    {"exit_layer", keys_of(Method::kEarlyExit), "0",
     "draft with so many of the target's first layers; 0: a third of them",
     assign_integer<0, 1024, &Options::early_exit, &EarlyExitOptions::exit_layer>},
    {"skip_attention_layers", keys_of(Method::kEarlyExit), "",
     "draft with all layers but the attention of these, as in [2,3]",
     assign_integers<0, 1023, &Options::early_exit, &EarlyExitOptions::skip_attention_layers>},
    {"skip_mlp_layers", keys_of(Method::kEarlyExit), "",
     "draft with all layers but the MLPs of these",
     assign_integers<0, 1023, &Options::early_exit, &EarlyExitOptions::skip_mlp_layers>},
    {"typical_epsilon", kAllMethods, "0.09",
     "--acceptance typical: tokens likelier than this always pass, 0 to 1",
     assign_number<&Options::typical, &TypicalOptions::epsilon>},
    {"typical_delta", kAllMethods, "0.3",
     "--acceptance typical: so do tokens likelier than this times exp(-entropy)",
     assign_number<&Options::typical, &TypicalOptions::delta>},
    {"use_relaxed_acceptance_for_thinking", kAllMethods, "false",
     "the same as --acceptance relaxed: lossy while the model thinks",
     assign_flag<&Options::relaxed, &RelaxedOptions::for_thinking>},
    {"relaxed_topk", kAllMethods, "1",
     "--acceptance relaxed: tokens among the target's so many likeliest pass, 1 to 1024",
     assign_integer<1, 1024, &Options::relaxed, &RelaxedOptions::top_k>},
    {"relaxed_delta", kAllMethods, "0",
     "--acceptance relaxed: if no more than this below the likeliest",
     assign_number<&Options::relaxed, &RelaxedOptions::delta>},
    {"relaxed_space", kAllMethods, "log_probability",
     "--acceptance relaxed: what relaxed_delta is measured in, log_probability or probability",
     assign_relaxed_space},
    {"begin_thinking_phase_token", kAllMethods, "128798",
     "--acceptance relaxed: id that opens the thinking",
     assign_integer<0, kMaxToken, &Options::relaxed, &RelaxedOptions::begin_thinking_token>},
    {"end_thinking_phase_token", kAllMethods, "128799",
     "--acceptance relaxed: id that closes it",
     assign_integer<0, kMaxToken, &Options::relaxed, &RelaxedOptions::end_thinking_token>},
};
// clang-format on

}  // namespace

std::span<const SpeculativeKey> speculative_key_table() { return kKeys; }

std::string methods_of(const SpeculativeKey& key) {
  if (key.methods == kAllMethods) return "all";
  std::vector<std::string_view> names;
  for (const MethodRow& row : method_table()) {
    if (key.belongs_to(row.method)) names.push_back(row.name);
  }
  return joined(names);
}

}  // namespace outrider
