// SPDX-License-Identifier: Apache-2.0
#include "open/thinking_tokens.h"

#include <optional>
#include <string_view>
#include <utility>

namespace outrider {
namespace {

// Marks that are one token each.
constexpr std::pair<std::string_view, std::string_view> kThinkingMarks[] = {
    {"<think>", "</think>"},            // DeepSeek R1, Qwen 3, GLM, SmolLM3, OLMo 3, Kimi K2, MiniMax
    {"[THINK]", "[/THINK]"},            // Magistral, Ministral 3
    {"<seed:think>", "</seed:think>"},  // Seed-OSS
};

}  // namespace

void take_thinking_tokens(const Tokenizer& tokenizer, RelaxedOptions& options) {
  for (const auto& [begin_mark, end_mark] : kThinkingMarks) {
    const std::optional<TokenId> begin = tokenizer.find_piece(begin_mark),
                                 end = tokenizer.find_piece(end_mark);
    if (!begin || !end) continue;
    if (options.begin_thinking_token < 0) options.begin_thinking_token = *begin;
    if (options.end_thinking_token < 0) options.end_thinking_token = *end;
    return;
  }
}

}  // namespace outrider
