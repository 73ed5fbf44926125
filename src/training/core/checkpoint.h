// SPDX-License-Identifier: Apache-2.0
// A checkpoint holds everything a run needs to go on as if it had never stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "outrider/result.h"
#include "training/core/named_tensors.h"
#include "training/core/optimizer.h"
#include "training/core/run_history.h"

namespace outrider::training {

// Writes a folder step-<number> with tensors.safetensors (parameters and moments) and state.json under a
// temporary name, flushes and renames it, so that a folder of that name is complete. Then removes all older
// checkpoints but one.
Status save_checkpoint(const std::filesystem::path& directory, const NamedTensors& parameters,
                       const Optimizer& optimizer, const RunHistory& history, const std::string& fingerprint);

// The newest complete checkpoint's folder, if there is one.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& directory);

// Begins a run with an empty history, or, with `resume`, goes on from the newest complete checkpoint in
// `directory`: it fills the parameters and the optimizer in place and returns the history. Errors: a
// checkpoint where a new run begins, none where one is resumed, a checkpoint of a run with another
// fingerprint (other data, shape or seed), or a damaged file.
Result<RunHistory> begin_run(const std::filesystem::path& directory, bool resume,
                             const NamedTensors& parameters, Optimizer& optimizer,
                             const std::string& fingerprint);

// The error of a run that a signal ended after `step` and its checkpoint.
Error stopped_error(int64_t step);

}  // namespace outrider::training
