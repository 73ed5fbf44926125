// SPDX-License-Identifier: Apache-2.0
// Renderings equal Jinja2's, which tools/make_chat_goldens.py recorded.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "chat_template/jinja/interpreter.h"
#include "chat_template/jinja/json.h"
#include "chat_template/jinja/parser.h"

namespace outrider::jinja {
namespace {

// 2024-07-26 13:05:09, a Friday.
std::tm golden_time() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mon = 6;
  time.tm_mday = 26;
  time.tm_hour = 13;
  time.tm_min = 5;
  time.tm_sec = 9;
  time.tm_wday = 5;
  time.tm_yday = 207;
  return time;
}

Result<std::string> render_source(const std::string& source, const Value& context) {
  OUTRIDER_TRY(const Body body, parse_template(source));
  return render(body, context.dict(), Limits{}, golden_time());
}

Value load(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests/data/chat" / name;
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  Result<Value> value = parse_json(text.str());
  EXPECT_TRUE(value.ok()) << path << ": " << value.error().message;
  return value.ok() ? value.value() : Value();
}

void expect_golden(const std::string& source, const Value& context, const Dict& expected) {
  const Result<std::string> rendered = render_source(source, context);
  if (const Value* output = expected.find_key("output")) {
    ASSERT_TRUE(rendered.ok()) << source << "\n" << rendered.error().message;
    EXPECT_EQ(*rendered, output->string()) << source;
    return;
  }
  ASSERT_FALSE(rendered.ok()) << source << "\nJinja2 refuses it: " << expected.find_key("error")->string()
                              << "\nrendered: " << *rendered;
  const std::string& message = rendered.error().message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_TRUE(message.starts_with("chat template line ")) << message;
}

class ChatFamily : public testing::TestWithParam<const char*> {};

TEST_P(ChatFamily, RendersAsJinja2) {
  const Value golden = load(std::string(GetParam()) + ".json");
  const std::string& source = golden.dict().find_key("template")->string();
  const auto& cases = golden.dict().find_key("cases")->list().items;
  ASSERT_GE(cases.size(), 20u);
  for (const Value& entry : cases) {
    SCOPED_TRACE(entry.dict().find_key("name")->string());
    expect_golden(source, *entry.dict().find_key("context"), entry.dict());
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ChatFamily,
                         testing::Values("chatml", "zephyr", "llama2", "llama3", "llama31_tools", "mistral",
                                         "qwen25_tools", "qwen3_thinking", "deepseek", "schema_macros",
                                         "gemma", "phi", "smollm3", "granite", "glm4", "ministral"),
                         [](const auto& info) { return std::string(info.param); });

TEST(JinjaSnippets, RenderAsJinja2) {
  const Value golden = load("snippets.json");
  const Value& context = *golden.dict().find_key("context");
  const auto& cases = golden.dict().find_key("cases")->list().items;
  ASSERT_GE(cases.size(), 600u);
  for (const Value& entry : cases)
    expect_golden(entry.dict().find_key("template")->string(), context, entry.dict());
}

}  // namespace
}  // namespace outrider::jinja
