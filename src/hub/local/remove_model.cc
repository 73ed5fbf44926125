// SPDX-License-Identifier: Apache-2.0
#include "hub/local/remove_model.h"

#include <fmt/format.h>

#include <system_error>
#include <vector>

#include "base/quote.h"
#include "hub/remote/quant_name.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

Error not_removed(const fs::path& path, const std::error_code& code) {
  return resource_error(fmt::format("{}: cannot be removed: {}", path.string(), code.message()));
}

// The file, or all shards of its model.
std::vector<fs::path> files_of(const fs::path& file) {
  const auto place = shard_place(file.filename().string());
  if (!place) return {file};
  std::vector<fs::path> files;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(file.parent_path(), code)) {
    const auto other = shard_place(entry.path().filename().string());
    if (other && other->stem == place->stem) files.push_back(entry.path());
  }
  return files;
}

}  // namespace

Result<int64_t> remove_local_model(const LocalModel& model, const fs::path& root) {
  const fs::path inner = model.path.lexically_normal().lexically_relative(root.lexically_normal());
  if (inner.empty() || *inner.begin() == ".." || *inner.begin() == ".") {
    return usage_error(fmt::format("expected a model in {}, found {}, which {} keeps: remove it there",
                                   root.string(), quote(model.name), model.place));
  }
  std::error_code code;
  const bool is_folder = fs::is_directory(fs::symlink_status(model.path, code));
  for (const fs::path& path : is_folder ? std::vector{model.path} : files_of(model.path)) {
    if (fs::remove_all(path, code); code) return not_removed(path, code);
  }
  for (fs::path folder = model.path.parent_path(); folder != root && fs::is_empty(folder, code) && !code;
       folder = folder.parent_path()) {
    if (!fs::remove(folder, code)) return not_removed(folder, code);
  }
  return model.bytes;
}

}  // namespace outrider
