// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "formats/model_file.h"
#include "formats/stored_files.h"
#include "outrider/result.h"

namespace outrider {

// Whether a file is GGUF by its first bytes. Blobs of Ollama have no ending.
bool begins_as_gguf(const std::filesystem::path& path);

// Opens a GGUF file, or all shards of a model when any one of its "<stem>-00001-of-0000N.gguf" is given,
// without conversion: the metadata of the first shard and the tensors of all. Errors: as parse_gguf(); a
// missing shard is named.
Result<StoredFiles> read_gguf_shards(const std::filesystem::path& path);

// The model in such files. Errors: as open_model.
Result<ModelFile> open_gguf_model(std::shared_ptr<const StoredFiles> files);

}  // namespace outrider
