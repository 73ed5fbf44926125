// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "outrider/result.h"
#include "training/core/decoder_layers.h"
#include "training/head_data/frozen_target.h"
#include "training/heads/draft_head.h"

namespace outrider::training {

// The fields of config.json that describe a drafter's layers, by Hugging Face's names.
nlohmann::json layer_config(const ModelConfig& target, const LayerShape& shape);

// The target's files that a draft model takes along.
std::vector<std::filesystem::path> tokenizer_files(const FrozenTarget& target);
// Error: the target has no tokenizer.json, which draft models need.
Status check_tokenizer_file(const FrozenTarget& target);

// Writes config.json, with the target's name and the fields of `learned`, and model.safetensors (bf16) into
// the folder.
Status write_head(const DraftHead& head, const FrozenTarget& target, const nlohmann::json& learned,
                  const std::filesystem::path& folder);

// Writes only config.json, with the fields of `learned`.
Status write_head_config(const DraftHead& head, const FrozenTarget& target, const nlohmann::json& learned,
                         const std::filesystem::path& folder);

// Copies the tensors of a written head into the parameters of a head of the same kind. Error: a tensor that
// is missing or has another shape.
Status read_head(const std::filesystem::path& folder, const DraftHead& head);

// Moves all files from one folder to another and removes the first.
Status move_head(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace outrider::training
