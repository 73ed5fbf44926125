// SPDX-License-Identifier: Apache-2.0
// The first byte chooses the form of calls, the second how the text is cut. A stream must say the same as a
// whole answer. Begun arguments must end as JSON, and no text may be lost where there is no call.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "base/white_space.h"
#include "server/api/json_text.h"
#include "server/api/tool_calls/output_parser.h"

namespace {

using namespace outrider;

// A sign of each form, some with the marks of thinking.
constexpr std::string_view kTemplates[] = {"<|channel|><|message|>",
                                           "<minimax:tool_call></think>",
                                           "<|tool_call><channel|>",
                                           "<|tool_calls_section_begin|></think>",
                                           "<｜tool▁calls▁begin｜></think>",
                                           "<|tool_list_start|>",
                                           "<function_calls></think>",
                                           "<parameter=</think>",
                                           "<arg_key></think>",
                                           "[TOOL_CALLS][ARGS][/THINK]",
                                           "[TOOL_CALLS]",
                                           "<tool_calls></think>",
                                           "<|tool_call|>Here is my response:",
                                           "<|tool|>",
                                           "<tool_call></think>",
                                           "<|header_start|>",
                                           "<|python_tag|>",
                                           "",
                                           "<|observation|></think>",
                                           "｜DSML｜",
                                           "｜DSML｜tool_calls></think>"};

SharedTools tools() {
  constexpr const char* kSchema =
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array"},"s":{"type":"string"}}})";
  static const SharedTools kTools = std::make_shared<const std::vector<Tool>>(std::vector<Tool>{
      {.name = "f", .parameters = kSchema, .path = {}}, {.name = "now", .parameters = kSchema, .path = {}}});
  return kTools;
}

struct Answer {
  std::string text;
  bool has_calls = false;
  size_t shown = 0;  // characters of text that are no white space
  bool calls = false;
};

void add(const MessageDelta& delta, MessageDelta& all) {
  all.reasoning += delta.reasoning;
  all.content += delta.content;
  for (const auto& call : delta.calls) {
    if (!call.name.empty()) all.begin_call(call.index, call.name);
    all.extend_call(call.index, call.arguments);
  }
}

size_t letters(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += is_json_space(c) ? 0 : 1;
  return count;
}

Answer read(const OutputParts& parts, std::string_view text, size_t piece) {
  OutputParser parser(parts, tools());
  MessageDelta all;
  for (size_t i = 0; i < text.size(); i += piece) add(parser.push(text.substr(i, piece), false), all);
  add(parser.push("", true), all);
  Answer answer{.text = all.reasoning + "|" + all.content, .has_calls = parser.has_calls()};
  answer.shown = letters(all.reasoning) + letters(all.content);
  answer.calls = !all.calls.empty();
  for (const auto& call : all.calls) {
    if (!is_json_object(call.arguments)) std::abort();
    answer.text += "|" + call.name + call.arguments;
  }
  return answer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (utf8::valid_prefix(text) != text.size()) return 0;  // the decoder of tokens gives no other text
  const std::string_view chat_template = kTemplates[data[0] % std::size(kTemplates)];
  OutputParts parts;
  parts.thinking = find_thinking_form(chat_template, "");
  parts.begins = static_cast<ThinkingState>(data[1] / 16 % 3);
  const CallForm* form = find_call_form(chat_template, nullptr);
  if (form != nullptr) parts.calls.push_back(form);
  if (form == nullptr || data[1] >= 128) parts.calls.push_back(&plain_call_form());
  const Answer whole = read(parts, text, text.size() + 1);
  const Answer stream = read(parts, text, 1 + data[1] % 16);
  if (whole.text != stream.text || whole.has_calls != stream.has_calls) std::abort();
  if (whole.has_calls && !whole.calls) std::abort();
  if (parts.thinking == nullptr && !whole.calls && whole.shown != letters(text)) std::abort();
  return 0;
}
