// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace outrider {

// The quant that the name of a GGUF file says, in capitals: "Q4_K_M" for "Model-Q4_K_M-00001-of-00002.gguf",
// "UD-Q4_K_XL" for "Model-UD-Q4_K_XL.gguf". Empty: none.
std::string quant_of_file_name(std::string_view name);

// The place of a shard among the shards of its model, from "STEM-00002-of-00003.gguf".
struct ShardPlace {
  std::string stem;
  int index = 0;  // from 1
  int count = 0;
};
std::optional<ShardPlace> shard_place(std::string_view name);

// Whether a GGUF file is a model for text: not a projector of images, not a matrix of importances.
bool is_model_file_name(std::string_view name);

std::string upper_case(std::string_view text);

// "98.4 MB", "5.03 GB".
std::string size_text(int64_t bytes);

}  // namespace outrider
