// SPDX-License-Identifier: Apache-2.0
// Any output of a model, in any pieces, becomes well-formed events of every API, and a whole answer in JSON.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "fuzz_model.h"
#include "server/api/answers/parse_call.h"
#include "server/api/response_store.h"

namespace {

using namespace outrider;

constexpr std::string_view kTools = R"([{"type":"function","function":{"name":"f"}}])";

struct StreamingApi {
  ParseFunction parse;
  std::string body;         // without "stream" and the brace that closes it
  std::string_view ending;  // of the last event
};

const StreamingApi kApis[] = {
    {parse_chat,
     R"({"messages":[{"role":"user","content":"x"}],"logprobs":true,"tools":)" + std::string(kTools),
     "data: [DONE]\n\n"},
    {parse_completion, R"({"prompt":"x","stop":"ab","return_token_ids":true)", "data: [DONE]\n\n"},
    {parse_responses, R"({"input":"x","tools":[{"type":"function","name":"f","parameters":{}}])", "}}\n\n"},
    {parse_messages,
     R"({"max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":{}}])",
     "data: {\"type\":\"message_stop\"}\n\n"},
    {parse_infill, R"({"input_prefix":"x","input_suffix":"y")", "}}\n\n"}};

// The bytes without invalid UTF-8, as an engine's text is.
std::string text_of(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t valid = utf8::valid_prefix(bytes);
    text += bytes.substr(0, valid);
    bytes.remove_prefix(std::min(valid + 1, bytes.size()));
  }
  return text;
}

void require(bool is_true) {
  if (!is_true) std::abort();
}

// Every event is a line "data: JSON", after a line with its name in some APIs, and an empty line.
void require_events(std::string_view events) {
  while (!events.empty()) {
    const size_t end = events.find("\n\n");
    require(end != std::string_view::npos);
    std::string_view event = events.substr(0, end);
    events.remove_prefix(end + 2);
    if (event.starts_with("event: ")) event.remove_prefix(event.find('\n') + 1);
    require(event.starts_with("data: ") && event.find('\n') == std::string_view::npos);
    event.remove_prefix(6);
    require(event == "[DONE]" || nlohmann::json::accept(event));
  }
}

ChoiceDelta delta_of(std::string_view text) {
  ChoiceDelta delta;
  delta.text = text;
  delta.tokens = fuzz_model().tokenizer->encode(text, {.add_special = false, .parse_special = false});
  delta.origins.assign(delta.tokens.size(), TokenOrigin::kPlain);
  delta.logprobs.resize(delta.tokens.size());
  return delta;
}

// The pieces end where the bytes of `lengths` say; text that is left is one more piece.
void answer(GenerationCall& call, std::string_view text, std::string_view lengths, std::string& events) {
  call.start(events);
  for (const char length : lengths) {
    size_t size = std::min<size_t>(static_cast<uint8_t>(length), text.size());
    while (size < text.size() && (static_cast<uint8_t>(text[size]) & 0xC0) == 0x80) ++size;
    if (size > 0) call.add(0, delta_of(text.substr(0, size)), events);
    text.remove_prefix(size);
  }
  ChoiceDelta last = delta_of(text);
  last.completion.emplace();
  last.completion->finish_reason = text.empty() ? FinishReason::kLength : FinishReason::kStop;
  call.add(0, std::move(last), events);
}

}  // namespace

// The first four bytes are lengths of pieces; the last byte chooses the API, and whether it streams.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size - 1);
  const size_t lengths = std::min<size_t>(bytes.size(), 4);
  const StreamingApi& api = kApis[data[size - 1] / 2 % std::size(kApis)];
  const bool streams = data[size - 1] % 2 == 1;
  static ResponseStore responses(1 << 20);
  CallContext context;
  context.model = &fuzz_model();
  context.responses = &responses;
  context.id = "x";
  auto call = parse_call(api.parse, api.body + (streams ? R"(,"stream":true})" : "}"), context);
  require(call.ok());
  std::string events;
  answer(**call, text_of(bytes.substr(lengths)), bytes.substr(0, lengths), events);
  require_events(events);
  require(streams ? events.ends_with(api.ending) : nlohmann::json::accept((*call)->body()));
  return 0;
}
