// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace outrider {

struct LocalModel {
  std::string name;            // "ORG/REPO", "ORG/REPO:QUANT", "qwen3:0.6b"
  std::filesystem::path path;  // for commands
  std::string place;           // the program that keeps it: "outrider", "ollama"
  std::string quant;           // as the file's name says; empty: it says none
  int64_t bytes = 0;           // of the weights
};

}  // namespace outrider
