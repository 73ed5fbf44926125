// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chat_template/chat_template.h"
#include "grammar/token_trie.h"
#include "outrider/engine.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// What answering requests needs to know of the model. Immutable, shared between threads, outlives none of
// what it points to: the engine stays open longer.
struct ServedModel {
  std::string name;     // "model" of the API
  int64_t created = 0;  // Unix time of loading
  EngineInfo info;
  std::shared_ptr<const Tokenizer> tokenizer;
  const ChatTemplate* chat_template = nullptr;  // null: none
  std::shared_ptr<const TokenTrie> token_trie;  // null: output cannot be held to grammars
  std::string bos_token, eos_token;             // for the template
  std::vector<TokenId> stop_tokens;             // of the model
  int64_t context = 0;                          // tokens
  int64_t vocab_size = 0;
  SamplingParams sampling = {.logit_bias = {}, .temperature = 1.0};  // where a request says nothing
};

}  // namespace outrider
