// SPDX-License-Identifier: Apache-2.0
// Quantised checkpoints of the Hugging Face Hub: "quantization_config", and the tensors that stand for a
// matrix.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json_object.h"
#include "formats/stored_tensor.h"
#include "outrider/result.h"

namespace outrider {

enum class QuantizationMethod : uint8_t { kNone, kFp8, kCompressedTensors, kAwq, kGptq, kMxfp4, kModelopt };

struct Quantization {
  QuantizationMethod method = QuantizationMethod::kNone;
  int bits = 4;                    // of GPTQ
  bool zeros_are_one_less = true;  // GPTQ's first format stores each zero minus one
  int64_t block_rows = 128;        // of FP8, where scales have two dimensions
  int64_t block_cols = 128;
};

// Reads "quantization_config" of config.json; without it the method is kNone.
// Error: a method or a variant of one that is not supported, which the message names.
Result<Quantization> read_quantization(const JsonObject& root);

// Reads "quantization" of hf_quant_config.json, in which ModelOpt says the same beside other configurations.
Result<Quantization> read_modelopt_quantization(const JsonObject& root);

// The tensors of a quantised checkpoint, and the sources of rows that are made of them.
struct QuantizedCheckpoint {
  const StoredTensors& tensors;
  Quantization quantization;
  std::string path;  // begins every message
  std::vector<std::unique_ptr<const RowSource>>& sources;
};

// The matrix of a tensor name ("model.layers.0.mlp.down_proj.weight"), with a new source in `sources`;
// nullopt where the checkpoint does not hold it quantised. Error: parts that are missing, or have another
// type or shape than the others call for.
Result<std::optional<TensorView>> find_quantized(const QuantizedCheckpoint& checkpoint,
                                                 std::string_view name);

// Whether find_quantized() finds a matrix of that name.
bool has_quantized(const QuantizedCheckpoint& checkpoint, std::string_view name);

}  // namespace outrider
