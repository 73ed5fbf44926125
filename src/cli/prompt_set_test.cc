// SPDX-License-Identifier: Apache-2.0
#include "cli/prompt_set.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

TEST(PromptSet, ReadsEveryKnownRecord) {
  const auto prompts = parse_prompts(
      "{\"id\":\"a\",\"domain\":\"story\",\"kind\":\"continue\",\"prompt\":\"Once\"}\n"
      "{\"id\":\"b\",\"domain\":\"math\",\"kind\":\"qa\",\"prompt\":\"1+1?\"}\n"
      "{\"kind\":\"dialogue\",\"prompt\":[\"hi\",\"hello\",\"how?\"]}\n"
      "\n"
      "{\"question_id\":81,\"category\":\"writing\",\"turns\":[\"one\",\"two\"]}\n"
      "{\"question\":\"why?\"}\n"
      "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"},"
      "{\"role\":\"user\",\"content\":\"c\"}]}\n",
      "p.jsonl");
  ASSERT_TRUE(prompts.ok()) << prompts.error().message;
  ASSERT_EQ(prompts->size(), 6u);
  EXPECT_FALSE((*prompts)[0].is_chat);
  EXPECT_TRUE((*prompts)[1].is_chat);
  EXPECT_EQ((*prompts)[2].turns.size(), 3u);
  EXPECT_EQ((*prompts)[2].id, "line-3");
  EXPECT_EQ((*prompts)[3].id, "81");
  EXPECT_EQ((*prompts)[3].turns, std::vector<std::string>{"one"});
  EXPECT_EQ((*prompts)[3].later_turns, std::vector<std::string>{"two"});
  EXPECT_EQ((*prompts)[4].category, "all");
  EXPECT_EQ((*prompts)[5].turns, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE((*prompts)[5].is_chat);
}

TEST(PromptSet, ReadsSpeedBench) {
  const auto prompts = parse_prompts(
      R"({"question_id":"0123456789abcdef","category":"coding","messages":[{"role":"user","content":"a"}]})"
      "\n"
      R"({"question_id":"1123456789abcdef","category":"roleplay","sub_category":"x","messages":[)"
      R"({"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"user","content":"b"}]})"
      "\n",
      "qualitative.jsonl");
  ASSERT_TRUE(prompts.ok()) << prompts.error().message;
  ASSERT_EQ(prompts->size(), 2u);
  EXPECT_EQ((*prompts)[0].category, "coding");
  EXPECT_EQ((*prompts)[0].turns, std::vector<std::string>{"a"});
  EXPECT_TRUE((*prompts)[0].later_turns.empty());
  EXPECT_EQ((*prompts)[1].system, "s");
  EXPECT_EQ((*prompts)[1].turns, std::vector<std::string>{"a"});
  EXPECT_EQ((*prompts)[1].later_turns, std::vector<std::string>{"b"});
  // The published files lack some texts.
  const auto incomplete = parse_prompts(
      R"({"turns":["a","FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE USING SPECDEC_BENCH"]})", "q");
  ASSERT_FALSE(incomplete.ok());
  EXPECT_NE(incomplete.error().message.find("prepare.py"), std::string::npos) << incomplete.error().message;
}

TEST(PromptSet, MalformedLinesAreNamed) {
  for (const char* line :
       {"{", "[]", "3", "{}", "{\"prompt\":3}", "{\"prompt\":\"\"}", "{\"turns\":[]}", "{\"turns\":[1]}",
        "{\"prompt\":null}", "text", "{\"messages\":[]}",
        "{\"messages\":[{\"role\":\"system\",\"content\":\"a\"}]}", "{\"messages\":[{\"role\":\"user\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"}]"
        "}"}) {
    const auto prompts = parse_prompts(std::string("{\"prompt\":\"ok\"}\n") + line, "p.jsonl");
    ASSERT_FALSE(prompts.ok()) << line;
    EXPECT_TRUE(prompts.error().message.starts_with("p.jsonl:2: expected")) << prompts.error().message;
  }
  EXPECT_FALSE(parse_prompts("\n\n", "p.jsonl").ok());
}

TEST(PromptSet, BuiltInPromptsAreThinnedEvenly) {
  Settings settings;
  EXPECT_EQ(load_prompts(settings)->size(), 8u);
  settings.prompts.limit = 2;
  const auto prompts = load_prompts(settings);
  ASSERT_EQ(prompts->size(), 2u);
  EXPECT_EQ((*prompts)[1].id, "built-in-5");
}

}  // namespace
}  // namespace outrider
