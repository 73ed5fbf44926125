// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "outrider/result.h"
#include "outrider/token.h"

namespace outrider {

// The tokens that a head may draft, as rising ids, from a JSON array of ids or a file in which torch.save()
// wrote a list of them, as FR-Spec (2502.14856) and SGLang do. An empty path gives none.
// Errors: no such file, another form; no id, one that is negative, too large or there twice.
Result<std::vector<TokenId>> read_token_map(const std::filesystem::path& path);

}  // namespace outrider
