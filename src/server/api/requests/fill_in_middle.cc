// SPDX-License-Identifier: Apache-2.0
#include "server/api/requests/fill_in_middle.h"

#include <string>

namespace outrider {
namespace {

struct MarkNames {
  std::string_view prefix, suffix, middle;
};
// Qwen 2.5 Coder and CodeGemma; StarCoder and Granite; DeepSeek; CodeLlama.
constexpr MarkNames kMarkNames[] = {{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
                                    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
                                    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
                                    {"▁<PRE>", "▁<SUF>", "▁<MID>"}};

}  // namespace

std::optional<MiddleMarks> find_middle_marks(const Tokenizer& tokenizer) {
  for (const MarkNames& names : kMarkNames) {
    const auto prefix = tokenizer.find_piece(names.prefix);
    const auto suffix = tokenizer.find_piece(names.suffix);
    const auto middle = tokenizer.find_piece(names.middle);
    if (prefix && suffix && middle) return MiddleMarks{*prefix, *suffix, *middle};
  }
  return std::nullopt;
}

std::vector<TokenId> middle_prompt(const Tokenizer& tokenizer, const MiddleMarks& marks,
                                   std::string_view before, std::string_view after) {
  std::vector<TokenId> tokens = tokenizer.encode("", {.add_special = true});  // the beginning of text, if any
  const auto append = [&](TokenId mark, std::string_view text) {
    tokens.push_back(mark);
    const auto encoded = tokenizer.encode(std::string(text), {.add_special = false, .parse_special = false});
    tokens.insert(tokens.end(), encoded.begin(), encoded.end());
  };
  append(marks.prefix, before);
  append(marks.suffix, after);
  tokens.push_back(marks.middle);
  return tokens;
}

}  // namespace outrider
