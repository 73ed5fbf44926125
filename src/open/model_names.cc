// SPDX-License-Identifier: Apache-2.0
#include "open/model_names.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "config/option_table.h"
#include "formats/random_model.h"
#include "hub/local/local_models.h"
#include "hub/remote/hub_reference.h"
#include "open/builtin_models.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

bool is_path(const fs::path& text) {
  std::error_code code;
  return text.empty() || text.is_absolute() || is_shape_path(text) || fs::exists(text, code);
}

class ModelFinder {
 public:
  explicit ModelFinder(const FetchModel& fetch) : fetch_(fetch) {}

  Status find(fs::path& model) {
    if (is_path(model)) return {};
    if (model == kBuiltinName) {
      OUTRIDER_TRY(model, builtin_target());
      return {};
    }
    if (!models_) models_ = list_local_models(model_folders());
    const std::string name = model.string();
    OUTRIDER_TRY(std::optional<LocalModel> found, look_for_model(name, *models_));
    if (!found) {
      OUTRIDER_TRY(const std::optional<fs::path> fetched, fetch(name));
      if (fetched) model = *fetched;
      if (fetched) return {};
      OUTRIDER_TRY(found, find_local_model(name, *models_));
    }
    model = found->path;
    return {};
  }

 private:
  Result<std::optional<fs::path>> fetch(std::string_view name) const {
    const auto reference = parse_hub_reference(name);
    return fetch_ && reference.ok() ? fetch_(*reference) : Result<std::optional<fs::path>>(std::nullopt);
  }

  const FetchModel& fetch_;
  std::optional<std::vector<LocalModel>> models_;  // read from disk where a name is used
};

// "model" is optional for every command that has it, except for quantize.
bool has_default_model(const Settings& settings) {
  if (settings.command == Command::kQuantize || !settings.shape.empty()) return false;
  for (const OptionRow& row : option_table()) {
    if (row.name == "model" && row.belongs_to(settings.command)) return true;
  }
  return false;
}

Status choose_default(Settings& settings, const FirstUse& first_use) {
  const KnownModel& known = default_known_model();
  const fs::path path = default_model_file(model_folders());
  std::error_code code;
  if (fs::is_regular_file(path, code)) {
    settings.engine.model = path;
    settings.model_name = known.name;
    return {};
  }
  if (first_use.choose) {
    OUTRIDER_TRY(const std::optional<fs::path> chosen, first_use.choose());
    if (chosen) settings.engine.model = *chosen;
    if (chosen) return {};
  }
  OUTRIDER_TRY(settings.engine.model, builtin_target());
  settings.warnings.push_back(
      fmt::format("the small built-in models stand in for SmolLM2, which is not on this machine; outrider "
                  "pull {} fetches it (98 MB)",
                  known.name));
  return {};
}

}  // namespace

std::filesystem::path default_model_file(const ModelFolders& folders) {
  const KnownModel& known = default_known_model();
  return folders.outrider / known.repository / known.wanted;
}

Status find_models(Settings& settings, const FirstUse& first_use) {
  ModelFinder finder(first_use.fetch);
  EngineOptions& engine = settings.engine;
  if (!is_path(engine.model) && engine.model != kBuiltinName) settings.model_name = engine.model.string();
  OUTRIDER_RETURN_IF_ERROR(finder.find(engine.model));
  OUTRIDER_RETURN_IF_ERROR(finder.find(engine.speculation.speculative_model));
  for (fs::path& model : engine.speculation.speculative_models) OUTRIDER_RETURN_IF_ERROR(finder.find(model));
  const bool has_several = !settings.server.models.empty();  // of `serve`
  return engine.model.empty() && has_default_model(settings) && !has_several
             ? choose_default(settings, first_use)
             : Status();
}

}  // namespace outrider
