// SPDX-License-Identifier: Apache-2.0
// Models of well-known shapes with random weights, made in memory: for measuring, where sizes are all that
// counts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "formats/model_file.h"
#include "outrider/result.h"
#include "tensor/dtype.h"

namespace outrider {

// Sizes of a named shape. Error: an unknown name; the message lists the known ones.
Result<ModelConfig> shape_config(std::string_view name);

// How open_model() is asked for one: "shape:NAME,TYPE,VOCABULARY", as in "shape:llama-1b,q4_0,32000".
std::filesystem::path shape_path(std::string_view name, DType weights, int64_t vocab_size);
bool is_shape_path(const std::filesystem::path& path);

// Matrices hold random numbers of the named type, up to about 0.03 in size; norms are 1 and biases 0. All of
// them are views into one block of random bytes, so that a large model takes little memory until it is
// packed. Token i is spelled alike in every shape. The same path gives the same model.
Result<ModelFile> open_shape(const std::filesystem::path& path);

}  // namespace outrider
