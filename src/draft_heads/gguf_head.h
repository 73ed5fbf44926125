// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "formats/json_file.h"
#include "formats/model_file.h"
#include "formats/stored_files.h"
#include "formats/stored_tensor.h"
#include "outrider/result.h"

namespace outrider {

// The parts of a HeadFile (head_file.h).
struct GgufHead {
  JsonFile config;
  ModelFile file;
  StoredTensors tensors;
};

// The head in GGUF files of the architecture "eagle3" or "dflash" (llama.cpp's --spec-type draft-eagle3,
// draft-dflash and draft-dspark) with the names, keys and order of rows of the published
// checkpoints; nullopt: another architecture. Errors: keys that are missing or not supported.
Result<std::optional<GgufHead>> find_gguf_head(const std::shared_ptr<const StoredFiles>& files);

// A head without tensors, which keeps the files that it comes from.
GgufHead head_from(const std::shared_ptr<const StoredFiles>& files, JsonFile config);

}  // namespace outrider
