// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <variant>

#include "formats/gguf/gguf.h"
#include "formats/hf/tensor_directory.h"
#include "formats/model_tensors.h"

namespace outrider {

// The mapped and parsed files of a model or a drafter, which are opened before anybody knows what they hold:
// a GGUF file with all its shards, or the tensors of a Hugging Face directory.
struct StoredFiles {
  std::filesystem::path path;
  std::variant<GgufFile, TensorDirectory> contents;
  std::shared_ptr<ModelStorage> storage;

  const GgufFile* gguf() const { return std::get_if<GgufFile>(&contents); }  // null: a directory
  const TensorDirectory* directory() const { return std::get_if<TensorDirectory>(&contents); }
};

}  // namespace outrider
