// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "outrider/result.h"

namespace outrider {

// A model that a fleet serves.
struct FleetModel {
  std::string name;  // in the API
  std::vector<std::string> aliases = {};
  std::vector<std::string> arguments;  // of the program that serves it, but for its socket
  int64_t bytes = 0;                   // the memory that is planned for its engine
  bool is_pinned = false;              // it never leaves for another model
  bool is_default = false;             // it answers requests that name no model, and is loaded at the start
};

struct FleetOptions {
  std::filesystem::path program;              // it serves one model
  std::vector<std::string> environment = {};  // of that program: "NAME=VALUE"
  std::vector<FleetModel> models = {};        // no name or alias occurs twice
  int64_t memory = 0;                         // bytes for all engines
  double idle_unload = 0;                     // seconds without requests, after which an engine ends; 0: none
  double drain_timeout = 30;                  // seconds that an engine has to end
  // Finds the models again, on any thread; empty: they stay. Error: there is no valid list.
  std::function<Result<std::vector<FleetModel>>()> read_models = {};
};

}  // namespace outrider
