// SPDX-License-Identifier: Apache-2.0
#include "open/drafters/drafter_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "config/environment.h"
#include "config/methods.h"
#include "hub/local/local_models.h"
#include "hub/remote/quant_name.h"
#include "open/builtin_models.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// More entries of one folder are not looked at: it is no folder of models.
constexpr size_t kMaxEntries = 4096;

// In the order of their names; none where the folder cannot be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code)) {
    entries.push_back(entry->path());
    if (entries.size() == kMaxEntries) break;
  }
  std::ranges::sort(entries);
  return entries;
}

bool holds_config(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(path / "config.json", code);
}

bool may_be_drafter(const fs::path& path) {
  const std::string name = path.filename().string();
  if (path.extension() != ".gguf") return holds_config(path);
  const auto shard = shard_place(name);
  return is_model_file_name(name) && (!shard || shard->index == 1);
}

using Candidates = std::vector<DrafterCandidate>;

void add_folder(const fs::path& folder, Candidates& into) {
  for (const fs::path& path : entries_of(folder)) {
    if (may_be_drafter(path))
      into.push_back({.path = path,
                      .name = path.filename().string(),
                      .place = "beside the target",
                      .is_beside = true,
                      .bytes = weight_bytes(path)});
  }
}

// Publishers put drafters into folders with the name of their kind.
void add_drafter_folders(const fs::path& folder, Candidates& into) {
  for (const fs::path& path : entries_of(folder)) {
    std::error_code code;
    const auto method = find_method(path.filename().string());
    if (method && method_row(*method).needs == MethodNeeds::kHead && fs::is_directory(path, code))
      add_folder(path, into);
  }
}

void add_beside(const ModelFile& target, Candidates& into) {
  std::error_code code;
  const fs::path folder = folder_of(target.path);
  const fs::path linked = fs::weakly_canonical(target.path, code).parent_path();
  for (const fs::path& beside : {folder, linked}) {
    add_folder(beside, into);
    add_drafter_folders(beside, into);
    if (folder == linked) break;
  }
  if (!fs::is_directory(target.path, code)) return;
  add_folder(target.path, into);  // files beside the shards of a directory
  add_drafter_folders(target.path, into);
}

void add_caches(const ModelFile&, Candidates& into) {
  for (LocalModel& model : list_local_models(model_folders())) {
    into.push_back({.path = std::move(model.path),
                    .name = std::move(model.name),
                    .place = std::move(model.place),
                    .is_beside = false,
                    .bytes = model.bytes});
  }
}

void add_shipped(const ModelFile&, Candidates& into) {
  for (const fs::path& path : entries_of(shipped_models())) {
    if (holds_config(path))
      into.push_back({.path = path,
                      .name = path.filename().string(),
                      .place = "the program",
                      .is_beside = false,
                      .may_be_model = false,
                      .bytes = weight_bytes(path)});
  }
}

// The places, in the order in which equally good drafters are taken.
constexpr void (*kPlaces[])(const ModelFile& target, Candidates& into) = {add_beside, add_caches,
                                                                          add_shipped};

// Leaves out the target, and every further way to a file.
void keep_first_of_each(const ModelFile& target, Candidates& candidates) {
  std::error_code code;
  std::set<fs::path> seen = {fs::weakly_canonical(target.path, code)};
  std::erase_if(candidates, [&](const DrafterCandidate& candidate) {
    return !seen.insert(fs::weakly_canonical(candidate.path, code)).second;
  });
}

}  // namespace

fs::path folder_of(const fs::path& model) {
  std::error_code code;
  const fs::path absolute = fs::absolute(model, code).lexically_normal();
  return (absolute.has_filename() ? absolute : absolute.parent_path()).parent_path();
}

int64_t weight_bytes(const fs::path& path) {
  const auto holds_weights = [](const fs::path& file) {
    return file.extension() == ".gguf" || file.extension() == ".safetensors" || file.extension() == ".bin" ||
           file.extension() == ".pt";
  };
  const auto size_of = [](const fs::path& file) {
    std::error_code code;
    const uintmax_t size = fs::file_size(file, code);
    return code ? 0 : static_cast<int64_t>(size);
  };
  std::error_code code;
  if (!fs::is_directory(path, code)) return size_of(path);
  int64_t sum = 0;
  for (const fs::path& file : entries_of(path)) sum += holds_weights(file) ? size_of(file) : 0;
  return sum;
}

Candidates drafter_candidates(const ModelFile& target) {
  Candidates candidates;
  for (const auto& add_place : kPlaces) add_place(target, candidates);
  keep_first_of_each(target, candidates);
  return candidates;
}

Result<Candidates> candidates_in(const std::vector<fs::path>& folders, const ModelFile& target) {
  Candidates candidates;
  for (const fs::path& folder : folders) {
    std::error_code code;
    const fs::directory_iterator readable(folder, code);
    if (code) {
      return input_error(
          fmt::format("expected a folder of drafters, found {}: {}", folder.string(), code.message()));
    }
    add_folder(folder, candidates);
  }
  keep_first_of_each(target, candidates);
  return candidates;
}

}  // namespace outrider
