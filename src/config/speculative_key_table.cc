// SPDX-License-Identifier: Apache-2.0
#include "config/speculative_key_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "config/foreign/foreign_names.h"
#include "config/message_text.h"
#include "config/methods.h"
#include "config/option_value.h"

namespace outrider {
namespace {

// "; REASON" for a method of another system that is none here, else what may be meant.
std::string advice(std::string_view text, std::span<const std::string_view> names) {
  const std::string_view reason = reason_against(text);
  return reason.empty() ? suggestion(text, names) : fmt::format("; {}", reason);
}

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
  return usage_error(
      fmt::format("expected a method ({}), found {}{}", joined(names), quote(text), advice(text, names)));
}

constexpr double kMaxToken = std::numeric_limits<TokenId>::max();

using Config = SpeculativeConfig;
using Options = SpeculativeOptions;

// The key is a member of the options.
template <auto... kPath>
constexpr auto option() {
  return member<&Config::options, kPath...>();
}

template <const auto& kNames, auto... kPath>
constexpr auto named_option() {
  return named<kNames, &Config::options, kPath...>();
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
    const ValueRule rule = {
        .type = OptionType::kIntegers, .range = {0, static_cast<double>(max)}, .may_be_empty = true};
    const std::string text_of_list(list);
    const auto values = convert_texts(rule, std::span(&text_of_list, 1));
    if (!values.ok()) return std::nullopt;
    lists.back().assign(values->integers.begin(), values->integers.end());
  }
  return lists;
}

// "[[0.7,0.1],[0.5]]"
std::optional<std::vector<std::vector<double>>> number_lists(std::string_view text) {
  if (!text.starts_with("[[") || !text.ends_with("]]")) return std::nullopt;
  std::vector<std::vector<double>> lists;
  for (std::string_view list : split_outside_brackets(text.substr(1, text.size() - 2))) {
    list = trimmed(list);
    const ValueRule rule = {.type = OptionType::kNumbers, .range = {0, 1}};
    const std::string text_of_list(list);
    const auto values = convert_texts(rule, std::span(&text_of_list, 1));
    if (!list.starts_with('[') || !list.ends_with(']') || !values.ok()) return std::nullopt;
    lists.push_back(values->numbers);
  }
  return lists;
}

Status assign_accuracies(Config& config, const OptionValue& value) {
  constexpr size_t kMaxRanks = 64;
  auto lists = number_lists(trimmed(value.text()));
  const auto fits = [](const std::vector<double>& list) {
    return !list.empty() && list.size() <= kMaxRanks && list.front() > 0.0;
  };
  if (!lists || lists->size() > kMaxDraftLen || !std::ranges::all_of(*lists, fits)) {
    return usage_error(fmt::format(
        "expected lists of shares from 0 to 1 that begin above 0, as in [[0.7,0.1],[0.6,0.1]], found {}",
        quote(value.text())));
  }
  config.options.tree.accuracies = std::move(*lists);
  return {};
}

Status assign_choices(Config& config, const OptionValue& value) {
  const std::string_view text = value.text();
  constexpr int64_t kMaxRank = 63;
  auto choices = integer_lists(text, kMaxRank);
  if (!choices) {
    return usage_error(fmt::format("expected lists of ranks, as in [[0],[0,0],[1]], found {}", quote(text)));
  }
  config.options.tree.choices = std::move(*choices);
  return {};
}

// "[[0],[0,0],[1]]"; empty: no lists.
template <typename Number>
std::string lists_text(const std::vector<std::vector<Number>>& lists) {
  std::vector<std::string> parts;
  for (const std::vector<Number>& list : lists) parts.push_back(fmt::format("[{}]", fmt::join(list, ",")));
  return parts.empty() ? "" : fmt::format("[{}]", fmt::join(parts, ","));
}

std::string choices_text(const Config& config) { return lists_text(config.options.tree.choices); }

std::string accuracies_text(const Config& config) { return lists_text(config.options.tree.accuracies); }

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
// another, and the levels of the last row beyond it (vLLM).
Status assign_by_batch(Config& config, const OptionValue& value) {
  const std::string_view text = value.text();
  const auto lists = integer_lists(text, kMaxBatch);
  std::vector<BatchDraftLen> rows;
  for (const std::vector<int>& list : lists.value_or(std::vector<std::vector<int>>{{}})) {
    const bool fits =
        (list.size() == 2 || (list.size() == 3 && list[0] <= list[1])) && list.back() <= kMaxDraftLen;
    if (!fits) {
      return usage_error(
          fmt::format("expected [[sequences,levels],...] or [[from,to,levels],...], found {}", quote(text)));
    }
    rows.push_back({.sequences = list.front(), .max_draft_len = list.back()});
  }
  return take_schedule(config, std::move(rows));
}

std::string by_batch_text(const Config& config) {
  std::vector<std::vector<int>> lists;
  for (const BatchDraftLen& row : config.options.draft_len_by_batch)
    lists.push_back({row.sequences, row.max_draft_len});
  return lists_text(lists);
}

Status assign_concurrency(Config& config, const OptionValue& value) {
  std::vector<BatchDraftLen> rows = {{.sequences = static_cast<int>(value.integer) + 1, .max_draft_len = 0}};
  if (value.integer > 0) rows.insert(rows.begin(), {.sequences = 1, .max_draft_len = kMaxDraftLen});
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
    rows.push_back({.sequences = next, .max_draft_len = static_cast<int>(*levels)});
    next = static_cast<int>(*sequences) + 1;
  }
  rows.push_back({.sequences = next, .max_draft_len = 0});
  return take_schedule(config, std::move(rows));
}

const std::array<NamedValue<TreeKind>, 4> kTreeKinds = {
    {{tree_kind_name(TreeKind::kChain), TreeKind::kChain},
     {tree_kind_name(TreeKind::kStatic), TreeKind::kStatic},
     {tree_kind_name(TreeKind::kDynamic), TreeKind::kDynamic},
     {tree_kind_name(TreeKind::kChoices), TreeKind::kChoices}}};
constexpr std::array<NamedValue<ChildrenChoice>, 3> kChildren = {
    {{"sampled", ChildrenChoice::kSampled},
     {"top", ChildrenChoice::kTop},
     {"independent", ChildrenChoice::kIndependent}}};
constexpr std::array<NamedValue<LengthSchedule>, 2> kSchedules = {
    {{"constant", LengthSchedule::kConstant}, {"heuristic", LengthSchedule::kHeuristic}}};
constexpr std::array<NamedValue<RelaxedSpace>, 2> kRelaxedSpaces = {
    {{"log_probability", RelaxedSpace::kLogProbability}, {"probability", RelaxedSpace::kProbability}}};
constexpr std::array<NamedValue<VocabularyMatch>, 3> kVocabularyMatches = {
    {{"auto", VocabularyMatch::kAuto},
     {"tokens", VocabularyMatch::kTokens},
     {"strings", VocabularyMatch::kStrings}}};
constexpr std::array<NamedValue<bool>, 2> kPolicies = {{{"fixed", false}, {"auto", true}}};

constexpr auto kScheduleMember = named_option<kSchedules, &Options::draft_len_schedule>();

// A name, or levels by batch size.
Status assign_schedule(Config& config, const OptionValue& value) {
  const std::string_view text = value.text();
  if (text.starts_with('{') && text.ends_with('}')) return assign_schedule_map(config, text);
  const ValueRule rule = {.type = OptionType::kChoice, .choices = kScheduleMember.choices()};
  OUTRIDER_TRY(const OptionValue choice, convert_texts(rule, value.texts));
  return kScheduleMember.store(config, choice);
}

// "[A,B]" or "A,B".
Status assign_combine(Config& config, const OptionValue& value) {
  config.options.combine.clear();
  for (const std::string_view part : list_parts(value.text())) {
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

std::string combine_text(const Config& config) {
  std::vector<std::string> keys;
  for (const Method method : config.options.combine) keys.push_back(method_key(method));
  return keys.empty() ? "" : fmt::format("[{}]", fmt::join(keys, ","));
}

// The nodes of a tree and its root.
Status assign_verified(Config& config, const OptionValue& value) {
  config.options.tree.max_total_draft_tokens = static_cast<int>(value.integer) - 1;
  return {};
}

// The tokens of a block, its first one included, which is known.
Status assign_block(Config& config, const OptionValue& value) {
  config.options.max_draft_len = static_cast<int>(value.integer) - 1;
  return {};
}

Status assign_method(Config& config, const OptionValue& value) {
  const std::string_view text = value.text();
  if (text.find(',') != std::string_view::npos) return assign_combine(config, value);
  OUTRIDER_TRY(config.options.decoding_type, parse_method(text));
  return {};
}

Status assign_models(Config& config, const OptionValue& value) {
  config.options.speculative_models.clear();
  for (const std::string_view part : list_parts(value.text())) {
    if (part.empty()) return usage_error("expected paths of draft models, found an empty one");
    config.options.speculative_models.emplace_back(std::string(part));
  }
  return {};
}

std::string models_text(const Config& config) {
  std::vector<std::string> paths;
  for (const auto& path : config.options.speculative_models) paths.push_back(path.string());
  return paths.empty() ? "" : fmt::format("[{}]", fmt::join(paths, ","));
}

constexpr Member<Config> schedule() {
  Member<Config> made = kScheduleMember;
  made.type = OptionType::kText;
  made.store = assign_schedule;
  made.choices = nullptr;
  return made;
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
    {.name = "decoding_type", .methods = kAllMethods, .member = read_by<assign_method, Config>(),
     .help = "where drafts come from, one of the methods above; case, - and _ do not matter",
     .usual_default = method_name(Method::kNone)},
    {.name = "max_draft_len", .methods = kAllMethods, .member = option<&Options::max_draft_len>(),
     .help = "levels of the drafted tree; 0 drafts nothing", .range = {0, kMaxDraftLen}},
    {.name = "draft_block_size", .methods = kAllMethods,
     .member = read_by<assign_block, Config>(OptionType::kInteger),
     .help = "tokens of a drafted block and the one before it, in place of max_draft_len",
     .range = {1, kMaxDraftLen + 1}},
    {.name = "tree", .methods = kAllMethods,
     .member = named_option<kTreeKinds, &Options::tree, &TreeOptions::kind>(),
     .help = "chain, static (expansion), dynamic (the likeliest paths, whatever their shape) or choices "
             "(medusa_choices; what Medusa does if nothing is said)"},
    {.name = "expansion", .methods = kAllMethods, .member = option<&Options::tree, &TreeOptions::expansion>(),
     .help = "tree: static: children of every node of each level, from the root down; sets max_draft_len",
     .range = {1, 64}},
    {.name = "dynamic_tree_max_topK", .methods = kAllMethods,
     .member = option<&Options::tree, &TreeOptions::dynamic_tree_max_top_k>(),
     .help = "tree: dynamic: children asked of a node", .range = {1, 64}},
    {.name = "max_total_draft_tokens", .methods = kAllMethods,
     .member = option<&Options::tree, &TreeOptions::max_total_draft_tokens>(),
     .help = "tree: dynamic, or choices by accuracies: nodes of the tree", .range = {1, 1024}},
    {.name = "verified_tokens", .methods = kAllMethods,
     .member = read_by<assign_verified, Config>(OptionType::kInteger),
     .help = "tree: dynamic: nodes of the tree and its root, in place of max_total_draft_tokens; without "
             "max_draft_len the tree may be as deep", .range = {2, 1025}},
    {.name = "medusa_choices", .methods = kAllMethods, .member = read_by<assign_choices, Config>(OptionType::kText, choices_text),
     .help = "tree: choices: the nodes, each by the ranks of the tokens on its path, as in [[0],[0,0],[1]]; without "
             "it those that config.json of a Medusa drafter lists, the max_total_draft_tokens best by its "
             "medusa_accuracies, or mc_sim_7b_63"},
    {.name = "tree_accuracies", .methods = kAllMethods,
     .member = read_by<assign_accuracies, Config>(OptionType::kText, accuracies_text),
     .help = "tree: choices: by level, how often the token of each rank is right, as in [[0.7,0.1],[0.6,0.1]]; the last "
             "list holds below, too. The max_total_draft_tokens best nodes are the tree; `outrider doctor` measures it"},
    {.name = "children", .methods = kAllMethods,
     .member = named_option<kChildren, &Options::tree, &TreeOptions::children>(),
     .help = "at temperatures above 0: sampled (without replacement), top (the likeliest) or independent"},
    {.name = "assistant_confidence_threshold", .methods = kAllMethods,
     .member = option<&Options::stop, &StopOptions::assistant_confidence_threshold>(),
     .help = "stop drafting after a token of lower probability; 0: never, except that EarlyExit's chains adapt a "
             "threshold", .range = {0, 100}},
    {.name = "entropy_threshold", .methods = kAllMethods,
     .member = option<&Options::stop, &StopOptions::entropy_threshold>(),
     .help = "stop drafting after a token whose distribution has sqrt(0.15 entropy) above this (SVIP); 0: never",
     .range = {0, 100}},
    {.name = "draft_temperature", .methods = kAllMethods, .member = option<&Options::draft_temperature>(),
     .help = "drafters with probabilities propose at the temperature of the request times this; "
             "`outrider doctor` says which is best", .range = {0.1, 10}},
    {.name = "ranking_temperature", .methods = kAllMethods, .member = option<&Options::ranking_temperature>(),
     .help = "where requests are greedy, drafted nodes are ranked by the drafter's probabilities at this "
             "temperature; below 1 trees get narrower and deeper",
     .range = {0.1, 10}, .usual_default = "the drafter's own, or 1"},
    {.name = "draft_len_schedule", .methods = kAllMethods, .member = schedule(),
     .help = "constant, or heuristic: two levels more after a draft accepted whole, else one less; or levels by batch "
             "size, as in {4:4,8:2}: 4 levels up to 4 sequences, 2 up to 8, none with more"},
    {.name = "draft_len_by_batch", .methods = kAllMethods, .member = read_by<assign_by_batch, Config>(OptionType::kText, by_batch_text),
     .help = "levels by batch size, at most, as in [[1,4],[5,2],[33,0]]: 4 levels, 2 from 5 sequences on, none from 33 "
             "on; [[1,4,4],[5,32,2]] says the same with ends of ranges, and keeps the last levels beyond them"},
    {.name = "max_concurrency", .methods = kAllMethods,
     .member = read_by<assign_concurrency, Config>(OptionType::kInteger),
     .help = "draft nothing while more sequences than this run together", .range = {0, kMaxBatch}},
    {.name = "acceptance_window", .methods = kAllMethods, .member = option<&Options::acceptance_window>(),
     .help = "finished requests whose acceptance is averaged for acceptance_length_threshold; 0: no test",
     .range = {0, 1 << 20}},
    {.name = "acceptance_length_threshold", .methods = kAllMethods,
     .member = option<&Options::acceptance_length_threshold>(),
     .help = "drafting ends for good when the drafted tokens accepted per pass, averaged over acceptance_window "
             "requests, fall below this", .range = {0, 100}},
    {.name = "policy", .methods = kAllMethods, .member = named_option<kPolicies, &Options::is_auto>(),
     .help = "auto: drafts are at most what the other keys say, and as much of it as measured costs and observed "
             "acceptance advise, down to nothing; fixed: every step drafts all of it", .usual_default = "auto"},
    {.name = "speculative_model", .methods = kModelMethods, .member = option<&Options::speculative_model>(),
     .help = "the draft model, or the directory of a learned drafter; without decoding_type it decides that, too; "
             "with the default target, the default draft"},
    {.name = "speculative_models", .methods = keys_of(Method::kSpecInfer),
     .member = read_by<assign_models, Config>(OptionType::kText, models_text),
     .help = "several draft models that share one tree"},
    {.name = "speculative_token_map",
     .methods = keys_of(Method::kDraftTarget) | keys_of(Method::kPard) | keys_of(Method::kEagle) |
         keys_of(Method::kMtp) | keys_of(Method::kMoa) | keys_of(Method::kDFlash),
     .member = option<&Options::speculative_token_map>(),
     .help = "file with ids of the tokens that may be drafted (JSON, or a list by torch.save()), for a draft model or a "
             "head that uses the target's output head; frequent tokens make drafts cheaper (FR-Spec)"},
    {.name = "vocabulary_match",
     .methods = keys_of(Method::kDraftTarget) | keys_of(Method::kPard) | keys_of(Method::kSpecInfer),
     .member = named_option<kVocabularyMatches, &Options::vocabulary_match>(),
     .help = "how a draft model with another tokenizer drafts: tokens (those that both have), strings (its likeliest "
             "text, in tokens of the target) or auto (strings for greedy requests, else tokens)"},
    {.name = "use_sa_spec", .methods = kModelMethods, .member = member<&Config::with_suffix>(),
     .help = "the method shares its trees with Suffix, as in combine=[Suffix, Eagle3]"},
    {.name = "eagle3_layers_to_capture",
     .methods = keys_of(Method::kEagle3) | keys_of(Method::kPEagle) | keys_of(Method::kEagle),
     .member = option<&Options::eagle3_layers_to_capture>(),
     .help = "layers of the target whose output the drafter reads, as in [1,15,28]; without it those that its files name",
     .range = {0, 1023}},
    {.name = "combine", .methods = bit(Method::kCombined), .member = read_by<assign_combine, Config>(OptionType::kText, combine_text),
     .help = "methods that share one tree, as in [NGram, DraftTarget]"},
    {.name = "max_matching_ngram_size", .methods = keys_of(Method::kNGram),
     .member = option<&Options::ngram, &NGramOptions::max_matching_ngram_size>(),
     .help = "longest pattern looked up", .range = {1, 16}},
    {.name = "is_keep_all", .methods = keys_of(Method::kNGram),
     .member = option<&Options::ngram, &NGramOptions::is_keep_all>(),
     .help = "keep up to 16 continuations of a pattern, else one: a longer one takes its place, and without "
             "is_use_oldest one as long does, too"},
    {.name = "is_use_oldest", .methods = keys_of(Method::kNGram),
     .member = option<&Options::ngram, &NGramOptions::is_use_oldest>(),
     .help = "propose the oldest continuation kept, else the newest"},
    {.name = "is_public_pool", .methods = keys_of(Method::kNGram),
     .member = option<&Options::ngram, &NGramOptions::is_public_pool>(),
     .help = "one pool for all sequences, which shows one request's text to others; else one each"},
    {.name = "max_pool_patterns", .methods = keys_of(Method::kNGram),
     .member = option<&Options::ngram, &NGramOptions::max_pool_patterns>(),
     .help = "patterns kept in a pool; the oldest leave first", .range = {1, 1 << 30}},
    {.name = "suffix_max_tree_depth", .methods = keys_of(Method::kSuffix),
     .member = option<&Options::suffix, &SuffixOptions::max_tree_depth>(),
     .help = "tokens of the longest suffix kept", .range = {2, 256}},
    {.name = "suffix_max_cached_requests", .methods = keys_of(Method::kSuffix),
     .member = option<&Options::suffix, &SuffixOptions::max_cached_requests>(),
     .help = "finished requests that later ones draft from, which shows one request's text to others; 0: none",
     .range = {0, 1 << 20}},
    {.name = "suffix_max_spec_factor", .methods = keys_of(Method::kSuffix),
     .member = option<&Options::suffix, &SuffixOptions::max_spec_factor>(),
     .help = "drafted tokens per token matched, at most", .range = {0, 100}},
    {.name = "suffix_min_token_prob", .methods = keys_of(Method::kSuffix),
     .member = option<&Options::suffix, &SuffixOptions::min_token_prob>(),
     .help = "least probability of a drafted path by the counts of the suffix tree", .range = {0, 100}},
    {.name = "max_window_size", .methods = keys_of(Method::kLookahead),
     .member = option<&Options::lookahead, &LookaheadOptions::max_window_size>(),
     .help = "columns of the window", .range = {1, 32}},
    {.name = "max_ngram_size", .methods = keys_of(Method::kLookahead),
     .member = option<&Options::lookahead, &LookaheadOptions::max_ngram_size>(),
     .help = "tokens of an n-gram, its first included", .range = {2, 16}},
    {.name = "max_verification_set_size", .methods = keys_of(Method::kLookahead),
     .member = option<&Options::lookahead, &LookaheadOptions::max_verification_set_size>(),
     .help = "n-grams verified per step", .range = {0, 64}},
    {.name = "exit_layer", .methods = keys_of(Method::kEarlyExit),
     .member = option<&Options::early_exit, &EarlyExitOptions::exit_layer>(),
     .help = "draft with so many of the target's first layers; 0: a third of them", .range = {0, 1024}},
    {.name = "skip_attention_layers", .methods = keys_of(Method::kEarlyExit),
     .member = option<&Options::early_exit, &EarlyExitOptions::skip_attention_layers>(),
     .help = "draft with all layers but the attention of these, as in [2,3]", .range = {0, 1023}},
    {.name = "skip_mlp_layers", .methods = keys_of(Method::kEarlyExit),
     .member = option<&Options::early_exit, &EarlyExitOptions::skip_mlp_layers>(),
     .help = "draft with all layers but the MLPs of these", .range = {0, 1023}},
    {.name = "typical_epsilon", .methods = kAllMethods,
     .member = option<&Options::typical, &TypicalOptions::epsilon>(),
     .help = "--acceptance typical: tokens likelier than this always pass", .range = {0, 1}},
    {.name = "typical_delta", .methods = kAllMethods,
     .member = option<&Options::typical, &TypicalOptions::delta>(),
     .help = "--acceptance typical: so do tokens likelier than this times exp(-entropy)", .range = {0, 100}},
    {.name = "use_relaxed_acceptance_for_thinking", .methods = kAllMethods,
     .member = option<&Options::relaxed, &RelaxedOptions::for_thinking>(),
     .help = "the same as --acceptance relaxed: lossy while the model thinks"},
    {.name = "relaxed_topk", .methods = kAllMethods,
     .member = option<&Options::relaxed, &RelaxedOptions::top_k>(),
     .help = "--acceptance relaxed: tokens among the target's so many likeliest pass", .range = {1, 1024}},
    {.name = "relaxed_delta", .methods = kAllMethods,
     .member = option<&Options::relaxed, &RelaxedOptions::delta>(),
     .help = "--acceptance relaxed: if no more than this below the likeliest", .range = {0, 100}},
    {.name = "relaxed_space", .methods = kAllMethods,
     .member = named_option<kRelaxedSpaces, &Options::relaxed, &RelaxedOptions::space>(),
     .help = "--acceptance relaxed: what relaxed_delta is measured in, log_probability or probability"},
    {.name = "begin_thinking_phase_token", .methods = kAllMethods,
     .member = option<&Options::relaxed, &RelaxedOptions::begin_thinking_token>(),
     .help = "--acceptance relaxed: id that opens the thinking", .range = {0, kMaxToken},
     .usual_default = "`<think>` of the tokenizer"},
    {.name = "end_thinking_phase_token", .methods = kAllMethods,
     .member = option<&Options::relaxed, &RelaxedOptions::end_thinking_token>(),
     .help = "--acceptance relaxed: id that closes it", .range = {0, kMaxToken},
     .usual_default = "`</think>` of the tokenizer"},
};
// clang-format on

}  // namespace

std::span<const SpeculativeKey> speculative_key_table() { return kKeys; }

std::string SpeculativeKey::default_text() const {
  if (!usual_default.empty()) return std::string(usual_default);
  const std::string text = member.text({});
  return member.type == OptionType::kIntegers && !text.empty() ? "[" + text + "]" : text;
}

std::string SpeculativeKey::meaning() const {
  return range.min < range.max ? fmt::format("{}; {}", help, range.text()) : std::string(help);
}

Status SpeculativeKey::assign(SpeculativeConfig& config, const std::string& text) const {
  const ValueRule rule = {
      .type = member.type,
      .range = range,
      .choices = member.choices == nullptr ? std::vector<std::string_view>() : member.choices(),
      .may_be_empty = member.type == OptionType::kIntegers};
  OUTRIDER_TRY(const OptionValue value, convert_texts(rule, std::span(&text, 1)));
  return member.store(config, value);
}

std::string methods_of(const SpeculativeKey& key) {
  if (key.methods == kAllMethods) return "all";
  std::vector<std::string_view> names;
  for (const MethodRow& row : method_table()) {
    if (key.belongs_to(row.method)) names.push_back(row.name);
  }
  return joined(names);
}

Status check_method_options(const SpeculativeOptions& options, Method method) {
  const SpeculativeConfig config = {.options = options, .warnings = {}};
  for (const SpeculativeKey& key : kKeys) {
    if (key.methods == kAllMethods || !key.belongs_to(method) || key.member.number == nullptr) continue;
    const double value = key.member.number(config);
    if (!key.range.has(value))
      return usage_error(fmt::format("{} must be {}, found {}", key.name, key.range.text(), value));
  }
  return {};
}

}  // namespace outrider
