// SPDX-License-Identifier: Apache-2.0
#include "chat_template/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "chat_template/jinja/interpreter.h"
#include "chat_template/jinja/parser.h"
#include "chat_template/plain_chat.h"

namespace outrider {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Result<std::string> render(std::string_view source, const ChatContext& context = {}) {
  OUTRIDER_TRY(const ChatTemplate chat_template, ChatTemplate::parse(source));
  return chat_template.render(context);
}

std::string render_error(std::string_view source, const ChatContext& context = {}) {
  const Result<std::string> rendered = render(source, context);
  return rendered.ok() ? "rendered: " + *rendered : rendered.error().message;
}

ChatContext conversation() {
  ChatContext context;
  context.messages = {{"system", "Be brief."}, {"user", "Hi"}};
  context.bos_token = "<s>";
  context.eos_token = "</s>";
  return context;
}

TEST(PlainChat, SaysWhyATemplateCannotBeReadAndWhatToDo) {
  ChatFormat format;
  read_model_template("{{ if .System }}{{ .System }}{{ end }}", "folder/chat_template.jinja", format);
  const auto rendered = render_plain_chat(format, {}, true);
  ASSERT_FALSE(rendered.ok());
  EXPECT_TRUE(rendered.error().message.starts_with("folder/chat_template.jinja: chat template"));
  EXPECT_NE(rendered.error().message.find("--chat-template FILE"), std::string::npos);
}

TEST(PlainChat, SaysSoOfTemplatesThatAreCutOrOfAnotherLanguage) {
  for (const char* source : {"{% for m in messages %}{{ m.content", "{% if messages %}x{% endfor %}",
                             "{{#each messages}}{{this.content}}{{/each}}", "<% messages.forEach(m => {"}) {
    ChatFormat format;
    read_model_template(source, "model.gguf", format);
    const auto rendered = render_plain_chat(format, {}, true);
    const bool is_text = std::string_view(source).starts_with('<');  // no mark of Jinja is in it
    EXPECT_EQ(rendered.ok(), is_text) << source;
    if (!rendered.ok()) {
      EXPECT_TRUE(rendered.error().message.starts_with("model.gguf: chat template"))
          << rendered.error().message;
    }
  }
}

TEST(PlainChat, GivesTheTemplateAllSpecialTokens) {
  ChatFormat format;
  read_model_template("{{ bos_token }}|{{ pad_token }}|{{ unk_token is defined }}", "file", format);
  format.bos_token = "<s>";
  format.other_tokens = {{"pad_token", "<pad>"}};
  EXPECT_EQ(render_plain_chat(format, {}, true).value(), "<s>|<pad>|False");
}

// The private text may also be a part of what the template writes after it.
TEST(PrivateChat, NothingOfThePrivateTextIsSafe) {
  const std::string source =
      "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</{{ m.role }}>{% endfor %}<assistant>";
  ChatFormat format;
  read_model_template(source, "file", format);
  ASSERT_TRUE(format.chat_template);
  const std::vector<std::pair<std::string, std::string>> messages = {{"system", "brief"}, {"user", "Read: "}};
  for (const std::string hidden : {"a", "b", "assistant", "</user>", "  apart", "\n", "user"}) {
    const auto chat = render_private_chat(format, messages, hidden);
    ASSERT_TRUE(chat.ok()) << chat.error().message;
    const std::string safe = chat->text.substr(0, chat->safe);
    EXPECT_TRUE(std::string("<system>brief</system><user>Read: ").starts_with(safe))
        << hidden << ": " << safe;
    EXPECT_TRUE(safe.starts_with("<system>brief</system><user>Read:")) << hidden << ": " << safe;
  }
  const auto open = render_private_chat(format, messages, "");
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(open->text, "<system>brief</system><user>Read:</user><assistant>");
  EXPECT_EQ(open->safe, open->text.size());
}

// DeepSeek's templates join the text of the arguments with other text; most print an object.
TEST(ChatTemplate, GivesArgumentsAsTheTemplateWantsThem) {
  ChatContext context = conversation();
  ChatMessage call{.role = "assistant", .content = std::nullopt};
  call.tool_calls = {{.id = "1", .name = "add", .arguments = R"({"a": [1, "x"]})"}};
  context.messages.push_back(call);
  const std::string head =
      "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ '<' + c.function.name + ";
  const auto as_text = render(head + "'>' + c.function.arguments + '!' }}{% endfor %}{% endfor %}", context);
  ASSERT_TRUE(as_text.ok()) << as_text.error().message;
  EXPECT_EQ(*as_text, R"(<add>{"a": [1, "x"]}!)");
  const auto as_object =
      render(head + "'>' }}{{ c.function.arguments.a[1] }}{% endfor %}{% endfor %}", context);
  ASSERT_TRUE(as_object.ok()) << as_object.error().message;
  EXPECT_EQ(*as_object, "<add>x");
  // A template that fails with an object and with text reports the first error.
  EXPECT_THAT(render_error(head + "nothing.at.all }}{% endfor %}{% endfor %}", context),
              HasSubstr("nothing"));
}

TEST(ChatTemplate, PassesTheConversation) {
  const auto rendered = render(
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m['content'] }}{{ eos_token }}{% endfor %}"
      "{% if add_generation_prompt %}>{% endif %}{{ tools is none }}",
      conversation());
  ASSERT_TRUE(rendered.ok()) << rendered.error().message;
  EXPECT_EQ(*rendered, "<s>[system] Be brief.</s>[user] Hi</s>>True");
}

TEST(ChatTemplate, PassesToolsAndFlags) {
  ChatContext context = conversation();
  context.tools_json = R"([{"name": "now", "n": 1.5, "deep": [null, true]}])";
  context.values = {{"enable_thinking", "false"}, {"effort", "\"low\""}};
  context.add_generation_prompt = false;
  const auto rendered =
      render("{{ tools[0] | tojson }}{{ enable_thinking is false }}{{ effort }}{{ add_generation_prompt }}",
             context);
  ASSERT_TRUE(rendered.ok()) << rendered.error().message;
  EXPECT_EQ(*rendered, R"({"name": "now", "n": 1.5, "deep": [null, true]}TruelowFalse)");
}

TEST(ChatTemplate, LeavesEmptyTokensUndefined) {
  const auto rendered = render("{{ bos_token is defined }}[{{ bos_token }}]");
  ASSERT_TRUE(rendered.ok()) << rendered.error().message;
  EXPECT_EQ(*rendered, "False[]");
}

TEST(ChatTemplate, RefusesToolsThatAreNoJsonArray) {
  ChatContext context;
  context.tools_json = "{}";
  EXPECT_THAT(render_error("x", context), HasSubstr("JSON array"));
  context.tools_json = "[1,";
  EXPECT_THAT(render_error("x", context), HasSubstr("valid JSON"));
  context.tools_json = std::string(500, '[') + std::string(500, ']');
  EXPECT_THAT(render_error("x", context), Not(HasSubstr("rendered")));
}

TEST(ChatTemplate, UsesTheClock) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  const auto rendered = render("{{ strftime_now('%Y') }}");
  ASSERT_TRUE(rendered.ok()) << rendered.error().message;
  EXPECT_EQ(*rendered, std::to_string(1900 + local.tm_year));
}

TEST(ChatTemplate, NamesTheLineAndWhatIsWrong) {
  EXPECT_EQ(render_error("a\nb\n{{ raise_exception('roles\nmust alternate') }}"),
            "chat template line 3: the template refuses its input: roles must alternate");
  EXPECT_THAT(render_error("{{ 1 }}\n\n{{ x.y }}"),
              AllOf(HasSubstr("line 3:"), HasSubstr("'x' is undefined")));
  EXPECT_THAT(render_error("a\n{{ 1 | groupby('x') }}"), AllOf(HasSubstr("line 2:"), HasSubstr("'groupby'")));
  EXPECT_THAT(render_error("\n{% include 'x' %}"), AllOf(HasSubstr("line 2:"), HasSubstr("'include'")));
  EXPECT_THAT(render_error("{% if a %}\n{% for x in y %}\n{% endif %}"), HasSubstr("line 3:"));
  EXPECT_THAT(render_error("{% for x in y recursive %}{% endfor %}"), HasSubstr("recursive"));
  EXPECT_THAT(render_error("{{ ''.join(*a) }}"), HasSubstr("unpacking"));
}

TEST(ChatTemplate, BoundsSteps) {
  const auto body = jinja::parse_template(
      "{% set r = range(300) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}");
  ASSERT_TRUE(body.ok()) << body.error().message;
  jinja::Limits limits;
  const std::tm now{};
  EXPECT_TRUE(jinja::render(*body, {}, limits, now).ok());
  limits.steps = 100'000;
  const auto rendered = jinja::render(*body, {}, limits, now);
  ASSERT_FALSE(rendered.ok());
  EXPECT_EQ(rendered.error().kind, ErrorKind::kResource);
  EXPECT_THAT(rendered.error().message, HasSubstr("100000 steps"));
}

TEST(ChatTemplate, BoundsValues) {
  EXPECT_THAT(render_error("{{ ('x' * 1000000000)|length }}"), HasSubstr("memory"));
  EXPECT_THAT(render_error("{% set ns = namespace(x='xxxxxxxxxxxxxxxx') %}"
                           "{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}"),
              HasSubstr("memory"));
  EXPECT_THAT(render_error("{% set ns = namespace(x=[]) %}"
                           "{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor %}"),
              HasSubstr("nested deeper"));
  // A value that shares its parts is small in memory and huge as text.
  EXPECT_THAT(
      render_error("{% set ns = namespace(x=[1]) %}"
                   "{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}"),
      Not(HasSubstr("rendered")));
  EXPECT_THAT(render_error("{{ [1, 2]|tojson(indent='x' * 10000000) }}"), HasSubstr("memory"));
}

TEST(ChatTemplate, BoundsOutput) {
  EXPECT_THAT(render_error("{% set x = 'x' * 1000000 %}{% for i in range(100) %}{{ x }}{% endfor %}"),
              HasSubstr("prints more"));
}

TEST(ChatTemplate, BoundsNesting) {
  const auto nested = [](const std::string& open, const std::string& middle, const std::string& close) {
    std::string source;
    for (int i = 0; i < 5000; ++i) source += open;
    source += middle;
    for (int i = 0; i < 5000; ++i) source += close;
    return source;
  };
  EXPECT_THAT(render_error("{{ " + nested("(", "1", ")") + " }}"), HasSubstr("nested"));
  EXPECT_THAT(render_error("{{ " + nested("[", "", "]") + " }}"), HasSubstr("nested"));
  EXPECT_THAT(render_error("{{ " + nested("not ", "1", "") + " }}"), HasSubstr("nested"));
  EXPECT_THAT(render_error("{{ " + nested("-", "1", "") + " }}"), HasSubstr("nested"));
  EXPECT_THAT(render_error("{{ " + nested("1 if 1 else ", "1", "") + " }}"), HasSubstr("nested"));
  EXPECT_THAT(render_error(nested("{% if 1 %}", "", "{% endif %}")), HasSubstr("nested"));
  EXPECT_THAT(render_error("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), HasSubstr("levels"));
}

TEST(ChatTemplate, RendersLongChainsOfOperators) {
  std::string sum = "{{ 0";
  for (int i = 0; i < 5000; ++i) sum += " + 1";
  const auto rendered = render(sum + " }}");
  ASSERT_TRUE(rendered.ok()) << rendered.error().message;
  EXPECT_EQ(*rendered, "5000");
}

TEST(ChatTemplate, RefusesUnprintableAndOverflowingValues) {
  EXPECT_THAT(render_error("{{ range }}"), HasSubstr("cannot be printed"));
  EXPECT_THAT(render_error("{{ 9223372036854775807 + 1 }}"), HasSubstr("64 bits"));
  EXPECT_THAT(render_error("{{ (-9223372036854775807 - 1) // -1 }}"), HasSubstr("64 bits"));
  EXPECT_THAT(render_error("{{ 3 ** 100 }}"), HasSubstr("64 bits"));
  EXPECT_THAT(render_error("{{ 99999999999999999999 }}"), HasSubstr("out of range"));
}

TEST(ChatTemplate, KeepsBytesThatAreNotUtf8) {
  ChatContext context;
  context.messages = {{"user", "a\xFF\xC3z"}};
  const auto rendered = render("{{ messages[0].content | trim }}{{ messages[0].content[::-1] }}", context);
  ASSERT_TRUE(rendered.ok()) << rendered.error().message;
  EXPECT_EQ(*rendered,
            "a\xFF\xC3zz\xC3\xFF"
            "a");
}

}  // namespace
}  // namespace outrider
