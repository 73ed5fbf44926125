// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loadtest/answer_record.h"
#include "loadtest/sse_parser.h"

namespace outrider {

// Turns the body of a streamed completion into the record of its request, piece by piece.
class AnswerReader {
 public:
  explicit AnswerReader(AnswerRecord& record) : record_(record) {}

  // False: the stream is invalid; the record has the reason.
  bool feed(std::string_view bytes, double at_ms);
  // To be called at the end of the stream: counts the tokens, and marks an incomplete record as failed.
  void finish();

 private:
  // Counts of the chunks that arrived together.
  struct Counts {
    int64_t chunks = 0, bytes = 0, logprobs = 0;
  };

  void take_event(std::string_view name, std::string_view data, Counts& counts);
  void count_tokens();
  void fail(std::string failure, std::string message);

  AnswerRecord& record_;
  SseParser parser_;
  bool is_done_ = false;          // [DONE] was received
  bool all_have_usage_ = true;    // every chunk with text had the number of tokens so far
  std::optional<int64_t> usage_;  // the latest completion_tokens
  // Per arrival. If only the usage grew, the server held text back, or it was the total at the end.
  std::vector<int64_t> usage_growth_, logprobs_;
};

// The counters of a Prometheus text with names that end in spec_decode_num_drafts, _num_draft_tokens,
// _num_accepted_tokens and _num_accepted_tokens_per_pos, summed over all other labels.
std::optional<SpeculationCounts> speculation_of_metrics(std::string_view text);

}  // namespace outrider
