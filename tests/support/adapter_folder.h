// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/model_config.h"

namespace outrider {

struct AdapterShape {
  int64_t rank = 4;
  double alpha = 8;
  double size = 0.1;  // of the numbers
  std::vector<std::string> modules = {"self_attn.q_proj", "self_attn.v_proj", "self_attn.o_proj",
                                      "mlp.up_proj", "mlp.down_proj"};
};

// Writes an adapter of random numbers as PEFT does, for a model with that configuration.
void write_adapter(const std::filesystem::path& folder, const ModelConfig& config, uint32_t seed,
                   const AdapterShape& shape = {});

}  // namespace outrider
