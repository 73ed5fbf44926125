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

// A model as it stands in a GGUF file: names and metadata as llama.cpp's converter writes them, rows of q and
// k in the order that the architecture has there.
struct GgufModel {
  GgufMetadataWriter metadata;
  std::vector<GgufTensor> tensors;
  bool tied_embeddings = false;
  std::vector<std::filesystem::path> files;  // that were read, to be left alone
  std::vector<std::string> notes;            // what GGUF cannot say, one line each
  std::shared_ptr<void> storage;             // keeps the views alive
};

// Opens a Hugging Face directory and translates it, or a GGUF file (all its shards) and takes it as it is,
// apart from the keys about shards. Errors: as open_model; a tokenizer that GGUF has no words for.
Result<GgufModel> open_as_gguf(const std::filesystem::path& path);

}  // namespace outrider
