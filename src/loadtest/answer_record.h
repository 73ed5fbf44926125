// SPDX-License-Identifier: Apache-2.0
// What was seen of one request, and the latencies that follow from it. Times are milliseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace outrider {

// How the tokens of each arrival were counted, best first.
enum class TokenCount : uint8_t {
  kUsage,     // the server said so in every chunk (continuous_usage_stats)
  kLogprobs,  // one log-probability per token
  kSpread,    // the total of the final usage: one per chunk, the rest by length of text
  kChunks,    // no usage at all: every chunk counted as one token
};

// What came at once: one chunk, or several that could not be told apart in time.
struct Arrival {
  double at_ms = 0;
  int64_t tokens = 0;
  int64_t chunks = 0;  // with text
  int64_t bytes = 0;   // of text
};

struct SpeculationCounts {
  int64_t steps = 0;  // target passes that verified drafts
  int64_t drafted = 0;
  int64_t accepted = 0;
  std::vector<int64_t> accepted_per_position = {};

  // The bonus token included.
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
  std::vector<Arrival> arrivals = {};
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  TokenCount counted = TokenCount::kUsage;
  std::string finish_reason = {};
  std::string failure = {};  // empty: none; "429", "timeout", "error event"
  std::string message = {};  // of a failure
  bool is_interrupted = false;
  std::optional<SpeculationCounts> speculation = {};

  bool succeeded() const { return failure.empty() && !is_interrupted; }
  double ttft_ms() const { return arrivals.empty() ? 0 : arrivals.front().at_ms - start_ms; }
  double e2e_ms() const { return end_ms - start_ms; }
  // Per output token after the first; none below two tokens.
  std::optional<double> tpot_ms() const;
};

// Between two tokens: those of one arrival share the time since the arrival before it, and those that came
// with the first token took none. So a request of N tokens has N - 1, and their mean is its TPOT.
struct TokenLatency {
  double at_ms = 0;
  double ms = 0;
};
std::vector<TokenLatency> token_latencies(const AnswerRecord& record);

// Between arrivals: what most tools call inter-token latency.
std::vector<double> chunk_gaps(const AnswerRecord& record);

// Gives every arrival its tokens where only their total is known.
void spread_tokens(std::vector<Arrival>& arrivals, int64_t total);

}  // namespace outrider
