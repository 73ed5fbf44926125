// SPDX-License-Identifier: Apache-2.0
#include "loadtest/answer_reader.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/quote.h"

namespace outrider {
namespace {

using EventJson = nlohmann::json;

// The member of an object; null if there is none.
const EventJson& member(const EventJson& object, const char* name) {
  static const EventJson null;
  if (!object.is_object()) return null;
  const auto found = object.find(name);
  return found == object.end() ? null : *found;
}

int64_t number(const EventJson& value) { return value.is_number() ? value.get<int64_t>() : 0; }
std::string text(const EventJson& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}
int64_t bytes(const EventJson& value) {
  return value.is_string() ? static_cast<int64_t>(value.get_ref<const std::string&>().size()) : 0;
}

// Bytes of generated text in a choice, including reasoning and tool calls.
int64_t text_bytes(const EventJson& choice) {
  const EventJson& delta = member(choice, "delta");
  int64_t sum = bytes(member(choice, "text"));
  for (const char* name : {"content", "reasoning_content", "reasoning"}) sum += bytes(member(delta, name));
  const EventJson& calls = member(delta, "tool_calls");
  if (!calls.is_array()) return sum;
  for (const EventJson& call : calls) {
    const EventJson& function = member(call, "function");
    sum += bytes(member(function, "name")) + bytes(member(function, "arguments"));
  }
  return sum;
}

int64_t logprob_count(const EventJson& choice) {
  const EventJson& logprobs = member(choice, "logprobs");
  for (const char* name : {"content", "tokens"}) {  // chat, completions
    if (member(logprobs, name).is_array()) return static_cast<int64_t>(member(logprobs, name).size());
  }
  return 0;
}

std::optional<SpeculationCounts> speculation_of_chunk(const EventJson& chunk) {
  const EventJson& told = member(member(chunk, "metrics"), "speculative_decoding");
  if (!told.is_object()) return std::nullopt;
  return SpeculationCounts{.steps = number(member(told, "num_spec_steps")),
                           .drafted = number(member(told, "num_draft_tokens")),
                           .accepted = number(member(told, "num_accepted_draft_tokens")),
                           .accepted_per_position = {}};
}

}  // namespace

void AnswerReader::fail(std::string failure, std::string message) {
  if (!record_.failure.empty()) return;
  record_.failure = std::move(failure);
  record_.message = std::move(message);
}

bool AnswerReader::feed(std::string_view bytes_come, double at_ms) {
  Counts counts;
  const int64_t usage_before = usage_.value_or(0);
  const bool fits = parser_.feed(
      bytes_come, [&](std::string_view name, std::string_view data) { take_event(name, data, counts); });
  if (!fits) fail("broken stream", "an event is longer than 16 MiB");
  const int64_t growth = usage_.value_or(0) - usage_before;
  if (counts.chunks > 0 || growth > 0) {
    record_.arrivals.push_back({.at_ms = at_ms, .tokens = 0, .chunks = counts.chunks, .bytes = counts.bytes});
    usage_growth_.push_back(growth);
    logprobs_.push_back(counts.logprobs);
  }
  return record_.failure.empty();
}

void AnswerReader::take_event(std::string_view name, std::string_view data, Counts& counts) {
  if (data == "[DONE]") {
    is_done_ = true;
    return;
  }
  const EventJson chunk = EventJson::parse(data, nullptr, false);
  if (!chunk.is_object()) {
    fail("broken stream", "an event holds " + quote(data) + ", which is no JSON object");
    return;
  }
  const EventJson& error = member(chunk, "error");
  if (!error.is_null() || name == "error") {
    fail("error event", text(member(error, "message")));
    return;
  }
  const EventJson& usage = member(chunk, "usage");
  const EventJson& choices = member(chunk, "choices");
  if (choices.is_array()) {
    for (const EventJson& choice : choices) {
      const int64_t length = text_bytes(choice);
      counts.bytes += length;
      counts.chunks += length > 0 ? 1 : 0;
      if (length > 0 && !usage.is_object()) all_have_usage_ = false;
      counts.logprobs += logprob_count(choice);
      if (member(choice, "finish_reason").is_string())
        record_.finish_reason = text(member(choice, "finish_reason"));
    }
  }
  if (usage.is_object()) {
    usage_ = std::max(usage_.value_or(0), number(member(usage, "completion_tokens")));
    record_.prompt_tokens = number(member(usage, "prompt_tokens"));
  }
  if (auto speculation = speculation_of_chunk(chunk)) record_.speculation = std::move(speculation);
}

void AnswerReader::count_tokens() {
  std::vector<ChunkArrival>& arrivals = record_.arrivals;
  const bool has_usage = usage_.has_value() && all_have_usage_;
  bool has_logprobs = true;
  for (size_t i = 0; i < arrivals.size(); ++i) {
    arrivals[i].tokens = has_usage ? usage_growth_[i] : logprobs_[i];
    if (logprobs_[i] < arrivals[i].chunks) has_logprobs = false;
  }
  if (has_usage) {
    record_.counted = TokenCount::kUsage;
    return;
  }
  std::erase_if(arrivals, [](const ChunkArrival& arrival) { return arrival.chunks == 0; });
  if (has_logprobs) {
    record_.counted = TokenCount::kLogprobs;
  } else if (usage_) {
    record_.counted = TokenCount::kSpread;
    spread_tokens(arrivals, *usage_);
  } else {
    record_.counted = TokenCount::kChunks;
    for (ChunkArrival& arrival : arrivals) arrival.tokens = arrival.chunks;
  }
}

void AnswerReader::finish() {
  count_tokens();
  for (const ChunkArrival& arrival : record_.arrivals) record_.output_tokens += arrival.tokens;
  if (!is_done_ && record_.finish_reason.empty()) {
    fail("broken stream", "the stream ended before the answer did");
  }
}

namespace {

// Parses a line such as "vllm:spec_decode_num_drafts_total{a="b"} 3" into name, labels and value; nullopt for
// other lines.
struct Sample {
  std::string_view name, labels;
  double value = 0;
};

std::optional<Sample> parse_sample(std::string_view line) {
  Sample sample;
  const size_t end = line.find_first_of("{ ");
  if (line.starts_with('#') || end == std::string_view::npos) return std::nullopt;
  sample.name = line.substr(0, end);
  std::string_view rest = line.substr(end);
  if (rest.starts_with('{')) {
    const size_t close = rest.rfind('}');
    if (close == std::string_view::npos) return std::nullopt;
    sample.labels = rest.substr(1, close - 1);
    rest = rest.substr(close + 1);
  }
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const auto [last, error] = std::from_chars(rest.data(), rest.data() + rest.size(), sample.value);
  if (error != std::errc()) return std::nullopt;
  const size_t colon = sample.name.find(':');
  if (colon != std::string_view::npos) sample.name.remove_prefix(colon + 1);
  if (sample.name.ends_with("_total")) sample.name.remove_suffix(6);
  return sample;
}

size_t position_of(std::string_view labels) {
  constexpr std::string_view kLabel = "position=\"";
  const size_t at = labels.find(kLabel);
  size_t position = 0;
  if (at == std::string_view::npos) return position;
  const std::string_view digits = labels.substr(at + kLabel.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), position);
  return std::min<size_t>(position, 255);
}

}  // namespace

std::optional<SpeculationCounts> speculation_of_metrics(std::string_view metrics) {
  SpeculationCounts counts;
  bool found = false;
  while (!metrics.empty()) {
    const size_t end = std::min(metrics.find('\n'), metrics.size());
    const auto sample = parse_sample(metrics.substr(0, end));
    metrics.remove_prefix(std::min(end + 1, metrics.size()));
    if (!sample || !sample->name.starts_with("spec_decode_num_")) continue;
    const auto value = static_cast<int64_t>(sample->value);
    if (sample->name == "spec_decode_num_drafts") {
      counts.steps += value;
      found = true;
    } else if (sample->name == "spec_decode_num_draft_tokens") {
      counts.drafted += value;
    } else if (sample->name == "spec_decode_num_accepted_tokens") {
      counts.accepted += value;
    } else if (sample->name == "spec_decode_num_accepted_tokens_per_pos") {
      const size_t position = position_of(sample->labels);
      auto& positions = counts.accepted_per_position;
      positions.resize(std::max(positions.size(), position + 1));
      positions[position] += value;
    }
  }
  if (!found) return std::nullopt;
  return counts;
}

}  // namespace outrider
