// SPDX-License-Identifier: Apache-2.0
#include "open/names.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "config/environment.h"
#include "config/methods.h"
#include "config/speculative_config.h"
#include "formats/random_model.h"
#include "open/builtin_models.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// The type in which a shape's weights are made, so that loading has nothing to convert.
DType shape_type(WeightPrecision precision) {
  switch (precision) {
    case WeightPrecision::kF32:
      return DType::kF32;
    case WeightPrecision::kQ8_0:
    case WeightPrecision::kQ8:  // converted as it is loaded
      return DType::kQ8_0;
    case WeightPrecision::kQ4:
      return DType::kQ4_0;
    case WeightPrecision::kAuto:
    case WeightPrecision::kBF16:
    case WeightPrecision::kF8:  // converted as it is loaded
      break;
  }
  return DType::kBF16;
}

Result<fs::path> chosen_shape(const Settings& settings) {
  if (!settings.engine.model.empty()) {
    return usage_error(fmt::format("expected MODEL or --shape, found both: {} and {}",
                                   settings.engine.model.string(), settings.shape));
  }
  OUTRIDER_TRY(const ModelConfig config, shape_config(settings.shape));
  return shape_path(settings.shape, shape_type(settings.engine.weights), config.vocab_size);
}

// A draft has the target's vocabulary, whatever its shape was published with.
Result<fs::path> chosen_draft_shape(const Settings& settings) {
  if (is_shape_path(settings.engine.model)) {
    OUTRIDER_RETURN_IF_ERROR(shape_config(settings.draft_shape));
    return draft_of_shape(settings.engine.model, settings.draft_shape);
  }
  if (settings.shape.empty()) {
    return usage_error(
        "--draft-shape goes with --shape only: the draft of a real model needs its vocabulary");
  }
  OUTRIDER_RETURN_IF_ERROR(shape_config(settings.draft_shape));
  OUTRIDER_TRY(const ModelConfig target, shape_config(settings.shape));
  return shape_path(settings.draft_shape, shape_type(settings.engine.weights), target.vocab_size);
}

// missing: the key that would name it.
Result<fs::path> chosen_draft(const Settings& settings, std::string_view missing) {
  if (!settings.draft_shape.empty()) return chosen_draft_shape(settings);
  if (is_builtin_target(settings.engine.model)) return builtin_draft();
  return usage_error(fmt::format("{} needs a draft model, found none: add {} to --speculative",
                                 method_key(settings.engine.speculation.decoding_type), missing));
}

bool has_draft(const Settings& settings) {
  return !settings.draft_shape.empty() || is_builtin_target(settings.engine.model);
}

// Settings that ask for the speculation of a command which was not asked for any.
Result<Settings> with_speculation(Settings settings, Unasked unasked) {
  if (settings.speculation_given || unasked == Unasked::kPlain) return settings;
  SpeculativeOptions& speculation = settings.engine.speculation;
  if (unasked == Unasked::kDraft || !settings.shape.empty()) {
    speculation.decoding_type = usual_method(has_draft(settings));
    return settings;
  }
  OUTRIDER_TRY(SpeculativeConfig automatic, parse_speculative("auto"));
  speculation = std::move(automatic.options);
  return settings;
}

// Names the draft models that a method needs, where the options name none.
Status name_drafts(MethodNeeds needs, const Settings& settings, SpeculativeOptions& speculation) {
  if (needs == MethodNeeds::kDraftModels && speculation.speculative_models.empty()) {
    OUTRIDER_TRY(const fs::path draft, chosen_draft(settings, "speculative_models=[DIR,DIR]"));
    speculation.speculative_models = {draft};
  }
  if (needs == MethodNeeds::kDraftModel && speculation.speculative_model.empty()) {
    OUTRIDER_TRY(speculation.speculative_model, chosen_draft(settings, "speculative_model=DIR"));
  }
  return {};
}

Status check_draft_shape(const Settings& settings) {
  const SpeculativeOptions& speculation = settings.engine.speculation;
  const Method method = speculation.decoding_type;
  const bool takes_draft = method == usual_method(true) || method_row(method).finds_files;
  if (settings.draft_shape.empty() || (takes_draft && speculation.speculative_model.empty())) return {};
  return usage_error(
      "--draft-shape names the draft model of draft_target; found another one, or another method");
}

// Error: a corpus that no drafter would read.
Status check_corpus(const EngineOptions& options) {
  const SpeculativeOptions& speculation = options.speculation;
  const bool is_read = speculation.method_unset || method_row(speculation.decoding_type).finds_files ||
                       reads_corpus(speculation);
  if (options.corpus.empty() || is_read) return {};
  return usage_error(
      fmt::format("--corpus expects a method that drafts from it, found {}: use suffix or auto, or "
                  "combined,combine=[suffix,...]",
                  method_key(speculation.decoding_type)));
}

void choose_caches(EngineOptions& options) {
  if (options.cache_dir.empty()) {
    options.cache_dir = user_cache_directory();
  } else if (options.cache_dir == "none") {
    options.cache_dir.clear();
  }
  if (options.memory_limit > 0 && options.packed_cache.empty() && !options.cache_dir.empty())
    options.packed_cache = options.cache_dir / "packed";
  if (!options.corpus.empty() && options.corpus_cache.empty() && !options.cache_dir.empty())
    options.corpus_cache = options.cache_dir / "corpus";
}

}  // namespace

Result<fs::path> chosen_model(const Settings& settings) {
  if (!settings.shape.empty()) return chosen_shape(settings);
  return settings.engine.model;
}

Result<Names> names_of(const Settings& given, Unasked unasked) {
  OUTRIDER_TRY(const Settings settings, with_speculation(given, unasked));
  Names names(settings.engine);
  OUTRIDER_TRY(names.options.model, chosen_model(settings));
  choose_caches(names.options);
  OUTRIDER_RETURN_IF_ERROR(check_draft_shape(settings));
  if (unasked != Unasked::kPlain || settings.speculation_given)
    OUTRIDER_RETURN_IF_ERROR(check_corpus(names.options));
  SpeculativeOptions& speculation = names.options.speculation;
  for (const MethodRow& row : method_table()) {
    if (drafts_with(speculation, row.method))
      OUTRIDER_RETURN_IF_ERROR(name_drafts(row.needs, settings, speculation));
  }
  if (method_row(speculation.decoding_type).finds_files && speculation.speculative_model.empty()) {
    if (auto draft = chosen_draft(settings, ""); draft.ok())
      speculation.speculative_model = std::move(draft).value();
  }
  names.finds_drafter = true;
  return names;
}

}  // namespace outrider
