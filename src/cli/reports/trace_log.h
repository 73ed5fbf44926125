// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "outrider/engine.h"

namespace outrider {

// What one token adds to a text; special tokens by their spelling, ids that are no tokens as "<id>".
std::string token_text(const Engine& engine, TokenId token);

// The traces of one command, and what is needed to read them.
class TraceLog {
 public:
  // `engine` must outlive it.
  TraceLog(const Engine& engine, const Settings& settings) : engine_(engine), settings_(settings) {}

  // Traces from now on belong to a run of this name.
  void begin_run(std::string name) { runs_.push_back(std::move(name)); }
  void add(const StepTrace& trace);

  // Everything, for the page and for --json.
  nlohmann::ordered_json json() const;

 private:
  struct Entry {
    size_t run;
    StepTrace trace;
  };

  const Engine& engine_;
  const Settings& settings_;
  std::vector<std::string> runs_;
  std::vector<Entry> entries_;
  std::map<TokenId, std::string> token_texts_;
};

}  // namespace outrider
