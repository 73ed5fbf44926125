// SPDX-License-Identifier: Apache-2.0
// The checkpoints that tools/head_goldens/recurrent.py has goldens of, for the target
// tests/data/models/llama.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "draft_heads/fake_head.h"

namespace outrider {

inline nlohmann::json read_head_goldens(const std::string& file = "recurrent.json") {
  std::ifstream stream(OUTRIDER_SOURCE_DIR "/tests/data/heads/" + file);
  return nlohmann::json::parse(stream);
}

// The case of that name; null: there is none.
inline nlohmann::json golden_named(const nlohmann::json& goldens, const std::string& name) {
  for (const nlohmann::json& golden : goldens["cases"]) {
    if (golden["name"] == name) return golden;
  }
  return {};
}

inline nlohmann::json head_golden(const std::string& name) { return golden_named(read_head_goldens(), name); }

// An MTP module of a target of tests/data/models with experts, latent or gated attention, by the target's
// name (tools/head_goldens/family_modules.py).
inline nlohmann::json family_module_golden(const std::string& target) {
  return golden_named(read_head_goldens("family_modules.json"), target);
}

inline void fill_head(FakeHead& made, const nlohmann::json& golden) {
  made.config = golden["config"];
  for (const auto& [name, shape] : golden["shapes"].items())
    made.tensors[name] = shape.get<std::vector<int64_t>>();
  if (golden["ids"].is_null()) return;
  const auto ids = golden["ids"].get<std::vector<int64_t>>();
  const nlohmann::json& config = golden["config"];
  const auto layers = config.find("transformer_layer_config");
  made.flags["t2d"].assign((layers == config.end() ? config : *layers)["vocab_size"].get<size_t>(), 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    made.integers["d2t"].push_back(ids[i] - static_cast<int64_t>(i));
    made.flags["t2d"][static_cast<size_t>(ids[i])] = 1;
  }
}

}  // namespace outrider
