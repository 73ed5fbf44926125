// SPDX-License-Identifier: Apache-2.0
#include "cli/builtin_models.h"

#include <fmt/format.h>

#include <array>
#include <system_error>

namespace outrider {
namespace {

namespace fs = std::filesystem;

bool holds_model(const fs::path& directory) {
  std::error_code code;
  return fs::is_regular_file(directory / "config.json", code);
}

// Looks in the source tree that this was built from, beside an installation, and in the current directory.
Result<fs::path> builtin_model(std::string_view name) {
  std::error_code code;
  const fs::path program = fs::read_symlink("/proc/self/exe", code);
  const std::array<fs::path, 3> folders = {fs::path(OUTRIDER_SOURCE_MODELS),
                                           program.parent_path() / "../share/outrider/models",
                                           fs::path("models")};
  for (const fs::path& folder : folders) {
    if (holds_model(folder / name)) return (folder / name).lexically_normal();
  }
  return input_error(fmt::format("expected the built-in model {} in {}, found none; name a MODEL", name,
                                 folders.front().string()));
}

}  // namespace

Result<fs::path> builtin_target() { return builtin_model("outrider-small"); }
Result<fs::path> builtin_draft() { return builtin_model("outrider-draft"); }

bool is_builtin_target(const fs::path& model) {
  if (model.empty()) return false;
  const auto target = builtin_target();
  std::error_code code;
  return target.ok() && fs::equivalent(model, *target, code);
}

}  // namespace outrider
