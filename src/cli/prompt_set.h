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
  bool is_chat = false;                       // apply the model's chat template, if there is one
  std::string system = {};                    // what a conversation begins with; empty: nothing
  std::vector<std::string> later_turns = {};  // of the user, each after the model's answer to the one before
};

// The prompts of --prompts or the built-in ones, reduced evenly to --limit. A line of the file is a JSON
// object with "prompt" (text, or a list of turns), "messages", "turns" (the user's, as in Spec-Bench) or
// "question". Messages are of user and assistant in turn, or of the user as in SPEED-Bench, and the first may
// be the system's. A name is in "id" or "question_id" and "domain" or "category". The kind "continue" marks
// text to continue. Errors name file and line.
Result<std::vector<PromptRecord>> load_prompts(const Settings& settings);

// For tests; `name` is the file name in messages.
Result<std::vector<PromptRecord>> parse_prompts(std::string_view text, std::string_view name);

// Prompts that an engine can run, and their token ids.
struct PreparedPrompts {
  std::vector<PromptRecord> records;
  std::vector<std::vector<TokenId>> tokens;  // per record
  int64_t skipped = 0;                       // number of prompts that were too long
};

// Tokenizes all prompts before any is measured. Every turn of a conversation becomes a prompt, with the turns
// before it and the model's answers to them. The answers are generated here, without speculation, by the
// request of the settings. Later turns are left out where the model has no chat template. Errors: the chat
// template refuses a prompt; one does not fit into the engine's context. With --skip-long it is left out,
// with a line on standard error.
Result<PreparedPrompts> prepare_prompts(std::vector<PromptRecord> prompts, Engine& engine,
                                        const Settings& settings);

// `limit` prompts (0: 4) of random ids below `vocab_size`, for models with random weights.
std::vector<std::vector<TokenId>> random_prompts(int64_t limit, int64_t vocab_size);

}  // namespace outrider
