// SPDX-License-Identifier: Apache-2.0
// Models of well-known shapes with random weights, created in memory, for measurements that depend only on
// sizes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "formats/model_file.h"
#include "outrider/result.h"
#include "tensor/dtype.h"

namespace outrider {

// The sizes of a named shape, "llama-1b", or of its first layers, "llama-1b@4". Error: an unknown name, where
// the message lists the known ones; a wrong number of layers.
Result<ModelConfig> shape_config(std::string_view name);

// The path that asks open_model() for a shape: "shape:NAME,TYPE,VOCABULARY", as in
// "shape:llama-1b,q4_0,32000".
std::filesystem::path shape_path(std::string_view name, DType weights, int64_t vocab_size);
// The path of shape `name` with the type and the vocabulary of a shape path, to draft for it.
std::filesystem::path draft_of_shape(const std::filesystem::path& target, std::string_view name);
bool is_shape_path(const std::filesystem::path& path);

// Creates the model of a shape path. Matrices hold random numbers of the named type, up to about 0.03 in
// size; norms are 1, but for norms before attention beside experts, and biases 0. All matrices are views into
// one block of random bytes, so that a large model takes little memory until it is packed. Token i is spelled
// alike in every shape. A path gives the same model every time.
Result<ModelFile> open_shape(const std::filesystem::path& path);

}  // namespace outrider
