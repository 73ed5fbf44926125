// SPDX-License-Identifier: Apache-2.0
// `bench --all`: every drafter there is, on the same prompts.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/drafter_search.h"
#include "cli/reports/bench_figures.h"
#include "config/settings.h"
#include "outrider/engine.h"
#include "outrider/result.h"

namespace outrider {

// One drafter with one shape of tree.
struct Contender {
  std::string drafter;         // "NGram"; where files draft their folder's name stands behind it
  std::string tree;            // "chain", "dynamic", "choices", "window"
  std::string speculative;     // as in --speculative
  std::filesystem::path path;  // of its files, or empty
  SpeculativeOptions options;
};

// Trees that `nodes` allow: chains are as deep as dynamic trees.
struct NodeBudget {
  explicit NodeBudget(int nodes);
  int nodes;
  int width;
  int levels;
};

// Drafters without a model, those that were found, and mixtures, in the shapes they can draft.
Result<std::vector<Contender>> contenders(const std::vector<FoundDrafter>& found, NodeBudget budget);

enum class Decoding : uint8_t { kGreedy, kSampled };
constexpr std::array kDecodings = {Decoding::kGreedy, Decoding::kSampled};
constexpr std::array<const char*, 2> kDecodingNames = {"greedy", "sampled"};

struct ContenderResult {
  Contender contender;
  DrafterMemory memory;
  std::array<std::vector<PromptMeasurement>, kDecodings.size()> prompts;  // by decoding
};

struct Comparison {
  EngineInfo info;  // of the target alone
  NodeBudget budget{1};
  int64_t runs = 0;
  int64_t max_tokens = 0;
  int64_t prompts = 0;
  int64_t skipped_prompts = 0;  // too long
  bool is_complete = false;     // else it ended early: these are the drafters that were measured until then
  double temperature = 0;       // of the sampled half
  std::array<bool, kDecodings.size()> compared = {true, true};  // outputs must equal plain ones
  std::vector<ContenderResult> results;
  std::vector<LeftOutDrafter> left_out;
};

// Prints what came out. The page (or JSON) that --output asks for is written anew after every drafter, so
// that it outlasts whatever ends the run; SIGINT and SIGTERM end it with what was measured until then. Error:
// the run ended early; an output differs.
Status run_comparison(const Settings& settings);

}  // namespace outrider
