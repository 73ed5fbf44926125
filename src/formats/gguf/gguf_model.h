// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "formats/gguf/gguf.h"
#include "formats/model_file.h"
#include "formats/model_tensors.h"
#include "outrider/result.h"

namespace outrider {

// Whether a file is GGUF by its first bytes. Blobs of Ollama have no ending.
bool begins_as_gguf(const std::filesystem::path& path);

// Opens a GGUF file, or all shards of a model when any one of its "<stem>-00001-of-0000N.gguf" is given.
// Errors: as open_model; a missing shard is named.
Result<ModelFile> open_gguf_model(const std::filesystem::path& path);

// Reads these files without conversion: the metadata of the first shard and the tensors of all, mapped by
// `storage`.
Result<GgufFile> read_gguf_shards(const std::filesystem::path& path, ModelStorage* storage);

}  // namespace outrider
