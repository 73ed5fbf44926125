// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "outrider/result.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/draft_head.h"

namespace outrider::training {

// Writes config.json, which names the target and has what `learned` says, and model.safetensors (bf16) into
// the folder.
Status write_head(const DraftHead& head, const FrozenTarget& target, const nlohmann::json& learned,
                  const std::filesystem::path& folder);

// config.json alone, with more that was learned.
Status write_head_config(const DraftHead& head, const FrozenTarget& target, const nlohmann::json& learned,
                         const std::filesystem::path& folder);

// Moves these files from one folder to another.
Status move_head(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace outrider::training
