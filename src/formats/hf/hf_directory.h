// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "formats/model_file.h"
#include "formats/stored_files.h"
#include "outrider/result.h"

namespace outrider {

// Opens a Hugging Face directory, quantised or not: config.json, generation_config.json (optional), the files
// of a TensorDirectory, tokenizer.json, and the chat template. `files` are the directory's, where they have
// been opened before. Errors: as open_model.
Result<ModelFile> open_hf_directory(const std::filesystem::path& directory,
                                    std::shared_ptr<const StoredFiles> files = nullptr);

// The tensors of a directory. Errors: as TensorDirectory::open().
Result<StoredFiles> open_hf_tensors(const std::filesystem::path& directory);

// The configuration, the chat template and, where there is one, the tokenizer of a directory without weights.
Result<ModelFile> describe_hf_directory(const std::filesystem::path& directory);

// Whether the directory has a file of a TensorDirectory.
bool has_hf_weights(const std::filesystem::path& directory);

}  // namespace outrider
