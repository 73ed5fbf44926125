// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters (LoRA, arXiv 2106.09685) as two kinds of files hold them: a folder of Hugging Face's PEFT
// with adapter_config.json and adapter_model.safetensors or .bin, and a GGUF file of llama.cpp's
// convert_lora_to_gguf.py.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/model_config.h"
#include "outrider/result.h"
#include "tensor/tensor_view.h"

namespace outrider {

// The change of one matrix W [n, k] of a model: W x becomes W x + scale * B (A x).
struct LowRankUpdate {
  std::string matrix;  // its name in ModelFile::tensors without ".weight"
  TensorView a;        // [rank, k]
  TensorView b;        // [n, rank], rows in the order of W's
  float scale = 1;     // alpha / rank, or alpha / sqrt(rank)
};

struct AdapterFile {
  std::filesystem::path path;
  std::string format;  // "peft" or "gguf"
  std::vector<LowRankUpdate> updates;
  int64_t rank = 0;               // the largest
  uint64_t fingerprint = 0;       // of all numbers, names and scales
  std::shared_ptr<void> storage;  // keeps the views alive
};

// Opens an adapter of a model with that configuration, which may be in files of the other kind. Errors: no
// such file, malformed contents, another kind of adapter than LoRA (named), a matrix that the model does not
// have, or of another shape.
Result<AdapterFile> open_adapter(const std::filesystem::path& path, const ModelConfig& config);

}  // namespace outrider
