// SPDX-License-Identifier: Apache-2.0
// Kinds of failures that users of other engines have reported, each with two samples in words of other
// families than in the reports. Kinds of files have theirs elsewhere:
//   gaps in a vocabulary, special tokens of templates: tokenizer_json_test.cc
//   special ids outside the vocabulary: gguf_hostile_test.cc
//   templates that cannot be read: chat_template_test.cc, program_generate_test.cc
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/api/answers/test_model.h"
#include "server/api/ollama/ollama_calls.h"

namespace outrider {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kShowsAll =
    "{% for m in messages %}[{{ m.role }}:{{ m.thinking or '' }}{{ m.content or '' }}{% for c in "
    "m.tool_calls or "
    "[] %}{{ c.id }} {{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}{{ m.tool_call_id "
    "}}]{% "
    "endfor %}{{ tools | tojson if tools }}";
const std::string kHello = R"("messages":[{"role":"user","content":"x"}])";
const std::string kFunctions =
    R"("tools":[{"type":"function","function":{"name":"book","parameters":{"type":"object","properties":{)"
    R"("place":{"type":"string"},"nights":{"type":"integer"},"late":{"type":"boolean"},"who":{"type":"array"}}}}},)"
    R"({"type":"function","function":{"name":"today"}}])";

// Shows tools and has these marks, as a template of the family does.
TestServedModel family(const std::string& marks, const std::string& prompt_end = "") {
  return TestServedModel(std::string(kShowsAll) + "{# " + marks + " #}" + prompt_end);
}

void add_choice(const Json& answer, Json& all) {
  for (const Json& choice : answer["choices"]) {
    const Json& part = choice.contains("delta") ? choice["delta"] : choice["message"];
    for (const char* key : {"reasoning_content", "content"}) {
      if (part.contains(key) && part[key].is_string())
        all[key] = all.value(key, "") + part[key].get<std::string>();
    }
    for (const Json& call : part.value("tool_calls", Json::array())) {
      if (call.contains("id")) all["calls"].push_back("");
      std::string text = all["calls"].back();
      text += call["function"].value("name", "") + call["function"].value("arguments", "");
      all["calls"].back() = text;
    }
    if (choice["finish_reason"].is_string()) all["finish"] = choice["finish_reason"];
  }
}

// The parts that a client gets if the model says `text`, whole or in pieces of some bytes.
Json heard(const TestServedModel& model, const std::string& fields, const std::string& text, size_t piece) {
  const std::string body = "{" + kHello + "," + fields + (piece > 0 ? R"(,"stream":true})" : "}");
  const auto call = model.chat(body);
  EXPECT_TRUE(call.ok()) << call.error().message;
  std::string events;
  (*call)->start(events);
  const size_t step = piece > 0 ? piece : text.size();
  for (size_t at = 0; at < text.size(); at += step)
    (*call)->add(0, delta_of(model, text.substr(at, step)), events);
  (*call)->add(0, last_delta(text, model.tokens(text)), events);
  Json all = {{"calls", Json::array()}};
  if (piece == 0) add_choice(Json::parse((*call)->body()), all);
  for (size_t at = 0; piece > 0 && (at = events.find("data: {", at)) != std::string::npos; ++at)
    add_choice(Json::parse(events.substr(at + 6, events.find('\n', at) - at - 6)), all);
  return all;
}

// "thinking|content|call|call|finish reason", which must be the same in streams.
std::string answer_to(const TestServedModel& model, const std::string& text,
                      const std::string& fields = kFunctions) {
  const auto written = [](const Json& all) {
    std::string line = all.value("reasoning_content", "") + "|" + all.value("content", "");
    for (const Json& call : all["calls"]) line += "|" + call.get<std::string>();
    return line + "|" + all.value("finish", "");
  };
  const std::string whole = written(heard(model, fields, text, 0));
  for (const size_t piece : {size_t{1}, size_t{5}})
    EXPECT_EQ(written(heard(model, fields, text, piece)), whole);
  return whole;
}

std::string prompt_after(const TestServedModel& model, const std::string& body) {
  const auto call = model.chat("{" + body + "}");
  return call.ok() ? model.context().model->tokenizer->decode((*call)->requests()[0].prompt, false)
                   : "refused: " + call.error().message;
}

TEST(ReportedKinds, ChannelsOfAnAnswer) {
  const TestServedModel model = family("<|channel|><|message|>");
  EXPECT_EQ(
      answer_to(
          model,
          "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>final<|message|>Ok."),
      "|I look.\nOk.|stop");
  EXPECT_EQ(
      answer_to(model,
                "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>analysis<|message|>B"
                "<|end|><|start|>assistant<|channel|>final<|message|>C"),
      "A\nB|C|stop");
}

TEST(ReportedKinds, CallsOnChannels) {
  const TestServedModel model = family("<|channel|><|message|>");
  EXPECT_EQ(answer_to(model, " to=functions.today<|channel|>commentary json<|message|>{}<|call|>"),
            "||today{}|tool_calls");
  EXPECT_EQ(answer_to(model, "<|channel|>analysis to=functions.book code<|message|>{\"nights\": 2}<|call|>"),
            "||book{\"nights\": 2}|tool_calls");
}

TEST(ReportedKinds, CallsOfKeysAndTexts) {
  EXPECT_EQ(
      answer_to(family("<arg_key></think>", "<think>"),
                "Hm.</think><tool_call>book<arg_key>place</arg_key><arg_value>7</arg_value><arg_key>late"
                "</arg_key><arg_value>true</arg_value></tool_call>"),
      "Hm.||book{\"place\": \"7\", \"late\": true}|tool_calls");
  EXPECT_EQ(
      answer_to(
          family("<minimax:tool_call></think>", "<think>\n"),
          "So.\n</think>\n\n<minimax:tool_call>\n<invoke name=\"book\">\n<parameter name=\"who\">[\"a\"]"
          "</parameter>\n</invoke>\n</minimax:tool_call>"),
      "So.||book{\"who\": [\"a\"]}|tool_calls");
}

TEST(ReportedKinds, CallsAsPython) {
  EXPECT_EQ(answer_to(family("<function_calls>"),
                      "<function_calls>\nbook(place='Ulm', late=True)\ntoday()\n</function_calls>"),
            "||book{\"place\": \"Ulm\", \"late\": true}|today{}|tool_calls");
  EXPECT_EQ(answer_to(family("<|header_start|>"), "[book(nights=3, who=[\"a\", None])]"),
            "||book{\"nights\": 3, \"who\": [\"a\", null]}|tool_calls");
}

TEST(ReportedKinds, NotationsOfAFamily) {
  EXPECT_EQ(answer_to(family("<|tool_call>"),
                      "<|tool_call>call:book{who:[<|\"|>a, b<|\"|>,<|\"|>}<|\"|>],nights:2}<tool_call|>"),
            "||book{\"who\": [\"a, b\", \"}\"], \"nights\": 2}|tool_calls");
  EXPECT_EQ(answer_to(family("｜DSML｜ tool_calls>"),
                      "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"book\">\n<｜DSML｜parameter "
                      "name=\"place\" string=\"true\">"
                      "[1]</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>"),
            "||book{\"place\": \"[1]\"}|tool_calls");
}

TEST(ReportedKinds, TheFormThatTheServerAskedFor) {
  const std::string hides = "{% for m in messages %}{{ m.content }}{% endfor %}";
  const std::string text = "{\"name\": \"book\", \"arguments\": {\"nights\": 1}}";
  const TestServedModel mistral(hides + "{# [TOOL_CALLS] [AVAILABLE_TOOLS] #}"),
      qwen(hides + "{# <tool_call> #}");
  EXPECT_EQ(answer_to(mistral, text), "||book{\"nights\": 1}|tool_calls");
  EXPECT_EQ(answer_to(mistral, "[TOOL_CALLS] [" + text + "]"), "||book{\"nights\": 1}|tool_calls");
  EXPECT_EQ(answer_to(qwen, text), "||book{\"nights\": 1}|tool_calls");
}

TEST(ReportedKinds, BeginningsOfAnswersInEndMarks) {
  const auto begun = [](const std::string& end, const std::string& text) {
    const TestServedModel model("{% for m in messages %}[{{ m.role }}]{{ m.content }}" + end +
                                "{% endfor %}");
    return prompt_after(model,
                        R"("continue_final_message":true,"messages":[{"role":"user","content":"Q"},{"role":)"
                        R"("assistant","content":)" +
                            Json(text).dump() + "}]");
  };
  for (const std::string text : {"end", "<", "turn", ">", "\n"})
    EXPECT_EQ(begun("<end_of_turn>\\n", text), "[user]Q<end_of_turn>\\n[assistant]" + text);
  for (const std::string text : {"e", "|", "_id", "<|eot"})
    EXPECT_EQ(begun("<|eot_id|>", text), "[user]Q<|eot_id|>[assistant]" + text);
}

std::string refuses(const std::string& condition) {
  std::string text(kShowsAll);
  return text.insert(text.find('['), "{% if " + condition + " %}{{ raise_exception('no') }}{% endif %}");
}

TEST(ReportedKinds, SystemMessagesInTheMiddle) {
  const std::string messages =
      R"("messages":[{"role":"system","content":"S"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},)"
      R"({"role":"system","content":"Plan."},{"role":"user","content":"c"}])";
  const TestServedModel qwen(refuses("m.role == 'system' and not loop.first"));
  EXPECT_EQ(prompt_after(qwen, messages), "[system:S][user:a][assistant:b][user:Plan.\n\nc]");
  const TestServedModel gemma(refuses("m.role == 'system'"));
  EXPECT_EQ(prompt_after(gemma, messages), "[user:S\n\na][assistant:b][user:Plan.\n\nc]");
}

TEST(ReportedKinds, MessagesThatDoNotTakeTurns) {
  const TestServedModel gemma(refuses("(m.role == 'assistant') != (loop.index0 % 2 == 1)"));
  EXPECT_EQ(
      prompt_after(gemma, R"("messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},)"
                          R"({"role":"assistant","content":"c"},{"role":"user","content":"d"}])"),
      "[user:a][assistant:b\n\nc][user:d]");
  EXPECT_EQ(
      prompt_after(gemma,
                   R"("messages":[{"role":"assistant","content":"Welcome."},{"role":"user","content":"d"}])"),
      "[user:][assistant:Welcome.][user:d]");
}

std::string history(const std::string& calls, const std::string& results) {
  return R"("messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[)" +
         calls + "]}," + results + "]," + kFunctions;
}

std::string past_call(const std::string& id, const std::string& name) {
  return R"({"id":")" + id + R"(","type":"function","function":{"name":")" + name + R"(","arguments":"{}"}})";
}

std::string past_result(const std::string& id, const std::string& text) {
  return R"({"role":"tool","tool_call_id":")" + id + R"(","content":")" + text + "\"}";
}

TEST(ReportedKinds, IdsOfOthers) {
  const TestServedModel model(refuses("m.tool_call_id and m.tool_call_id | length != 9"));
  for (const std::string id : {"toolu_01A09q90qw90lq917835lq9", "functions.today:0"}) {
    const std::string prompt =
        prompt_after(model, history(past_call(id, "today"), past_result(id, "Monday")));
    EXPECT_THAT(prompt, HasSubstr("[tool:Monday"));
    EXPECT_THAT(prompt, Not(HasSubstr(id)));
  }
}

TEST(ReportedKinds, TwoCallsWhereOneIsShown) {
  const std::string asked =
      history(past_call("aaaaaaaaa", "today") + "," + past_call("bbbbbbbbb", "book"),
              past_result("aaaaaaaaa", "Monday") + "," + past_result("bbbbbbbbb", "done"));
  std::string hiding(kShowsAll);
  const std::string loop = "m.tool_calls or []";
  hiding.replace(hiding.find(loop), loop.size(), "(m.tool_calls or [])[:1]");
  for (const std::string& text : {refuses("m.tool_calls and m.tool_calls | length > 1"), hiding}) {
    const TestServedModel model(text);
    EXPECT_THAT(prompt_after(model, asked),
                HasSubstr("[assistant:aaaaaaaaa today{}][tool:Mondayaaaaaaaaa][assistant:bbbbbbbbb "
                          "book{}][tool:donebbbbbbbbb]"));
  }
}

TEST(ReportedKinds, SchemasWhileThinkingIsOpen) {
  const std::string schema =
      R"("response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object",)"
      R"("properties":{"a":{"const":1}},"required":["a"],"additionalProperties":false}}})";
  const auto admits = [&](const TestServedModel& model, std::string_view text) {
    const auto call = model.chat("{" + kHello + "," + schema + "}");
    EXPECT_TRUE(call.ok()) << call.error().message;
    TokenConstraint& constraint = *(*call)->requests()[0].constraint;
    TokenConstraint::State state = constraint.start();
    for (const TokenId token : model.tokens(text)) {
      if (state != TokenConstraint::kDead) state = constraint.advance(state, token);
    }
    return state != TokenConstraint::kDead && constraint.is_complete(state);
  };
  const TestServedModel magistral = family("[/THINK]", "[THINK]");
  EXPECT_TRUE(admits(magistral, "I see.[/THINK]{\"a\": 1}"));
  EXPECT_FALSE(admits(magistral, "{\"a\": 1}"));
  const TestServedModel granite = family("Here is my response:", "Here is my thought process:");
  EXPECT_TRUE(admits(granite, " I see.\n\nHere is my response: {\"a\": 1}"));
  EXPECT_FALSE(admits(granite, " I see.\n\nHere is my response: Well"));
}

TEST(ReportedKinds, MalformedArguments) {
  const std::string glm =
      "<tool_call>book\n<arg_key>place: [1]\n</arg_key>\n<arg_value>x</arg_value>\n</tool_call>";
  EXPECT_EQ(answer_to(family("<arg_key>"), glm), "|" + glm + "|stop");
  const std::string minimax =
      "<minimax:tool_call>\n<invoke name=\"book\">\n<parameter name=\"\">x</parameter>\n</invoke>\n"
      "</minimax:tool_call>";
  EXPECT_EQ(answer_to(family("<minimax:tool_call>"), minimax), "|" + minimax + "|stop");
}

TEST(ReportedKinds, StreamsThatEndInABrokenCall) {
  EXPECT_EQ(
      answer_to(family("<tool_call>"), "<tool_call>\n{\"name\": \"book\", \"arguments\": {\"place\": \"Ul"),
      "||book{\"place\": \"Ul\"}|stop");
  EXPECT_EQ(answer_to(family("<|tool_call_start|>"), "<|tool_call_start|>[book(nights=2, place='Ulm"),
            "||book{\"nights\": 2, \"place\": \"Ulm\"}|stop");
}

TEST(ReportedKinds, ToolsOfOtherTypes) {
  const TestServedModel model(kShowsAll);
  const auto tools = [&](const std::string& tool) {
    return model.response(
        R"({"input":"x","tools":[{"type":"function","name":"book","parameters":{"type":"object"}},)" + tool +
        "]}");
  };
  for (
      const std::string tool :
      {R"({"type":"local_shell"})", R"({"type":"mcp","server_label":"d","server_url":"https://example.org"})",
       R"({"type":"namespace","name":"mcp__d__","tools":[{"type":"custom","name":"patch","description":"d"}]})"}) {
    const auto call = tools(tool);
    ASSERT_TRUE(call.ok()) << call.error().message;
    EXPECT_THAT(model.context().model->tokenizer->decode((*call)->requests()[0].prompt, false),
                HasSubstr("book"));
  }
}

TEST(ReportedKinds, FieldsOfPackages) {
  const TestServedModel model;
  for (const std::string field :
       {R"("safety_identifier":"a")", R"("prompt_cache_key":"k")", R"("store":false)"})
    EXPECT_TRUE(model.chat("{" + kHello + "," + field + "}").ok()) << field;
  for (const std::string field :
       {R"("metadata":{"user_id":"a"})", R"("service_tier":"auto")", R"("container":null)"})
    EXPECT_TRUE(model.message("{\"max_tokens\":2," + kHello + "," + field + "}").ok()) << field;
}

ApiResult<std::unique_ptr<GenerationCall>> with_schema(const TestServedModel& model,
                                                       const std::string& schema) {
  return model.chat("{" + kHello +
                    R"(,"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":)" +
                    schema + "}}}");
}

TEST(ReportedKinds, EncodedReferences) {
  const TestServedModel model;
  EXPECT_TRUE(with_schema(model, R"({"$ref":"#/$defs/a%20b","$defs":{"a b":{"const":1}}})").ok());
  EXPECT_TRUE(with_schema(model, R"({"$ref":"#/$defs/%C3%A4%25~1","$defs":{"ä%/":{"const":1}}})").ok());
  EXPECT_FALSE(with_schema(model, R"({"$ref":"#/$defs/a%2520b","$defs":{"a b":{"const":1}}})").ok());
}

TEST(ReportedKinds, Annotations) {
  const TestServedModel model;
  EXPECT_TRUE(
      with_schema(model, R"({"type":"integer","x-enum-varnames":["A"],"format":"int64","deprecated":true})")
          .ok());
  EXPECT_TRUE(
      with_schema(model, R"({"type":"string","format":"ipv4network","nullable":true,"example":"x"})").ok());
}

TEST(ReportedKinds, LongNamesAndManyTools) {
  const TestServedModel model(kShowsAll);
  std::string many = R"({"input":"x","tools":[)";
  for (int i = 0; i < 200; ++i)
    many += std::string(i == 0 ? "" : ",") + R"({"type":"function","name":"t)" + std::to_string(i) + "\"}";
  const auto named = [&](size_t length) {
    return model.message("{\"max_tokens\":2," + kHello + R"(,"tools":[{"name":")" + std::string(length, 'n') +
                         R"(","input_schema":{"type":"object"}}]})");
  };
  TestServedModel large(kShowsAll);
  large.model().context = 100000;
  EXPECT_TRUE(large.response(many + "]}").ok());
  EXPECT_TRUE(named(128).ok());
  EXPECT_FALSE(named(129).ok());
}

TEST(ReportedKinds, ThinkingBeforeEarlierCalls) {
  const std::string asked =
      R"("messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","KEY":"THOUGHT",)"
      R"("tool_calls":[)" +
      past_call("abcdefghi", "today") + "]}," + past_result("abcdefghi", "Monday") + "]," + kFunctions;
  const TestServedModel deepseek(kShowsAll);
  const TestServedModel ministral(
      "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content or "
      "[] %}"
      "{{ p.thinking or p.text }}{% endfor %}{% endif %}{% for c in m.tool_calls or [] %}{{ c.function.name "
      "}}"
      "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}{{ tools | tojson if tools }}");
  for (const std::string key : {"reasoning_content", "thinking", "reasoning"}) {
    std::string body = asked;
    body.replace(body.find("KEY"), 3, key);
    EXPECT_THAT(prompt_after(deepseek, body), HasSubstr("THOUGHT")) << key;
    EXPECT_THAT(prompt_after(ministral, body), HasSubstr("THOUGHT")) << key;
  }
}

}  // namespace
}  // namespace outrider
