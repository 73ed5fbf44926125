// SPDX-License-Identifier: Apache-2.0
// The first byte chooses the form of calls, the second how the text is cut. A stream must say the same as a
// whole answer. Begun arguments must end as JSON, and no text may be lost where there is no call. The mutator
// writes the marks of the form, which random bytes seldom are, so comparisons need no tracing.
// The argument form=<number> reads all inputs in one form.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "base/white_space.h"
#include "server/api/json_text.h"
#include "server/api/tool_calls/output_parser.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace outrider;

constexpr size_t kMaxText = 512;

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

struct Form {
  OutputParts parts;
  std::vector<std::string_view> words;  // the mutator's
};

Form form_of(std::string_view chat_template) {
  Form form;
  form.parts.thinking = find_thinking_form(chat_template, "");
  form.words = {"f",
                "now",
                "a",
                "s",
                "{}",
                "{",
                "}",
                "[",
                "]",
                ", ",
                "; ",
                ":",
                "\"",
                "\\\"",
                "\n",
                "1",
                "true",
                "\"name\": \"",
                "\"arguments\": {",
                "```json\n",
                "<|start|>",
                "<|channel|>",
                "to=functions.f"};
  if (form.parts.thinking != nullptr)
    form.words.insert(form.words.end(), {form.parts.thinking->open, form.parts.thinking->close});
  const CallForm* calls = find_call_form(chat_template, nullptr);
  if (calls == nullptr) calls = &plain_call_form();
  form.parts.calls.push_back(calls);
  const std::vector<std::string_view> marks = calls->marks();
  form.words.insert(form.words.end(), marks.begin(), marks.end());
  for (const std::string_view word :
       {calls->spelling.before_name, calls->spelling.after_name, calls->spelling.after_arguments}) {
    if (!word.empty()) form.words.push_back(word);
  }
  return form;
}

std::optional<uint8_t> only_form;  // by the command line

uint8_t form_number(uint8_t first_byte) {
  return static_cast<uint8_t>(only_form.value_or(first_byte) % std::size(kTemplates));
}

const Form& form_at(uint8_t number) {
  static const std::vector<Form> kForms = [] {
    std::vector<Form> forms;
    for (const std::string_view chat_template : kTemplates) forms.push_back(form_of(chat_template));
    return forms;
  }();
  return kForms[number];
}

// How often each form was read, which the end of the program prints.
class Executions {
 public:
  void count(uint8_t number) { ++counts_[number]; }
  ~Executions() {
    std::fputs("executions by form:", stderr);
    for (size_t i = 0; i < std::size(kTemplates); ++i) {
      const std::string name(form_at(static_cast<uint8_t>(i)).parts.calls.front()->name);
      std::fprintf(stderr, " %s %zu", name.c_str(), counts_[i]);
    }
    std::fputs("\n", stderr);
  }

 private:
  std::array<size_t, std::size(kTemplates)> counts_ = {};
};

const SharedTools& tools() {
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

// Bytes as the decoder of tokens gives them.
std::string characters_in(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t valid = utf8::valid_prefix(bytes);
    text += bytes.substr(0, valid);
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    text += "\xEF\xBF\xBD";
    bytes.remove_prefix(1);
  }
  return text;
}

// Whether an answer without calls has all of the text. The marks of thinking are no text.
bool is_whole(const Answer& answer, const ThinkingForm* thinking, std::string_view text) {
  const size_t lost = letters(text) - answer.shown;
  if (thinking == nullptr) return lost == 0;
  const size_t open = letters(thinking->open), close = letters(thinking->close);
  return thinking->is_channel || lost == 0 || lost == open || lost == close || lost == open + close;
}

}  // namespace

// Takes form=<number> out of the arguments.
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  constexpr std::string_view kForm = "form=";
  char** const last = *arguments + *count;
  char** const kept = std::remove_if(*arguments, last, [&](std::string_view argument) {
    if (!argument.starts_with(kForm)) return false;
    only_form = static_cast<uint8_t>(std::atoi(argument.substr(kForm.size()).data()));
    return true;
  });
  *count = static_cast<int>(kept - *arguments);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (size > 0 && seed % 8 == 7) data[0] = static_cast<uint8_t>(seed / 8);  // no form is left behind
  const std::vector<std::string_view>& words = form_at(form_number(size == 0 ? 0 : data[0])).words;
  const std::string_view word = words[seed / 4 % words.size()];
  if (seed % 4 < 2 || size < 2 || size + word.size() > max_size)
    return LLVMFuzzerMutate(data, size, max_size);
  std::string bytes(data, data + size);
  const size_t place = 2 + seed / 256 % (size - 1);
  bytes.replace(place, seed % 4 == 2 ? 0 : word.size(), word);
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string text =
      characters_in({reinterpret_cast<const char*>(data) + 2, std::min(size - 2, kMaxText)});
  const uint8_t number = form_number(data[0]);
  OutputParts parts = form_at(number).parts;
  static Executions executions;
  executions.count(number);
  parts.begins = static_cast<ThinkingState>(data[1] / 16 % 3);
  if (data[1] >= 128 && parts.calls.front() != &plain_call_form()) parts.calls.push_back(&plain_call_form());
  const Answer whole = read(parts, text, text.size() + 1);
  const Answer stream = read(parts, text, 1 + data[1] % 16);
  if (whole.text != stream.text || whole.has_calls != stream.has_calls) std::abort();
  if (whole.has_calls && !whole.calls) std::abort();
  if (!whole.calls && !is_whole(whole, parts.thinking, text)) std::abort();
  return 0;
}
