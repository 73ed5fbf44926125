// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/agreement.h"
#include "outrider/engine.h"

namespace outrider {

// One tree shape, run over all prompts.
struct ShapeResult {
  std::string keys;  // as in --speculative: "max_draft_len=4"; empty: plain
  SpeculationStats stats = {};
  int64_t tokens = 0;
  double decode_ms = 0.0;

  double tokens_per_second() const {
    return decode_ms > 0.0 ? 1000.0 * static_cast<double>(tokens) / decode_ms : 0.0;
  }
};

struct Diagnosis {
  EngineInfo info;
  std::string method;  // snake case
  Agreement agreement;
  ShapeResult plain;
  std::vector<ShapeResult> shapes;
  double temperature = 0.0;
  size_t prompts = 0;
};

// Speed over plain decoding.
double speed_up(const Diagnosis& diagnosis, const ShapeResult& shape);
// Tokens per target pass from which on a shape is faster than plain decoding, at its measured cost.
double break_even(const Diagnosis& diagnosis, const ShapeResult& shape);
// The fastest shape; null when there is none.
const ShapeResult* best_shape(const Diagnosis& diagnosis);
// The drafter agrees so seldom that something must be wrong with how it was put together.
bool is_miswired(const Diagnosis& diagnosis);
// "use it: ..." or "do not use it: ...", with the reason.
std::string verdict_of(const Diagnosis& diagnosis);

std::string diagnosis_text(const Diagnosis& diagnosis);
nlohmann::ordered_json diagnosis_json(const Diagnosis& diagnosis);

}  // namespace outrider
