// SPDX-License-Identifier: Apache-2.0
// The measurements of one request and the latencies that follow from them. Times are in milliseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace outrider {

// The source of the token counts of arrivals, most exact first.
enum class TokenCount : uint8_t {
  kUsage,     // usage in every chunk (continuous_usage_stats)
  kLogprobs,  // one log-probability per token
  kSpread,    // total of the final usage: one token per chunk, the rest by length of text
  kChunks,    // no usage: every chunk counts as one token
};

// The chunks that arrived together: one, or several that were read at the same time.
struct ChunkArrival {
  double at_ms = 0;
  int64_t tokens = 0;
  int64_t chunks = 0;  // chunks with text
  int64_t bytes = 0;   // bytes of text
};

struct SpeculationCounts {
  int64_t steps = 0;  // target passes that verified drafts
  int64_t drafted = 0;
  int64_t accepted = 0;
  std::vector<int64_t> accepted_per_position = {};

  // Includes the bonus token.
  double acceptance_length() const {
    return steps == 0 ? 0 : 1 + static_cast<double>(accepted) / static_cast<double>(steps);
  }
  double acceptance_rate() const {
    return drafted == 0 ? 0 : static_cast<double>(accepted) / static_cast<double>(drafted);
  }
  void add(const SpeculationCounts& other);
};

struct AnswerRecord {
  std::string prompt = {};  // its id
  double start_ms = 0;
  double end_ms = 0;
  std::vector<ChunkArrival> arrivals = {};
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  TokenCount counted = TokenCount::kUsage;
  std::string finish_reason = {};
  std::string failure = {};  // "429", "timeout", "error event"; empty: none
  std::string message = {};  // of the failure
  bool is_interrupted = false;
  std::optional<SpeculationCounts> speculation = {};

  bool succeeded() const { return failure.empty() && !is_interrupted; }
  double ttft_ms() const { return arrivals.empty() ? 0 : arrivals.front().at_ms - start_ms; }
  double e2e_ms() const { return end_ms - start_ms; }
  // Time per output token after the first; nullopt: fewer than two tokens.
  std::optional<double> tpot_ms() const;
};

// The time between two tokens. The tokens of one arrival share the time since the previous arrival, and
// tokens that arrived with the first token took none. A request of N tokens has N - 1 latencies, and their
// mean is its TPOT.
struct TokenLatency {
  double at_ms = 0;
  double ms = 0;
};
std::vector<TokenLatency> token_latencies(const AnswerRecord& record);

// The times between arrivals, which most tools call inter-token latency.
std::vector<double> chunk_gaps(const AnswerRecord& record);

// Distributes a known total of tokens over the arrivals.
void spread_tokens(std::vector<ChunkArrival>& arrivals, int64_t total);

}  // namespace outrider
