// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/head_trial.h"
#include "cli/prompt_set.h"
#include "cli/repeated_timing.h"
#include "cli/reports/completion_json.h"
#include "cli/reports/doctor_report.h"
#include "cli/terminal.h"
#include "cli/timed_completion.h"
#include "config/message_text.h"
#include "config/methods.h"
#include "formats/model_file.h"
#include "open/drafter_report.h"
#include "open/parts.h"
#include "open/resolved.h"

namespace outrider {
namespace {

constexpr int64_t kDefaultPrompts = 6;
constexpr int64_t kMaxPlaces = 48;  // places of one text at which distributions are compared

// A shape to measure, with its keys as in --speculative.
struct DraftShape {
  std::string keys;
  SpeculativeOptions options;
};

DraftShape chain(SpeculativeOptions options, int length) {
  options.tree.kind = TreeKind::kChain;
  options.max_draft_len = length;
  return {fmt::format("max_draft_len={}", length), std::move(options)};
}

DraftShape expansion(SpeculativeOptions options, std::vector<int> widths) {
  options.tree.kind = TreeKind::kStatic;
  options.max_draft_len = static_cast<int>(widths.size());
  options.tree.expansion = std::move(widths);
  std::string keys = "expansion=[";
  for (const int width : options.tree.expansion)
    keys += (keys.back() == '[' ? "" : ",") + std::to_string(width);
  return {keys + "]", std::move(options)};
}

// fits_entries: every drafted node needs a cache entry of the target, including the nodes that are dropped
// later.
DraftShape dynamic(SpeculativeOptions options, int nodes, bool fits_entries) {
  options.tree.kind = TreeKind::kDynamic;
  options.max_draft_len = 8;
  options.tree.dynamic_tree_max_top_k = 4;
  options.tree.max_total_draft_tokens = nodes;
  std::string keys;
  if (fits_entries && nodes < 32) {
    options.tree.dynamic_tree_max_top_k = 2;
    options.max_draft_len = std::min(8, nodes / 2);
    keys = "dynamic_tree_max_topK=2,";
  }
  keys += fmt::format("max_draft_len={},max_total_draft_tokens={}", options.max_draft_len, nodes);
  return {std::move(keys), std::move(options)};
}

// The tree that the drafter's files recommend.
DraftShape choices(SpeculativeOptions options) {
  options.tree.kind = TreeKind::kChoices;
  options.is_auto = false;
  return {"tree=choices,policy=fixed", std::move(options)};
}

// Only drafters that rank several tokens can use an expansion vector.
std::vector<DraftShape> shapes_for(SpeculativeOptions options, bool has_distributions, bool uses_target) {
  options.is_auto = false;
  options.shape_unset = {};  // each row is its own shape, not the usual one of the method
  std::vector<DraftShape> shapes;
  for (const int length : {1, 2, 4, 8}) shapes.push_back(chain(options, length));
  const std::vector<std::vector<int>> expansions = {{2, 2}, {4, 2, 1}, {1, 1, 3, 1, 1, 1, 1, 1}};
  for (const auto& widths : expansions) {
    if (has_distributions) shapes.push_back(expansion(options, widths));
  }
  for (const int nodes : {8, 16, 32}) shapes.push_back(dynamic(options, nodes, uses_target));
  DraftShape automatic = dynamic(options, 16, uses_target);
  automatic.options.is_auto = true;
  for (DraftShape& shape : shapes) shape.keys += ",policy=fixed";
  shapes.push_back(std::move(automatic));
  return shapes;
}

// The method as in --speculative.
std::string method_text(const SpeculativeOptions& given, const SpeculativeOptions& options) {
  std::string text = method_key(options.decoding_type);
  if (method_row(options.decoding_type).needs == MethodNeeds::kMethods) {
    text = "combine=[";
    for (const Method method : options.combine) {
      text += (text.back() == '[' ? "" : ",") + method_key(method);
    }
    text += "]";
  }
  if (!given.speculative_model.empty()) text += ",speculative_model=" + given.speculative_model.string();
  for (size_t i = 0; i < given.speculative_models.size(); ++i) {
    text += (i == 0 ? ",speculative_models=[" : ",") + given.speculative_models[i].string();
  }
  return given.speculative_models.empty() ? text : text + "]";
}

// The name of the drafter, as in statistics in snake case.
std::string drafter_text(const SpeculativeOptions& options) {
  if (method_row(options.decoding_type).needs != MethodNeeds::kMethods)
    return method_key(options.decoding_type);
  std::vector<std::string> members;
  for (const Method method : options.combine) members.push_back(method_key(method));
  return fmt::format("{}", fmt::join(members, "+"));
}

class Doctor {
 public:
  Doctor(const Settings& settings, std::vector<PromptRecord> prompts)
      : settings_(settings), prompts_(std::move(prompts)) {}

  // A drafter that is wrong is not timed: whether it is does not depend on how busy the machine is.
  Result<Diagnosis> examine(const OpenedFiles& files) {
    const EngineOptions& options = files.names.options;
    diagnosis_.temperature = settings_.request.sampling.temperature;
    OUTRIDER_RETURN_IF_ERROR(recognise(files));
    OUTRIDER_TRY(const SpeculativeOptions resolved, resolve_speculation(options.speculation, files.drafts));
    diagnosis_.speculative = method_text(settings_.engine.speculation, resolved);
    diagnosis_.method = drafter_text(resolved);
    diagnosis_.drafters = drafter_lines(files.search);
    OUTRIDER_TRY(diagnosis_.vocabulary, other_vocabulary(files));
    if (method_row(options.speculation.decoding_type).finds_files &&
        !files.names.options.speculation.speculative_model.empty())
      learned_ = method_of(files.drafts, options.speculation);
    OUTRIDER_RETURN_IF_ERROR(run_plain(options));
    OUTRIDER_RETURN_IF_ERROR(compare_distributions(options));
    if (diagnosis_.vocabulary) diagnosis_.share_of_text = share_of_answers(*diagnosis_.vocabulary);
    if (miswiring(diagnosis_).empty()) OUTRIDER_RETURN_IF_ERROR(try_repairs(files));
    if (!miswiring(diagnosis_).empty()) return std::move(diagnosis_);
    std::vector<DraftShape> shapes =
        shapes_for(options.speculation, diagnosis_.agreement.has_distributions, uses_target_);
    const std::optional<Method> method = find_method(diagnosis_.method);
    if (method && method_row(*method).usual.kind == TreeKind::kChoices)
      shapes.push_back(choices(options.speculation));
    ProgressBar progress("doctor", static_cast<int64_t>(shapes.size()));
    for (const DraftShape& shape : shapes) {
      OUTRIDER_RETURN_IF_ERROR(run_shape(options, shape));
      progress.advance();
    }
    OUTRIDER_RETURN_IF_ERROR(check_plain(options));
    return std::move(diagnosis_);
  }

 private:
  // Checks that a learned drafter fits the target, before it is run.
  Status recognise(const OpenedFiles& files) {
    const HeadFile* head = files.drafts.head_file();
    if (head == nullptr) return {};
    const ModelFile& target = files.target;
    diagnosis_.head = summarize_head(*head);
    const double theta = target.config.ropes.empty() ? 0.0 : target.config.ropes.front().theta;
    if (theta != 0.0 && diagnosis_.head->rope_theta != 0.0 && diagnosis_.head->rope_theta != theta)
      diagnosis_.target_rope_theta = theta;
    const auto reasons = misfits(*diagnosis_.head, target.config, target_fingerprint(target));
    if (reasons.empty()) return {};
    return head->fail(fmt::format("this {} drafter does not fit {}: {}", method_name(head->method),
                                  target.path.string(), fmt::join(reasons, "; ")));
  }

  Status run_plain(EngineOptions options) {
    options.speculation = {};
    OUTRIDER_TRY(const auto engine, Engine::open(options));
    diagnosis_.info = engine->info();
    OUTRIDER_TRY(PreparedPrompts prepared, prepare_prompts(std::move(prompts_), *engine, settings_));
    tokens_ = std::move(prepared.tokens);
    diagnosis_.prompts = tokens_.size();
    return run_repeatedly(*engine, diagnosis_.plain);
  }

  // Checks that the machine is as fast as before the shapes were measured.
  Status check_plain(EngineOptions options) {
    options.speculation = {};
    OUTRIDER_TRY(const auto engine, Engine::open(options));
    ShapeResult again;
    OUTRIDER_RETURN_IF_ERROR(run_repeatedly(*engine, again));
    ShapeResult& plain = diagnosis_.plain;
    const double drift = std::abs(again.ms_per_token() - plain.ms_per_token()) /
                         std::max(1e-9, std::min(again.ms_per_token(), plain.ms_per_token()));
    const double spread = std::max({plain.spread, again.spread, drift});
    if (again.ms_per_token() < plain.ms_per_token()) plain = std::move(again);
    plain.spread = spread;
    return {};
  }

  Status run_shape(EngineOptions options, const DraftShape& shape) {
    options.speculation = shape.options;
    OUTRIDER_TRY(const auto engine, Engine::open(options));
    ShapeResult result{.keys = shape.keys};
    OUTRIDER_RETURN_IF_ERROR(run_repeatedly(*engine, result));
    diagnosis_.shapes.push_back(std::move(result));
    return {};
  }

  // Keeps the fastest of several runs, since disturbances only make a run slower.
  Status run_repeatedly(Engine& engine, ShapeResult& result) {
    const std::string keys = result.keys;
    RepeatedTiming timing;
    while (!timing.is_enough()) {
      ShapeResult run{.keys = keys};
      if (keys.empty()) texts_.clear();
      OUTRIDER_RETURN_IF_ERROR(run_once(engine, run));
      timing.add(run.ms_per_token());
      if (run.ms_per_token() == timing.min()) result = std::move(run);
    }
    result.spread = timing.spread();
    return {};
  }

  Status run_once(Engine& engine, ShapeResult& result) {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      Request request = settings_.request;
      request.prompt = tokens_[i];
      request.sampling.seed += i;
      OUTRIDER_TRY(const TimedCompletion timed, generate_timed(engine, std::move(request)));
      const Completion& completion = timed.completion;
      result.tokens += static_cast<int64_t>(completion.tokens.size()) - timed.prompt_pass_tokens;
      result.decode_ms += completion.decode_ms;
      result.stats.steps += completion.speculation.steps;
      result.stats.drafted += completion.speculation.drafted;
      result.stats.accepted += completion.speculation.accepted;
      result.stats.committed += completion.speculation.committed;
      result.stats.draft_ms += completion.speculation.draft_ms;
      if (result.keys.empty()) keep_text(i, completion.tokens);
    }
    return {};
  }

  void keep_text(size_t prompt, const std::vector<TokenId>& output) {
    GivenText text{.tokens = tokens_[prompt], .prompt_length = static_cast<int64_t>(tokens_[prompt].size())};
    const auto count = std::min<size_t>(output.size(), kMaxPlaces);
    text.tokens.insert(text.tokens.end(), output.begin(), output.begin() + static_cast<ptrdiff_t>(count));
    texts_.push_back(std::move(text));
  }

  double share_of_answers(const OtherVocabulary& vocabulary) const {
    std::vector<TokenId> answers;
    for (const GivenText& text : texts_)
      answers.insert(answers.end(), text.tokens.begin() + text.prompt_length, text.tokens.end());
    return vocabulary.share_of_text(answers);
  }

  // A chain of one token. Auto's drafters from the text have no distributions to compare.
  SpeculativeOptions learned_chain(const SpeculativeOptions& options) const {
    SpeculativeOptions one = chain(options, 1).options;
    one.is_auto = false;
    one.shape_unset = {};
    if (learned_) one.decoding_type = *learned_;
    return one;
  }

  Status compare_distributions(EngineOptions options) {
    options.speculation = learned_chain(options.speculation);
    OUTRIDER_TRY(const auto parts, open_parts(options));
    uses_target_ = parts->drafter->traits().uses_target;
    OUTRIDER_TRY(diagnosis_.agreement, measure_agreement(*parts, texts_));
    return diagnosis_.target_rope_theta ? try_target_rope(std::move(options)) : Status();
  }

  Status try_target_rope(EngineOptions options) {
    OUTRIDER_TRY(const HeadTrial trial, HeadTrial::with_rope_theta(options.speculation.speculative_model,
                                                                   *diagnosis_.target_rope_theta));
    options.speculation.speculative_model = trial.path();
    OUTRIDER_TRY(const auto parts, open_parts(std::move(options)));
    OUTRIDER_TRY(const Agreement agreement, measure_agreement(*parts, texts_));
    diagnosis_.variation_at_target_rope = agreement.variation;
    return {};
  }

  // Agreement of a head over some of the texts, which say enough of weights in the wrong place.
  Result<double> variation_of(EngineOptions options, const std::filesystem::path& head) const {
    constexpr size_t kTexts = 3;
    options.speculation = learned_chain(options.speculation);
    options.speculation.speculative_model = head;
    OUTRIDER_TRY(const auto parts, open_parts(std::move(options)));
    OUTRIDER_TRY(const Agreement agreement,
                 measure_own_agreement(*parts, std::span(texts_).first(std::min(kTexts, texts_.size()))));
    return agreement.variation;
  }

  // A head whose weights are in the wrong places may agree too well to look wrong by itself.
  Status try_repairs(const OpenedFiles& files) {
    const EngineOptions& options = files.names.options;
    const std::filesystem::path& directory = options.speculation.speculative_model;
    std::error_code ignored;
    if (!diagnosis_.head || std::filesystem::equivalent(directory, options.model, ignored) ||
        !std::filesystem::is_regular_file(directory / "model.safetensors", ignored))
      return {};
    const std::vector<HeadRepair> repairs =
        usual_repairs(*files.drafts.head, files.target.config.hidden_size);
    OUTRIDER_TRY(const double without, variation_of(options, directory));
    ProgressBar progress("repairs", static_cast<int64_t>(repairs.size()));
    for (const HeadRepair& repair : repairs) {
      OUTRIDER_TRY(const HeadTrial trial, HeadTrial::with_repair(directory, repair));
      OUTRIDER_TRY(const double variation, variation_of(options, trial.path()));
      if (!diagnosis_.repair || variation < diagnosis_.repair->variation)
        diagnosis_.repair = {repair.what, variation, without};
      progress.advance();
    }
    return {};
  }

  const Settings& settings_;
  std::vector<PromptRecord> prompts_;
  std::vector<std::vector<TokenId>> tokens_;  // token ids of the prompts
  std::vector<GivenText> texts_;              // prompts with the target's own continuation
  bool uses_target_ = false;
  std::optional<Method> learned_;  // of the files that Auto drafts with
  Diagnosis diagnosis_;
};

}  // namespace

Status run_doctor(const Settings& settings) {
  Settings limited = settings;
  if (limited.prompts.limit == 0) limited.prompts.limit = kDefaultPrompts;
  OUTRIDER_TRY(std::vector<PromptRecord> prompts, load_prompts(limited));
  OUTRIDER_TRY(Names names, names_of(settings, Unasked::kAuto));
  if (names.options.speculation.decoding_type == Method::kNone)
    return usage_error("doctor examines a drafter: expected a method in --speculative, found none");
  OUTRIDER_TRY(const OpenedFiles files, open_files(std::move(names)));
  OUTRIDER_TRY(const Diagnosis diagnosis, Doctor(settings, std::move(prompts)).examine(files));
  write_output(settings.json ? json_line(diagnosis_json(diagnosis)) : diagnosis_text(diagnosis));
  return {};
}

}  // namespace outrider
