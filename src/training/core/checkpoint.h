// SPDX-License-Identifier: Apache-2.0
// Checkpoints: everything a run needs to go on as if it had never stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "outrider/result.h"
#include "training/core/adamw.h"
#include "training/core/run_history.h"
#include "training/lm/llama.h"

namespace outrider::training {

// A folder step-<number> with tensors.safetensors (parameters and moments) and state.json, written under
// another name, flushed, then renamed: what bears the name is complete. Older checkpoints but one are removed
// afterwards.
Status save_checkpoint(const std::filesystem::path& directory, const NamedTensors& parameters,
                       const AdamW& optimizer, const RunHistory& history, const std::string& fingerprint);

// The newest complete checkpoint's folder, if there is one.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& directory);

// Fills the parameters and the optimizer in place. Errors: a checkpoint of a run with another
// fingerprint (other data, shape or seed), or a damaged file.
Result<RunHistory> load_checkpoint(const std::filesystem::path& checkpoint, const NamedTensors& parameters,
                                   AdamW& optimizer, const std::string& fingerprint);

}  // namespace outrider::training
