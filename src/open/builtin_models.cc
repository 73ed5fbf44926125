// SPDX-License-Identifier: Apache-2.0
#include "open/builtin_models.h"

#include <dlfcn.h>
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

// The file that holds this code: the program, or a library in a program of somebody else.
fs::path own_file() {
  std::error_code code;
  Dl_info info = {};
  static const char kHere = 0;
  const bool is_known = dladdr(&kHere, &info) != 0 && info.dli_fname != nullptr;
  const fs::path file = is_known ? info.dli_fname : "";
  return file.is_absolute() ? file : fs::read_symlink("/proc/self/exe", code);
}

Result<fs::path> builtin_model(std::string_view name) {
  const std::array<fs::path, 3> folders = shipped_model_folders();
  for (const fs::path& folder : folders) {
    if (holds_model(folder / name)) return (folder / name).lexically_normal();
  }
  return input_error(fmt::format("expected the built-in model {} in {}, found none; name a MODEL", name,
                                 folders.front().lexically_normal().string()));
}

}  // namespace

std::array<fs::path, 3> shipped_model_folders() {
  return {own_file().parent_path() / "../share/outrider/models", fs::path(OUTRIDER_SOURCE_MODELS),
          fs::path("models")};
}

Result<fs::path> builtin_target() { return builtin_model("outrider-small"); }
Result<fs::path> builtin_draft() { return builtin_model("outrider-draft"); }

bool is_builtin_target(const fs::path& model) {
  if (model.empty()) return false;
  const auto target = builtin_target();
  std::error_code code;
  return target.ok() && fs::equivalent(model, *target, code);
}

}  // namespace outrider
