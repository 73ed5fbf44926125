// SPDX-License-Identifier: Apache-2.0
#include "server/api/served_model.h"

#include "engine/engine_parts.h"
#include "server/api/served_adapters.h"

namespace outrider {

void ServedModel::set_template(const ChatTemplate* given) {
  chat_template = given;
  if (given != nullptr) template_problem.clear();
  template_abilities = given == nullptr ? TemplateAbilities() : find_abilities(*given, bos_token, eos_token);
}

bool ServedModel::has_adapter(std::string_view given) const { return adapters && adapters->has(given); }

ServedModel served_model(const EngineParts& parts) {
  ServedModel model;
  model.info = parts.info;
  model.tokenizer = parts.tokenizer;
  model.token_trie = TokenTrie::create(*parts.tokenizer);
  model.bos_token = parts.chat.bos_token;
  model.eos_token = parts.chat.eos_token;
  model.other_tokens = parts.chat.other_tokens;
  model.template_problem = parts.chat.template_problem;
  model.stop_tokens = parts.target->config().stop_tokens;
  model.context = parts.options.context;
  model.vocab_size = parts.vocab_size;
  model.hidden_size = parts.target->config().hidden_size;
  model.states = parts.drafter->traits().states;
  model.set_template(parts.chat.chat_template ? &*parts.chat.chat_template : nullptr);
  return model;
}

}  // namespace outrider
