// SPDX-License-Identifier: Apache-2.0
// The small target and draft that come with the program (models/README.md).
#pragma once

#include <filesystem>
#include <string_view>

#include "outrider/result.h"

namespace outrider {

// Names the built-in target where a command takes a model.
inline constexpr std::string_view kBuiltinName = "builtin";

// Where models lie that come with the program: share/outrider/models beside the folder of the program or
// library, in an installation and in a build. The folder need not exist. No other place is trusted: others
// may write to the current directory, or to the place of a build on another machine.
std::filesystem::path shipped_models();

// Error: the models are not installed.
Result<std::filesystem::path> builtin_target();
Result<std::filesystem::path> builtin_draft();

bool is_builtin_target(const std::filesystem::path& model);

}  // namespace outrider
