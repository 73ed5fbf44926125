// SPDX-License-Identifier: Apache-2.0
#include "cli/open_engine.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <system_error>

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTarget = "outrider-small";
constexpr std::string_view kDraft = "outrider-draft";

bool holds_model(const fs::path& directory) {
  std::error_code code;
  return fs::is_regular_file(directory / "config.json", code);
}

// Looked for in the source tree this was built from, beside an installation, and in the current directory.
Result<fs::path> default_model(std::string_view name) {
  std::error_code code;
  const fs::path program = fs::read_symlink("/proc/self/exe", code);
  const std::array<fs::path, 3> folders = {fs::path(OUTRIDER_SOURCE_MODELS),
                                           program.parent_path() / "../share/outrider/models",
                                           fs::path("models")};
  for (const fs::path& folder : folders) {
    if (holds_model(folder / name)) return (folder / name).lexically_normal();
  }
  return input_error(fmt::format("expected the default model {} in {}, found none; name a MODEL", name,
                                 folders.front().string()));
}

}  // namespace

Result<fs::path> chosen_model(const Settings& settings) {
  if (!settings.engine.model.empty()) return settings.engine.model;
  return default_model(kTarget);
}

Result<EngineOptions> complete_engine_options(const Settings& settings) {
  EngineOptions options = settings.engine;
  OUTRIDER_TRY(options.model, chosen_model(settings));
  if (options.speculation.decoding_type == "DraftTarget" && options.speculation.speculative_model.empty()) {
    if (!settings.engine.model.empty()) {
      return usage_error("DraftTarget needs a draft model: --speculative draft_target,speculative_model=DIR");
    }
    OUTRIDER_TRY(options.speculation.speculative_model, default_model(kDraft));
  }
  return options;
}

Result<EngineOptions> complete_speculative_options(const Settings& settings) {
  if (settings.speculation_given) return complete_engine_options(settings);
  Settings speculative = settings;
  speculative.engine.speculation.decoding_type = settings.engine.model.empty() ? "DraftTarget" : "NGram";
  return complete_engine_options(speculative);
}

Result<std::unique_ptr<Engine>> open_engine(const Settings& settings) {
  OUTRIDER_TRY(EngineOptions options, complete_engine_options(settings));
  return Engine::open(std::move(options));
}

}  // namespace outrider
