// SPDX-License-Identifier: Apache-2.0
#include "setup/open_engine.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "config/environment.h"
#include "config/methods.h"
#include "config/speculative_config.h"
#include "draft_heads/head_file.h"
#include "formats/random_model.h"
#include "setup/builtin_models.h"
#include "setup/drafter_search.h"
#include "setup/own_drafter.h"

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

constexpr std::string_view kOneModel = "speculative_model=DIR";
constexpr std::string_view kSeveralModels = "speculative_models=[DIR,DIR]";

// The head for `method`: the target's own files, where it lies among them, else one beside the target, else
// one elsewhere that names it.
Result<fs::path> chosen_head(const fs::path& target, Method method) {
  const auto own = open_head(target);
  if (own.ok() && stands_for(method, own->method)) return target;
  if (const auto head = find_head_beside(target, method)) return *head;
  if (const auto head = find_named_head(target, method)) return *head;
  return usage_error(
      fmt::format("{} needs a drafter trained for this target, found none beside it in {}, in the cache of "
                  "pull or with the program: add {} to --speculative",
                  method_key(method), folder_of(target).string(), kOneModel));
}

// Names the files that a method needs, where the options name none.
Status complete_files(const MethodRow& row, const Settings& settings, EngineOptions& options) {
  SpeculativeOptions& speculation = options.speculation;
  if (row.needs == MethodNeeds::kDraftModels && speculation.speculative_models.empty()) {
    OUTRIDER_TRY(const fs::path draft, chosen_draft(settings, kSeveralModels));
    speculation.speculative_models = {draft};
  }
  if (!speculation.speculative_model.empty()) return {};
  if (row.needs == MethodNeeds::kDraftModel) {
    OUTRIDER_TRY(speculation.speculative_model, chosen_draft(settings, kOneModel));
  } else if (row.needs == MethodNeeds::kHead) {
    OUTRIDER_TRY(speculation.speculative_model, chosen_head(options.model, row.method));
  }
  return {};
}

// The files that Auto drafts with; empty: there are none.
fs::path drafter_for_auto(const Settings& settings) {
  if (const auto draft = chosen_draft(settings, kOneModel); draft.ok()) return *draft;
  if (!settings.shape.empty()) return {};
  return find_own_drafter(settings.engine.model).value_or(fs::path());
}

// As "--speculative auto" says.
Result<SpeculativeOptions> automatic_speculation() {
  OUTRIDER_TRY(SpeculativeConfig automatic, parse_speculative(method_key(Method::kAuto)));
  return std::move(automatic.options);
}

}  // namespace

Result<fs::path> chosen_model(const Settings& settings) {
  if (!settings.shape.empty()) return chosen_shape(settings);
  return settings.engine.model;
}

Result<EngineOptions> complete_engine_options(const Settings& settings) {
  EngineOptions options = settings.engine;
  OUTRIDER_TRY(options.model, chosen_model(settings));
  if (options.cache_dir.empty()) {
    options.cache_dir = user_cache_directory();
  } else if (options.cache_dir == "none") {
    options.cache_dir.clear();
  }
  if (options.memory_limit > 0 && options.packed_cache.empty() && !options.cache_dir.empty())
    options.packed_cache = options.cache_dir / "packed";
  SpeculativeOptions& speculation = options.speculation;
  const bool takes_draft =
      speculation.decoding_type == Method::kDraftTarget || speculation.decoding_type == Method::kAuto;
  if (!settings.draft_shape.empty() && (!takes_draft || !speculation.speculative_model.empty())) {
    return usage_error(
        "--draft-shape names the draft model of draft_target; found another one, or another method");
  }
  for (const MethodRow& row : method_table()) {
    if (drafts_with(speculation, row.method))
      OUTRIDER_RETURN_IF_ERROR(complete_files(row, settings, options));
  }
  if (speculation.decoding_type == Method::kAuto && speculation.speculative_model.empty())
    speculation.speculative_model = drafter_for_auto(settings);
  return options;
}

Result<EngineOptions> complete_decoding_options(const Settings& settings) {
  if (settings.speculation_given) return complete_engine_options(settings);
  Settings decoding = settings;
  OUTRIDER_TRY(decoding.engine.speculation, automatic_speculation());
  return complete_engine_options(decoding);
}

Result<EngineOptions> complete_bench_options(const Settings& settings) {
  if (!settings.speculation_given && !settings.shape.empty()) return complete_drafting_options(settings);
  OUTRIDER_TRY(EngineOptions options, complete_decoding_options(settings));
  options.calibrate = options.speculation.is_auto;
  return options;
}

Result<EngineOptions> complete_drafting_options(const Settings& settings) {
  if (settings.speculation_given) return complete_engine_options(settings);
  Settings drafting = settings;
  const bool has_draft = !settings.draft_shape.empty() || is_builtin_target(settings.engine.model);
  drafting.engine.speculation.decoding_type = has_draft ? Method::kDraftTarget : Method::kNGram;
  return complete_engine_options(drafting);
}

Result<EngineOptions> complete_serving_options(const Settings& settings) {
  Settings serving = settings;
  serving.engine.calibrate = true;  // requests may ask for policy auto, and /metrics tells the speed-up
  return complete_decoding_options(serving);
}

Result<std::unique_ptr<Engine>> open_engine(const Settings& settings) {
  OUTRIDER_TRY(EngineOptions options, complete_decoding_options(settings));
  return Engine::open(std::move(options));
}

}  // namespace outrider
