// SPDX-License-Identifier: Apache-2.0
// The files of runs in a folder of all models: their names, and how they are kept within a number of bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kv/disk/page_run.h"

namespace outrider {

// The folder of the runs of one identity.
std::filesystem::path folder_of(const std::filesystem::path& all, std::string_view identity);

// A file is named after its run and the run before it.
std::string file_name(const RunId& id, const RunId& before);
struct RunName {
  RunId id, before;
};
std::optional<RunName> parse_file_name(std::string_view name);  // nullopt: another file

// Marks the file as used now.
void mark_used(const std::filesystem::path& path);

struct Trimmed {
  int64_t bytes = 0;           // that are left
  std::vector<RunId> removed;  // files of any identity
};
// Removes files of all identities until they take `max_bytes`: the one used least recently of those that no
// file follows, again and again, so that what is left of a text is its beginning. Files that cannot be
// removed are left.
Trimmed trim_files(const std::filesystem::path& all, int64_t max_bytes);

}  // namespace outrider
