// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "formats/model_file.h"
#include "outrider/result.h"

namespace outrider::training {

// The folder in which commands look for heads of this model: beside it where files can be written there and
// no other program keeps it, else "trained" in the user's models.
std::filesystem::path place_of_heads(const ModelFile& target);

// The name of the model's file or folder, without ".gguf".
std::string model_stem(const std::filesystem::path& model);

// Copies a head's files to folder `to`, which then has all of them. Error: another thing has that name.
Status install_head(const std::filesystem::path& head, const std::filesystem::path& to);

// Error: `auto` takes another drafter for this model than the one in folder `head`, which the message names.
Status check_found(const ModelFile& target, const std::filesystem::path& head);

}  // namespace outrider::training
