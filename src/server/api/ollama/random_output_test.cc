// SPDX-License-Identifier: Apache-2.0
// A model of random bytes: whatever it writes, every route answers in JSON, a stream says what a whole answer
// says, and no text is lost.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/sanitized.h"
#include "base/utf8.h"
#include "base/white_space.h"
#include "server/api/answers/test_model.h"
#include "server/api/json_text.h"
#include "server/api/ollama/ollama_calls.h"
#include "server/api/tool_calls/form_cases.h"

namespace outrider {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kShowsTools =
    "{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}{{ tools | tojson if tools }}";

// The parts that a client reads out of an answer.
struct Read {
  std::string thinking, content;
  std::vector<std::pair<std::string, std::string>> calls;  // names and arguments

  // "name arguments", one call on a line, the arguments in one spelling.
  std::string call_text() const {
    std::string text;
    for (const auto& [name, arguments] : calls) {
      const Json parsed =
          Json::parse(arguments.empty() ? "{}" : arguments, nullptr, /*allow_exceptions=*/false);
      EXPECT_TRUE(parsed.is_object()) << arguments;
      text += name + " " + (parsed.is_object() ? parsed.dump() : arguments) + "\n";
    }
    return text;
  }
};

std::string text_at(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string()
             ? object[key].get<std::string>()
             : std::string();
}

void read_call(const Json& function, Read& read) {
  const std::string name = text_at(function, "name");
  if (!name.empty()) read.calls.emplace_back(name, "");
  if (!function.contains("arguments") || read.calls.empty()) return;
  const Json& arguments = function["arguments"];
  read.calls.back().second += arguments.is_string() ? arguments.get<std::string>() : arguments.dump();
}

void read_chat_choice(const Json& answer, Read& read) {
  for (const Json& choice : answer.value("choices", Json::array())) {
    const Json& message =
        choice.contains("delta") ? choice["delta"] : choice.value("message", Json::object());
    read.thinking += text_at(message, "reasoning_content");
    read.content += text_at(message, "content") + text_at(choice, "text");
    for (const Json& call : message.value("tool_calls", Json::array())) read_call(call["function"], read);
  }
}

void read_response_item(const Json& item, Read& read) {
  for (const Json& part : item.value("content", Json::array()))
    (item["type"] == "reasoning" ? read.thinking : read.content) += text_at(part, "text");
  if (item["type"] == "function_call") read_call(item, read);
}

void read_response(const Json& answer, Read& read) {
  if (answer.contains("output")) {
    for (const Json& item : answer["output"]) read_response_item(item, read);
    return;
  }
  const std::string type = answer["type"];
  if (type == "response.output_text.delta") read.content += answer["delta"];
  if (type == "response.reasoning_text.delta") read.thinking += answer["delta"];
  if (type == "response.output_item.done" && answer["item"]["type"] == "function_call")
    read_response_item(answer["item"], read);
}

void read_block(const Json& block, Read& read) {
  read.thinking += text_at(block, "thinking");
  read.content += text_at(block, "text");
  if (!read.calls.empty()) read.calls.back().second += text_at(block, "partial_json");
  if (text_at(block, "type") != "tool_use") return;
  read.calls.emplace_back(text_at(block, "name"), block["input"].empty() ? "" : block["input"].dump());
}

void read_message(const Json& answer, Read& read) {
  for (const Json& block : answer.value("content", Json::array())) read_block(block, read);
  if (answer.contains("content_block")) read_block(answer["content_block"], read);
  if (answer.contains("delta")) read_block(answer["delta"], read);
}

void read_ollama(const Json& answer, Read& read) {
  const Json message = answer.value("message", Json::object());
  read.thinking += text_at(message, "thinking") + text_at(answer, "thinking");
  read.content += text_at(message, "content") + text_at(answer, "response") + text_at(answer, "content");
  for (const Json& call : message.value("tool_calls", Json::array())) read_call(call["function"], read);
}

struct SpokenRoute {
  const char* name;
  ParseFunction parse;
  void (*read)(const Json& answer, Read& read);
  std::string body;
  bool is_plain = false;  // all output is content
};

const std::string kSchema =
    R"({"type":"object","properties":{"a":{"type":"integer"},"s":{"type":"string"}}})";

std::vector<SpokenRoute> spoken_routes() {
  const std::string messages = R"("messages":[{"role":"user","content":"x"}])";
  const auto functions = [](const std::string& key, bool is_wrapped) {
    std::string tools = "\"tools\":[";
    for (const char* name : {"add", "now"}) {
      const std::string tool = R"("name":")" + std::string(name) + "\",\"" + key + "\":" + kSchema;
      tools += tools.back() == '[' ? "" : ",";
      tools += is_wrapped ? R"({"type":"function","function":{)" + tool + "}}"
                          : R"({"type":"function",)" + tool + "}";
    }
    return tools + "]";
  };
  const std::string chat = functions("parameters", true);
  const std::string input = functions("input_schema", false);
  return {
      {"chat", parse_chat, read_chat_choice, messages + "," + chat},
      {"responses", parse_responses, read_response, R"("input":"x",)" + functions("parameters", false)},
      {"messages", parse_messages, read_message,
       messages + R"(,"max_tokens":900,"tools":[{"name":"add","input_schema":)" + kSchema +
           R"(},{"name":"now","input_schema":)" + kSchema + "}]"},
      {"ollama chat", parse_ollama_chat, read_ollama, R"("model":"small",)" + messages + "," + chat},
      {"ollama generate", parse_ollama_generate, read_ollama, R"("model":"small","prompt":"x","raw":true)"},
      {"completions", parse_completion, read_chat_choice, R"("prompt":"x")", true},
      {"completion", parse_llama_completion, read_ollama, R"("prompt":"x")", true}};
}

// Pieces of answers, of marks and of any text.
std::string random_text(std::mt19937& random, std::string_view answer) {
  constexpr std::string_view kPieces[] = {
      "<think>",  "</think>",         "\n\n", " ", "{",    "}",       "[",     "]", "\"", "\\", ",", ":",
      "\xC3\xA9", "\xF0\x9F\x98\x80", "\x01", "a", "null", "<|end|>", "data: "};
  std::string text;
  for (size_t part = random() % 12 + 1; part-- > 0;) {
    const size_t begin = random() % answer.size();
    text += random() % 2 == 0 ? answer.substr(begin, random() % 60) : kPieces[random() % std::size(kPieces)];
  }
  // A cut through a character is no text that a decoder gives.
  std::string kept;
  for (std::string_view rest = text; !rest.empty();) {
    const utf8::CodePoint next = utf8::decode(rest);
    const size_t length = static_cast<size_t>(std::max(next.length, 1));
    if (next.length > 0 && utf8::valid_prefix(rest.substr(0, length)) == length)
      kept += rest.substr(0, length);
    rest.remove_prefix(length);
  }
  return kept;
}

// Reads every object of an answer; a text that is no JSON ends the test.
Read read_answer(const SpokenRoute& route, std::string_view text) {
  Read read;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const bool is_event = line.starts_with("data: ");
    const std::string_view json = is_event ? line.substr(6) : line;
    if (line.empty() || line.starts_with("event: ") || json == "[DONE]") continue;
    const Json object = Json::parse(json, nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(object.is_discarded()) << route.name << ": " << json;
    if (object.is_object()) route.read(object, read);
  }
  return read;
}

Read spoken(const TestServedModel& model, const SpokenRoute& route, const std::string& text, size_t piece) {
  const bool streams = piece > 0;
  const std::string body = "{" + route.body + (streams ? R"(,"stream":true})" : R"(,"stream":false})");
  const auto call = parse_call(route.parse, body, model.context());
  EXPECT_TRUE(call.ok()) << route.name << ": " << call.error().message;
  std::string events;
  (*call)->start(events);
  std::string rest = text;
  const std::vector<TokenId> tokens = model.tokens(text);
  // Pieces end where characters end, as a decoder gives them.
  while (!rest.empty()) {
    size_t length = streams ? std::min(piece, rest.size()) : rest.size();
    while (length < rest.size() && (rest[length] & 0xC0) == 0x80) ++length;
    ChoiceDelta delta;
    delta.text = rest.substr(0, length);
    (*call)->add(0, std::move(delta), events);
    rest.erase(0, length);
  }
  (*call)->add(0, last_delta(text, tokens), events);
  return read_answer(route, streams ? events : (*call)->body());
}

std::string without_space(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if (!is_json_space(c)) kept += c;
  }
  return kept;
}

TEST(RandomOutput, IsJsonAndTheSameInStreamsOnEveryRoute) {
  std::mt19937 random(51);
  for (const FormCase& one : kFormCases) {
    const TestServedModel model(std::string(kShowsTools) + "{# " + one.chat_template + " </think> #}");
    for (const SpokenRoute& route : spoken_routes()) {
      for (int run = 0; run < repetitions(25); ++run) {
        const std::string text = random_text(random, one.answer);
        const Read whole = spoken(model, route, text, 0);
        const Read stream = spoken(model, route, text, 1 + random() % 9);
        ASSERT_EQ(whole.thinking, stream.thinking) << one.name << ", " << route.name << ": " << text;
        ASSERT_EQ(whole.content, stream.content) << one.name << ", " << route.name << ": " << text;
        ASSERT_EQ(whole.call_text(), stream.call_text()) << one.name << ", " << route.name << ": " << text;
        if (HasFailure()) return;
        if (route.is_plain) {
          ASSERT_EQ(whole.content, text) << route.name;
        }
      }
    }
  }
}

// Without marks of thinking and calls, all of the text is content.
TEST(RandomOutput, IsKeptWhereItHasNoMarks) {
  std::mt19937 random(5);
  const TestServedModel model(kShowsTools);
  for (const SpokenRoute& route : spoken_routes()) {
    if (std::string_view(route.name) == "ollama generate") continue;
    for (int run = 0; run < 100; ++run) {
      const std::string text = random_text(random, "Some text, \"quoted\" and {bracketed}.");
      const Read whole = spoken(model, route, text, 0);
      ASSERT_EQ(without_space(whole.content), without_space(text)) << route.name;
    }
  }
}

}  // namespace
}  // namespace outrider
