// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "draft_heads/head_fit.h"
#include "engine/agreement.h"
#include "outrider/engine.h"

namespace outrider {

// One tree shape, run over all prompts.
struct ShapeResult {
  std::string keys;  // as in --speculative: "max_draft_len=4"; empty: plain
  SpeculationStats stats = {};
  int64_t tokens = 0;
  double decode_ms = 0.0;
  double spread = 0.0;  // of repeated timings: how much longer than this one, as a share of it

  double tokens_per_second() const {
    return decode_ms > 0.0 ? 1000.0 * static_cast<double>(tokens) / decode_ms : 0.0;
  }
  double ms_per_token() const { return tokens == 0 ? 0.0 : decode_ms / static_cast<double>(tokens); }
};

struct Diagnosis {
  EngineInfo info;
  std::string method;                    // as in statistics, snake case
  std::string speculative;               // as in --speculative
  std::optional<HeadSummary> head = {};  // of a learned drafter
  Agreement agreement;
  ShapeResult plain;
  std::vector<ShapeResult> shapes;
  double temperature = 0.0;
  size_t prompts = 0;
};

// Speed over plain decoding, as measured.
double speed_up(const Diagnosis& diagnosis, const ShapeResult& shape);
// Tokens per target pass from which on a shape is faster than plain decoding, at its measured cost.
double break_even(const Diagnosis& diagnosis, const ShapeResult& shape);
// The same, but for noise: no more than the tokens per pass, since no pass is faster than a plain one.
double credible_speed_up(const Diagnosis& diagnosis, const ShapeResult& shape);
// Whether repeated timings of this shape, or of plain decoding, differ so much that figures of both say
// nothing.
bool is_noisy(const Diagnosis& diagnosis, const ShapeResult& shape);
// The fastest shape by its credible speed-up, noisy ones left out; null when there is none.
const ShapeResult* best_shape(const Diagnosis& diagnosis);
// The drafter agrees so seldom that something must be wrong with how it was put together.
bool is_miswired(const Diagnosis& diagnosis);
// "use it: ...", "do not use it: ..." or "withheld: ...", with the reason.
std::string verdict_of(const Diagnosis& diagnosis);

std::string diagnosis_text(const Diagnosis& diagnosis);
nlohmann::ordered_json diagnosis_json(const Diagnosis& diagnosis);

}  // namespace outrider
