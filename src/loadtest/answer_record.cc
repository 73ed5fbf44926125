// SPDX-License-Identifier: Apache-2.0
#include "loadtest/answer_record.h"

#include <algorithm>

namespace outrider {

void SpeculationCounts::add(const SpeculationCounts& other) {
  steps += other.steps;
  drafted += other.drafted;
  accepted += other.accepted;
  const size_t positions = other.accepted_per_position.size();
  accepted_per_position.resize(std::max(accepted_per_position.size(), positions));
  for (size_t i = 0; i < positions; ++i) accepted_per_position[i] += other.accepted_per_position[i];
}

std::optional<double> AnswerRecord::tpot_ms() const {
  if (output_tokens < 2 || arrivals.empty()) return std::nullopt;
  return (arrivals.back().at_ms - arrivals.front().at_ms) / static_cast<double>(output_tokens - 1);
}

std::vector<TokenLatency> token_latencies(const AnswerRecord& record) {
  std::vector<TokenLatency> latencies;
  const ChunkArrival* before = nullptr;
  for (const ChunkArrival& arrival : record.arrivals) {
    if (arrival.tokens == 0) continue;
    const auto tokens = static_cast<size_t>(arrival.tokens);
    if (before == nullptr) {
      latencies.insert(latencies.end(), tokens - 1, {arrival.at_ms, 0.0});
    } else {
      const double share = (arrival.at_ms - before->at_ms) / static_cast<double>(tokens);
      latencies.insert(latencies.end(), tokens, {arrival.at_ms, share});
    }
    before = &arrival;
  }
  return latencies;
}

std::vector<double> chunk_gaps(const AnswerRecord& record) {
  std::vector<double> gaps;
  for (size_t i = 1; i < record.arrivals.size(); ++i)
    gaps.push_back(record.arrivals[i].at_ms - record.arrivals[i - 1].at_ms);
  return gaps;
}

void spread_tokens(std::vector<ChunkArrival>& arrivals, int64_t total) {
  int64_t chunks = 0, bytes = 0;
  for (const ChunkArrival& arrival : arrivals) {
    chunks += arrival.chunks;
    bytes += arrival.bytes;
  }
  // Every chunk gets one token if the total allows it. The rest is distributed by length, with an exact sum.
  const int64_t each = total >= chunks ? 1 : 0;
  const int64_t rest = total - each * chunks;
  int64_t seen = 0, given = 0;
  for (ChunkArrival& arrival : arrivals) {
    seen += arrival.bytes;
    const int64_t until = bytes == 0 ? 0 : (rest * seen + bytes / 2) / bytes;
    arrival.tokens = each * arrival.chunks + until - given;
    given = until;
  }
}

}  // namespace outrider
