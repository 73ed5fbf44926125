// SPDX-License-Identifier: Apache-2.0
// The small target and draft that come with the program (models/README.md).
#pragma once

#include <array>
#include <filesystem>
#include <string_view>

#include "outrider/result.h"

namespace outrider {

// Names the built-in target where a command takes a model.
inline constexpr std::string_view kBuiltinName = "builtin";

// Where models lie that come with the program: beside an installation, in the source tree that this was built
// from, and in the current directory. Not all of the folders need exist.
std::array<std::filesystem::path, 3> shipped_model_folders();

// Error: the models are not installed.
Result<std::filesystem::path> builtin_target();
Result<std::filesystem::path> builtin_draft();

bool is_builtin_target(const std::filesystem::path& model);

}  // namespace outrider
