// SPDX-License-Identifier: Apache-2.0
// Files that are either complete or absent: written beside their place, flushed to disk, then renamed.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "outrider/result.h"

namespace outrider {

using ByteSink = std::function<Status(std::string_view bytes)>;

// Calls `produce` with a sink for the bytes. On any error the file at `path` is left as it was. It is also
// an error if another process is writing that file.
Status write_durably(const std::filesystem::path& path,
                     const std::function<Status(const ByteSink&)>& produce);
Status write_durably(const std::filesystem::path& path, std::string_view bytes);
// As write_durably(), but nothing is flushed: after a power cut the file may be there in part.
Status write_unflushed(const std::filesystem::path& path,
                       const std::function<Status(const ByteSink&)>& produce);
// Removes what killed processes have left of files that they were writing in the folder.
void remove_unfinished(const std::filesystem::path& directory);

// Error: write_durably() could not create the file at `path`. The check leaves no file.
Status check_writable(const std::filesystem::path& path);

// Flushes a folder's entries, so that a rename in it survives a power cut.
Status sync_directory(const std::filesystem::path& directory);

Status make_directories(const std::filesystem::path& directory);

}  // namespace outrider
