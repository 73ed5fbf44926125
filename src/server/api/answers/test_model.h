// SPDX-License-Identifier: Apache-2.0
// A model for tests: the tokenizer of the built-in models with any chat template.
#pragma once

#include <gtest/gtest.h>
#include <simdjson.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "grammar/token_trie.h"
#include "server/api/answers/parse_call.h"
#include "server/api/response_store.h"
#include "server/api/served_model.h"

namespace outrider {

inline constexpr std::string_view kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif "
    "%}";

class TestServedModel {
 public:
  explicit TestServedModel(std::string_view chat_template = kChatMl) {
    auto spec = read_tokenizer_json(std::string(OUTRIDER_SOURCE_DIR) + "/models/outrider-small");
    EXPECT_TRUE(spec.ok());
    auto parsed = ChatTemplate::parse(chat_template);
    EXPECT_TRUE(parsed.ok());
    template_.emplace(std::move(parsed).value());
    model_.name = "small";
    model_.created = 1700000000;
    model_.tokenizer = Tokenizer::create(std::move(spec).value()).value();
    model_.token_trie = TokenTrie::create(*model_.tokenizer);
    model_.chat_template = &*template_;
    model_.eos_token = "<|endoftext|>";
    model_.template_abilities = find_abilities(*template_, model_.bos_token, model_.eos_token);
    model_.stop_tokens = {0, 2};
    model_.context = 1024;
    model_.vocab_size = model_.tokenizer->vocab_size();
  }

  ServedModel& model() { return model_; }
  const ServedModel& model() const { return model_; }
  CallContext context() const {
    CallContext context;
    context.model = &model_;
    context.responses = &responses_;
    context.id = id_;
    context.created = 1700000001;
    context.random_seed = 77;
    context.cache_scope = 5;
    return context;
  }
  ApiResult<std::unique_ptr<GenerationCall>> chat(std::string_view body) const {
    return parse_call(parse_chat, body, context());
  }
  ApiResult<std::unique_ptr<GenerationCall>> completion(std::string_view body) const {
    return parse_call(parse_completion, body, context());
  }
  ApiResult<std::unique_ptr<GenerationCall>> response(std::string_view body) const {
    return parse_call(parse_responses, body, context());
  }
  ApiResult<std::unique_ptr<GenerationCall>> message(std::string_view body) const {
    return parse_call(parse_messages, body, context());
  }
  ApiResult<std::unique_ptr<GenerationCall>> infill(std::string_view body) const {
    return parse_call(parse_infill, body, context());
  }
  void set_id(std::string id) { id_ = std::move(id); }
  std::vector<TokenId> tokens(std::string_view text) const {
    return model_.tokenizer->encode(text, {.add_special = false});
  }

 private:
  std::string id_ = "abc";
  mutable ResponseStore responses_{1 << 20};
  ServedModel model_;
  std::optional<ChatTemplate> template_;
};

// The delta of a step that generated the tokens of a text.
inline ChoiceDelta delta_of(const TestServedModel& model, std::string_view text,
                            TokenOrigin origin = TokenOrigin::kPlain) {
  ChoiceDelta delta;
  delta.text = text;
  delta.tokens = model.tokens(text);
  delta.origins.assign(delta.tokens.size(), origin);
  return delta;
}

// The last delta of a choice: no text, one token that ends the output.
inline ChoiceDelta last_delta(std::string_view text, std::vector<TokenId> tokens,
                              FinishReason reason = FinishReason::kStop) {
  ChoiceDelta delta;
  delta.tokens = {2};
  delta.origins = {TokenOrigin::kPlain};
  Completion completion;
  completion.text = text;
  completion.tokens = std::move(tokens);
  completion.tokens.push_back(2);
  completion.finish_reason = reason;
  delta.completion = std::move(completion);
  return delta;
}

}  // namespace outrider
