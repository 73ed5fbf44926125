// SPDX-License-Identifier: Apache-2.0
// A model for the fuzzers of the API: all bytes, the control tokens of ChatML, and two words.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/api/served_model.h"

namespace outrider {

inline constexpr std::string_view kFuzzTemplate =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] "
    "%}<tool_call>"
    "{{ c.function.arguments | tojson }}</tool_call>{% endfor %}<|im_end|>{% endfor %}{{ tools | tojson }}{# "
    "</think> #}";

inline std::shared_ptr<const Tokenizer> fuzz_tokenizer() {
  TokenizerSpec spec;
  spec.kind = TokenizerKind::kSentencePiece;
  spec.pieces = {"<unk>", "<|im_start|>", "<|im_end|>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"};
  spec.attributes.assign(spec.pieces.size(), TokenAttribute::kControl);
  spec.attributes[0] = TokenAttribute::kUnknown;
  for (const char* piece : {"y", "e", "s", "n", "o", "ye", "yes", "no"}) {
    spec.pieces.emplace_back(piece);
    spec.attributes.push_back(TokenAttribute::kNormal);
  }
  constexpr char kHex[] = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    spec.pieces.push_back(std::string("<0x") + kHex[byte >> 4] + kHex[byte & 15] + ">");
    spec.attributes.push_back(TokenAttribute::kByte);
  }
  spec.scores.assign(spec.pieces.size(), 0);
  spec.unknown = 0;
  return Tokenizer::create(std::move(spec)).value();
}

inline const ServedModel& fuzz_model() {
  static const ChatTemplate chat_template = ChatTemplate::parse(kFuzzTemplate).value();
  static const ServedModel model = [] {
    ServedModel made;
    made.name = "m";
    made.tokenizer = fuzz_tokenizer();
    made.token_trie = TokenTrie::create(*made.tokenizer);
    made.set_template(&chat_template);
    made.stop_tokens = {2};
    made.context = 4096;
    made.vocab_size = made.tokenizer->vocab_size();
    made.hidden_size = 4;
    return made;
  }();
  return model;
}

// fuzz_model(), served to rank texts.
inline const ServedModel& fuzz_reranker() {
  static const ServedModel model = [] {
    ServedModel made = fuzz_model();
    made.pooling = std::nullopt;
    return made;
  }();
  return model;
}

}  // namespace outrider
