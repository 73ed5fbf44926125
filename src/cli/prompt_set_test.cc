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

TEST(PromptSet, MalformedLinesAreNamed) {
  for (const char* line :
       {"{", "[]", "3", "{}", "{\"prompt\":3}", "{\"prompt\":\"\"}", "{\"turns\":[]}", "{\"turns\":[1]}",
        "{\"prompt\":null}", "text", "{\"messages\":[]}",
        "{\"messages\":[{\"role\":\"system\",\"content\":\"a\"}]}", "{\"messages\":[{\"role\":\"user\"}]}"}) {
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
