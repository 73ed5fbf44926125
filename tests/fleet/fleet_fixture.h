// SPDX-License-Identifier: Apache-2.0
// A server of several models for tests, and what its models write by themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/serving/serving.h"

namespace outrider {

// Models of tests/data/models.
inline const std::vector<std::string> kFleetNames = {"llama", "qwen2", "mistral", "gpt2", "olmo2", "gemma2"};

std::string fleet_completion(const std::string& model, bool streams = false, int tokens = 12);

// A model of tests/data/models, or of a path, with these options.
FleetModel fleet_model(const std::string& name, const std::vector<std::string>& options = {},
                       const std::string& path = "");
// A fleet of these models with memory for so many of them. Memory that engines really take counts, too, so
// that few places mean one.
FleetOptions fleet_of(const std::vector<std::string>& names, size_t places);
inline FleetOptions fleet_of(size_t places) { return fleet_of(kFleetNames, places); }

class FleetServer : public TestServer {
 public:
  explicit FleetServer(FleetOptions options, const std::function<void(ServerParts&)>& change = {});

  TestAnswer ask(const std::string& body) const { return client().post("/v1/completions", body); }
  nlohmann::json stats(const std::string& model) const;
  // False: not within ten seconds.
  bool wait_for_state(const std::string& model, const std::string& state) const;
};

// The text that each model writes without a server for fleet_completion().
std::map<std::string, std::string> texts_of(const std::vector<std::string>& names);
const std::map<std::string, std::string>& texts_alone();  // of kFleetNames

}  // namespace outrider
