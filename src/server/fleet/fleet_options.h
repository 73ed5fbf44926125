// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace outrider {

// A model that a fleet serves.
struct FleetModel {
  std::string name;  // in the API
  std::vector<std::string> aliases = {};
  std::vector<std::string> arguments;  // of the program that serves it, but for its socket
  int64_t bytes = 0;                   // the memory that is planned for its engine
  bool is_pinned = false;              // it never leaves for another model
};

struct FleetOptions {
  std::filesystem::path program;              // it serves one model
  std::vector<std::string> environment = {};  // of that program: "NAME=VALUE"
  std::vector<FleetModel> models = {};        // no name or alias occurs twice
  int64_t memory = 0;                         // bytes for all engines
  double idle_unload = 0;                     // seconds without requests, after which an engine ends; 0: none
  double drain_timeout = 30;                  // seconds that an engine has to end
};

}  // namespace outrider
