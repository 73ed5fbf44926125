// SPDX-License-Identifier: Apache-2.0
#include "open/builtin_models.h"

#include <dlfcn.h>
#include <fmt/format.h>

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
  const fs::path folder = shipped_models();
  if (holds_model(folder / name)) return folder / name;
  return input_error(
      fmt::format("expected the built-in model {} in {}, found none; name a MODEL", name, folder.string()));
}

}  // namespace

fs::path shipped_models() {
  std::error_code code;
  const fs::path program = fs::weakly_canonical(own_file(), code);  // which may be called by a link
  const fs::path folder = program.parent_path() / "../share/outrider/models";
  const fs::path resolved = fs::weakly_canonical(folder, code);  // a build has a link to the source tree
  return code ? folder.lexically_normal() : resolved;
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
