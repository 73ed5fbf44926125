// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "outrider/engine.h"
#include "server/api/call_context.h"
#include "server/api/served_model.h"

namespace outrider {

// The form that a request demands of its output.
struct OutputForm {
  enum class Kind : uint8_t { kFree, kJsonObject, kJsonSchema, kRegex, kGrammar, kChoice };
  Kind kind = Kind::kFree;
  std::string text = {};                  // schema, expression or grammar
  std::vector<std::string> choices = {};  // kChoice
  std::string path = {};                  // of the field that demands it
};

enum class SpeculationTrace : uint8_t { kNone, kSummary, kDetailed };

// The fields that both endpoints have in common.
struct GenerationSpec {
  const ServedModel* model = nullptr;
  const ApiLimits* limits = nullptr;

  Request request;  // of every choice; prompt, sample index and constraint are set later
  std::optional<int64_t> max_tokens;
  std::optional<int64_t>
      prompt_limit;  // keeps the last tokens of a prompt; -1: as many as the context allows
  std::optional<uint64_t> seed;
  std::optional<int64_t> penalty_window;  // tokens that the repetition penalty covers; -1: all
  int n = 1;
  int prompt_logprobs = -1;  // alternatives per prompt token; -1: no log-probabilities of the prompt
  bool streams = false;
  bool include_usage = false;
  bool continuous_usage = false;  // usage in every chunk
  bool include_stop = false;      // the output includes the stop string
  bool return_token_ids = false;
  bool has_prediction = false;  // usage tells what became of it
  SpeculationTrace trace = SpeculationTrace::kNone;
  OutputForm form;
  std::vector<std::string> ignored;  // paths of fields
};

}  // namespace outrider
