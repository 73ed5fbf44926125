// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/gguf/gguf_writer.h"
#include "outrider/result.h"

namespace outrider {

struct GgufTensor {
  std::string name;  // "blk.0.attn_q.weight"
  TensorView view;
};

// A model as a GGUF file holds it: names and metadata as llama.cpp's converter writes them, rows of q and k
// in GGUF's order for the architecture.
struct GgufModel {
  GgufMetadataWriter metadata;
  std::vector<GgufTensor> tensors;
  bool tied_embeddings = false;
  std::vector<std::filesystem::path> files;  // input files, which must not be overwritten
  std::vector<std::string> notes;            // losses of the translation, one line each
  std::shared_ptr<void> storage;             // keeps the views alive
};

// Opens a Hugging Face directory and translates it, or opens a GGUF file (all its shards) and leaves out only
// the keys about shards. Errors: as open_model; a tokenizer that GGUF cannot express.
Result<GgufModel> open_as_gguf(const std::filesystem::path& path);

}  // namespace outrider
