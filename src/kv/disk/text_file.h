// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "kv/kv_cache.h"
#include "outrider/result.h"

namespace outrider {

// A text in a separate file, with the pages that a cache has of it. Where layers have states, a second file
// beside it, with ".state" at the end of its name, holds the state.
struct TextFile {
  std::vector<TokenId> tokens;  // of whole pages
  int64_t bytes = 0;            // of both files
};

// Writes the pages that begin `tokens`, as far as a sequence can go on from them. `identity`: as KvDisk has
// it. Errors: the file system's; kInput: the cache has none.
Result<TextFile> save_text(KvCache& cache, std::span<const TokenId> tokens, uint64_t scope,
                           std::string_view identity, const std::filesystem::path& path);
// Brings the pages back within that scope, as far as there is room for them; with a state, all or none.
// Errors: the file system's; kInput: a file that is damaged, or of another identity; no room for the text of
// a state.
Result<TextFile> load_text(KvCache& cache, uint64_t scope, std::string_view identity,
                           const std::filesystem::path& path);

}  // namespace outrider
