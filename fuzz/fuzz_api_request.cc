// SPDX-License-Identifier: Apache-2.0
// Any body is accepted or refused in one line with a 4xx status; an accepted request can be submitted.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/api/answers/parse_call.h"
#include "server/api/answers/text_routes.h"
#include "server/api/response_store.h"

namespace {

using namespace outrider;

constexpr std::string_view kTemplate =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] "
    "%}<tool_call>"
    "{{ c.function.arguments | tojson }}</tool_call>{% endfor %}<|im_end|>{% endfor %}{{ tools | tojson }}";

// All bytes and the control tokens of ChatML.
const ServedModel& served_model() {
  static const ChatTemplate chat_template = ChatTemplate::parse(kTemplate).value();
  static const ServedModel model = [] {
    TokenizerSpec spec;
    spec.kind = TokenizerKind::kSentencePiece;
    spec.pieces = {"<unk>", "<|im_start|>", "<|im_end|>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"};
    spec.attributes.assign(spec.pieces.size(), TokenAttribute::kControl);
    spec.attributes[0] = TokenAttribute::kUnknown;
    constexpr char kHex[] = "0123456789ABCDEF";
    for (int byte = 0; byte < 256; ++byte) {
      spec.pieces.push_back(std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">");
      spec.attributes.push_back(TokenAttribute::kByte);
    }
    spec.scores.assign(spec.pieces.size(), 0);
    spec.unknown = 0;
    ServedModel made;
    made.name = "m";
    made.tokenizer = Tokenizer::create(std::move(spec)).value();
    made.token_trie = TokenTrie::create(*made.tokenizer);
    made.chat_template = &chat_template;
    made.template_abilities = find_abilities(chat_template, "", "");
    made.stop_tokens = {2};
    made.context = 4096;
    made.vocab_size = made.tokenizer->vocab_size();
    return made;
  }();
  return model;
}

void require_good(const ApiError& error) {
  const bool is_clients = error.status >= 400 && error.status < 500;
  if (!is_clients || error.message.empty() || error.message.find('\n') != std::string::npos) std::abort();
}

void require_submittable(const Request& request) {
  const ServedModel& model = served_model();
  const auto length = static_cast<int64_t>(request.prompt.size());
  if (length == 0 || request.max_tokens < 0 || length + request.max_tokens > model.context) std::abort();
  for (const TokenId token : request.prompt) {
    if (token < 0 || token >= model.vocab_size) std::abort();
  }
}

// An answer to the request, in pieces that look like calls of tools.
void answer(GenerationCall& call, Endpoint endpoint) {
  std::string events;
  call.start(events);
  for (size_t i = 0; i < call.requests().size(); ++i) {
    for (const std::string_view text :
         {"<tool_call>{\"name\": \"f\", \"arg", "uments\": {}}</tool_call> x"}) {
      ChoiceDelta delta;
      delta.text = text;
      delta.tokens = served_model().tokenizer->encode(text);
      delta.origins.assign(delta.tokens.size(), TokenOrigin::kAccepted);
      call.add(static_cast<int>(i), std::move(delta), events);
    }
    ChoiceDelta last;
    last.completion.emplace();
    call.add(static_cast<int>(i), std::move(last), events);
  }
  const std::string_view end = endpoint == Endpoint::kResponses  ? "}}\n\n"
                               : endpoint == Endpoint::kInfill   ? "}}\n\n"
                               : endpoint == Endpoint::kMessages ? "data: {\"type\":\"message_stop\"}\n\n"
                                                                 : "data: [DONE]\n\n";
  if (call.streams() != events.ends_with(end)) std::abort();
  if (!call.streams() && call.body().empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  CallContext context;
  context.model = &served_model();
  context.id = "x";
  static ResponseStore responses(1 << 20);
  context.responses = &responses;
  for (const Endpoint endpoint : {Endpoint::kChatCompletions, Endpoint::kCompletions, Endpoint::kResponses,
                                  Endpoint::kMessages, Endpoint::kInfill}) {
    auto call = parse_call(endpoint, body, context);
    if (!call.ok()) {
      require_good(call.error());
      continue;
    }
    for (const Request& request : (*call)->requests()) require_submittable(request);
    answer(**call, endpoint);
  }
  for (const auto route : {tokenize_body, detokenize_body, apply_template_body, chat_tokens_body,
                           response_tokens_body, message_tokens_body}) {
    const auto result = route(body, served_model(), context.limits);
    if (!result.ok()) require_good(result.error());
  }
  return 0;
}
