// SPDX-License-Identifier: Apache-2.0
// Any body is accepted or refused in one line with a 4xx status; an accepted request can be submitted.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fuzz_model.h"
#include "server/api/answers/parse_call.h"
#include "server/api/answers/text_routes.h"
#include "server/api/response_store.h"

namespace {

using namespace outrider;

void require_good(const ApiError& error) {
  const bool is_clients = error.status >= 400 && error.status < 500;
  if (!is_clients || error.message.empty() || error.message.find('\n') != std::string::npos) std::abort();
}

void require_submittable(const Request& request) {
  const ServedModel& model = fuzz_model();
  const auto length = static_cast<int64_t>(request.prompt.size());
  if (length == 0 || request.max_tokens < 0 || length + request.max_tokens > model.context) std::abort();
  for (const TokenId token : request.prompt) {
    if (token < 0 || token >= model.vocab_size) std::abort();
  }
}

// An answer to the request, in pieces that look like calls of tools.
void answer(GenerationCall& call, ParseFunction parse) {
  std::string events;
  call.start(events);
  for (size_t i = 0; i < call.requests().size(); ++i) {
    for (const std::string_view text :
         {"<tool_call>{\"name\": \"f\", \"arg", "uments\": {}}</tool_call> x"}) {
      ChoiceDelta delta;
      delta.text = text;
      delta.tokens = fuzz_model().tokenizer->encode(text);
      delta.origins.assign(delta.tokens.size(), TokenOrigin::kAccepted);
      call.add(static_cast<int>(i), std::move(delta), events);
    }
    ChoiceDelta last;
    last.completion.emplace();
    call.add(static_cast<int>(i), std::move(last), events);
  }
  const std::string_view end = parse == parse_responses  ? "}}\n\n"
                               : parse == parse_infill   ? "}}\n\n"
                               : parse == parse_messages ? "data: {\"type\":\"message_stop\"}\n\n"
                                                         : "data: [DONE]\n\n";
  if (call.streams() != events.ends_with(end)) std::abort();
  if (!call.streams() && call.body().empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  CallContext context;
  context.id = "x";
  static ResponseStore responses(1 << 20);
  context.responses = &responses;
  for (const ParseFunction parse : {parse_chat, parse_completion, parse_responses, parse_messages,
                                    parse_infill, parse_embeddings, parse_rerank}) {
    context.model = parse == parse_rerank ? &fuzz_reranker() : &fuzz_model();
    auto call = parse_call(parse, body, context);
    if (!call.ok()) {
      require_good(call.error());
      continue;
    }
    for (const Request& request : (*call)->requests()) require_submittable(request);
    answer(**call, parse);
  }
  for (const auto route : {tokenize_body, detokenize_body, apply_template_body, chat_tokens_body,
                           response_tokens_body, message_tokens_body}) {
    const auto result = route(body, fuzz_model(), context.limits);
    if (!result.ok()) require_good(result.error());
  }
  return 0;
}
