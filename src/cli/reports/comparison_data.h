// SPDX-License-Identifier: Apache-2.0
// The results of `bench --all`.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/reports/bench_figures.h"
#include "open/drafters/drafter_search.h"
#include "outrider/engine.h"

namespace outrider {

// A drafter with one shape of tree.
struct Contender {
  std::string drafter;         // "NGram"; the folder of its files follows, if it has any
  std::string tree;            // "chain", "dynamic", "choices", "window"
  std::string speculative;     // value of --speculative
  std::filesystem::path path;  // of its files; empty: none
  SpeculativeOptions options;
};

// The sizes of trees with at most `nodes` drafted nodes. Chains are as deep as dynamic trees.
struct NodeBudget {
  explicit NodeBudget(int nodes);
  int nodes;
  int width;
  int max_draft_len;
};

enum class Decoding : uint8_t { kGreedy, kSampled };
constexpr std::array kDecodings = {Decoding::kGreedy, Decoding::kSampled};
constexpr std::array<const char*, 2> kDecodingNames = {"greedy", "sampled"};

struct ContenderResult {
  Contender contender;
  DrafterMemory memory;
  std::array<std::vector<PromptMeasurement>, kDecodings.size()> prompts;  // per decoding
};

struct Comparison {
  EngineInfo info;  // of only the target
  NodeBudget budget{1};
  int64_t runs = 0;
  int64_t max_tokens = 0;
  int64_t prompts = 0;
  int64_t skipped_prompts = 0;  // they did not fit into the context
  bool is_complete =
      false;               // false: the run ended early, and only the drafters measured until then are listed
  double temperature = 0;  // of sampled decoding
  std::array<bool, kDecodings.size()> compared = {true,
                                                  true};  // per decoding: outputs must equal plain decoding's
  std::vector<ContenderResult> results;
  std::vector<LeftOutDrafter> left_out;
};

}  // namespace outrider
