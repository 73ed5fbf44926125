// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "outrider/engine.h"
#include "outrider/result.h"

namespace outrider {

// One prompt of a benchmark file. `turns` alternate between user and assistant and end with the user.
struct PromptRecord {
  std::string id;
  std::string category;
  std::vector<std::string> turns;
  bool is_chat = false;  // goes through the model's chat template, where there is one
};

// The prompts of --prompts, else the built-in ones, thinned out evenly to --limit. A line of the file is a
// JSON object with "prompt" (text, or a list of turns), "turns" (Spec-Bench: the first is used) or
// "question"; "id" or "question_id" and "domain" or "category" name it; "kind": "continue" marks text to go
// on with. Errors carry file and line.
Result<std::vector<PromptRecord>> load_prompts(const Settings& settings);

// For tests: `name` stands for the text in messages.
Result<std::vector<PromptRecord>> parse_prompts(std::string_view text, std::string_view name);

// Prompts that an engine can run, and their token ids.
struct PreparedPrompts {
  std::vector<PromptRecord> records;
  std::vector<std::vector<TokenId>> tokens;  // by record
  int64_t skipped = 0;                       // were too long
};

// All of them are looked at before any runs. Errors: the chat template refuses a prompt; one does not fit
// into the engine's context, unless such are skipped, which is said on standard error.
Result<PreparedPrompts> prepare_prompts(std::vector<PromptRecord> prompts, const Engine& engine,
                                        bool skips_long);

// Prompts of random ids below `vocab_size`, for models without a language; `limit` 0: 4 of them.
std::vector<std::vector<TokenId>> random_prompts(int64_t limit, int64_t vocab_size);

}  // namespace outrider
