// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "draft_heads/head_fit.h"
#include "engine/agreement.h"
#include "open/drafter_report.h"
#include "outrider/engine.h"

namespace outrider {

// The measurements of one tree shape over all prompts.
struct ShapeResult {
  std::string keys;  // as in --speculative: "max_draft_len=4"; empty: plain decoding
  SpeculationStats stats = {};
  int64_t tokens = 0;
  double decode_ms = 0.0;
  double spread = 0.0;  // relative difference of repeated timings (RepeatedTiming::spread())

  double tokens_per_second() const {
    return decode_ms > 0.0 ? 1000.0 * static_cast<double>(tokens) / decode_ms : 0.0;
  }
  double ms_per_token() const { return tokens == 0 ? 0.0 : decode_ms / static_cast<double>(tokens); }
};

struct Diagnosis {
  EngineInfo info;
  std::string method;                              // as in statistics, in snake case
  std::string speculative;                         // as in --speculative
  std::optional<HeadSummary> head = {};            // only for learned drafters
  std::vector<DrafterLine> drafters = {};          // of the search, where there was one
  std::optional<OtherVocabulary> vocabulary = {};  // of a draft model with another tokenizer
  double share_of_text = 1.0;                      // of the target's answers, the share of tokens in it
  Agreement agreement;
  // If the head's base of RoPE is not the target's: that base, and the total variation with it.
  std::optional<double> target_rope_theta = {};
  double variation_at_target_rope = 0.0;
  // The change of the head's weights with which it agrees best, and the total variation over the same places
  // with and without it.
  struct Repair {
    std::string what;
    double variation = 0.0, variation_without = 0.0;
  };
  std::optional<Repair> repair = {};
  ShapeResult plain;
  std::vector<ShapeResult> shapes;
  double temperature = 0.0;
  size_t prompts = 0;
};

// The measured speed divided by the plain speed; 0: unknown.
double speed_up(const Diagnosis& diagnosis, const ShapeResult& shape);
// The number of tokens per target pass above which the shape is faster than plain decoding, at its measured
// cost.
double break_even(const Diagnosis& diagnosis, const ShapeResult& shape);
// speed_up(), limited to the tokens per pass: anything above is noise, since no pass is faster than a plain
// one.
double credible_speed_up(const Diagnosis& diagnosis, const ShapeResult& shape);
// Whether repeated timings of this shape or of plain decoding differ too much for a comparison.
bool is_noisy(const Diagnosis& diagnosis, const ShapeResult& shape);
// The shape with the highest credible speed-up that is not noisy; null: none.
const ShapeResult* best_shape(const Diagnosis& diagnosis);
// The reason why the drafter looks wrong rather than weak; empty: it does not. No timing has a part in it.
std::string miswiring(const Diagnosis& diagnosis);
// "use it: ...", "do not use it: ...", "wrong drafter: ..." or "withheld: ...", with the reason.
std::string verdict_of(const Diagnosis& diagnosis);

std::string diagnosis_text(const Diagnosis& diagnosis);
nlohmann::ordered_json diagnosis_json(const Diagnosis& diagnosis);

}  // namespace outrider
