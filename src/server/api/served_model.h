// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat_template/abilities.h"
#include "grammar/token_trie.h"
#include "outrider/engine.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

class ServedAdapters;

// The properties of the model that are needed to answer requests. Immutable and shared between threads; only
// `adapters` changes. The engine owns the objects that it points to and must outlive it.
struct ServedModel {
  std::string name;                       // "model" of the API
  std::vector<std::string> aliases = {};  // names by which requests may ask for it, too
  int64_t created = 0;                    // Unix time of loading
  EngineInfo info;
  std::shared_ptr<const Tokenizer> tokenizer;
  const ChatTemplate* chat_template = nullptr;  // null: none; set by set_template()
  TemplateAbilities template_abilities;
  TemplateValues template_values;               // of every request
  std::shared_ptr<const TokenTrie> token_trie;  // null: grammars are not supported
  std::string bos_token, eos_token;             // for the template
  TemplateTokens other_tokens;                  // the same
  std::string template_problem;                 // why the model's own cannot be read, and what to do
  std::optional<int64_t> thinking_budget;       // tokens, of requests that name none; unset: no bound
  std::string thinking_message;                 // is written where a budget ends
  std::vector<TokenId> stop_tokens;             // end-of-text tokens of the model
  int64_t context = 0;                          // tokens
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  std::optional<Pooling> pooling = Pooling::kLast;  // of embeddings; nullopt: the model ranks texts instead
  StateTraits states = {};                          // for clients that draft
  std::shared_ptr<ServedAdapters> adapters = {};    // null: of a test
  SamplingParams sampling = {.logit_bias = {}, .temperature = 1.0};  // defaults of requests

  bool has_adapter(std::string_view given) const;
  bool is_named(std::string_view given) const {
    return given == name || std::ranges::find(aliases, given) != aliases.end();
  }
  // Replaces the template, which must outlive this; null: none.
  void set_template(const ChatTemplate* given);
};

struct EngineParts;

// The properties of an open model; its name, time and defaults are left to the caller.
ServedModel served_model(const EngineParts& parts);

}  // namespace outrider
