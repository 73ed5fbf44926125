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

// The text that one token adds; the spelling of a special token; "<id>" for an invalid id.
std::string token_text(const Engine& engine, TokenId token);

// The traces of one command, with everything that is needed to display them.
class TraceLog {
 public:
  // `engine` must outlive it.
  TraceLog(const Engine& engine, const Settings& settings) : engine_(engine), settings_(settings) {}

  // Later traces belong to a run of this name.
  void begin_run(std::string name) { runs_.push_back(std::move(name)); }
  void add(const StepTrace& trace);

  // All traces, for the HTML page and for --json.
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
