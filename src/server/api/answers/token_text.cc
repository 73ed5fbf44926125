// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/token_text.h"

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

// The value that clients expect for impossible tokens.
constexpr float kImpossible = -9999.0F;

float written_logprob(float logprob) { return std::isfinite(logprob) ? logprob : kImpossible; }

// The object stays open.
void begin_token(JsonWriter& json, std::string_view text, float logprob) {
  json.begin_object().member("token", text).member("logprob", written_logprob(logprob));
  json.key("bytes").begin_array();
  for (const char byte : text) json.value(static_cast<unsigned char>(byte));
  json.end_array();
}

// Goes on with a list of items.
JsonWriter next_item(std::string& list) { return JsonWriter(list, !list.empty()); }

int64_t count_code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

}  // namespace

std::string_view shown_token(const Tokenizer& tokenizer, TokenId token) {
  return tokenizer.is_control(token) ? tokenizer.token_piece(token) : tokenizer.token_bytes(token);
}

void write_chat_logprobs(JsonWriter& json, const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                         std::span<const TokenLogprobs> logprobs) {
  for (size_t i = 0; i < logprobs.size(); ++i) {
    begin_token(json, shown_token(tokenizer, tokens[i]), logprobs[i].logprob);
    json.key("top_logprobs").begin_array();
    for (const auto& [token, logprob] : logprobs[i].top) {
      begin_token(json, shown_token(tokenizer, token), logprob);
      json.end_object();
    }
    json.end_array().end_object();
  }
}

namespace {

void write_ranked(JsonWriter& json, const Tokenizer& tokenizer, TokenId token, float logprob, int64_t rank) {
  json.key(std::to_string(token)).begin_object();
  json.member("logprob", written_logprob(logprob)).member("rank", rank);
  json.member("decoded_token", shown_token(tokenizer, token)).end_object();
}

}  // namespace

void write_prompt_logprobs(JsonWriter& json, const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                           const PromptLogprobs& list) {
  json.begin_array().null();
  for (size_t i = 0; i < list.logprobs.size(); ++i) {
    const TokenLogprobs& one = list.logprobs[i];
    const TokenId token = tokens[i + 1];
    json.begin_object();
    write_ranked(json, tokenizer, token, one.logprob, one.rank);
    const size_t max = std::min(one.top.size(), static_cast<size_t>(list.top));
    for (size_t rank = 0; rank < max; ++rank) {
      const auto& [other, logprob] = one.top[rank];
      if (other != token) write_ranked(json, tokenizer, other, logprob, static_cast<int64_t>(rank) + 1);
    }
    json.end_object();
  }
  json.end_array();
}

void CompletionLogprobs::add_token(TokenId token) {
  next_item(tokens_).value(shown_token(*tokenizer_, token));
  next_item(offsets_).value(offset_);
  offset_ += count_code_points(decoder_.push(token));
}

void CompletionLogprobs::add_prompt(std::span<const TokenId> tokens,
                                    std::span<const TokenLogprobs> logprobs) {
  add_token(tokens.front());
  logprobs_ = tops_ = "null";
  add(tokens.subspan(1, logprobs.size()), logprobs);
}

void CompletionLogprobs::add(std::span<const TokenId> tokens, std::span<const TokenLogprobs> logprobs) {
  for (size_t i = 0; i < logprobs.size(); ++i) {
    add_token(tokens[i]);
    const float own = written_logprob(logprobs[i].logprob);
    next_item(logprobs_).value(own);
    JsonWriter top = next_item(tops_);
    top.begin_object();
    bool has_token = false;
    const size_t max = std::min(logprobs[i].top.size(), static_cast<size_t>(top_));
    for (const auto& [token, logprob] : std::span(logprobs[i].top).first(max)) {
      top.member(shown_token(*tokenizer_, token), written_logprob(logprob));
      has_token = has_token || token == tokens[i];
    }
    if (!has_token) top.member(shown_token(*tokenizer_, tokens[i]), own);
    top.end_object();
  }
}

void CompletionLogprobs::write_to(JsonWriter& json) {
  const auto list = [&json](std::string_view name, const std::string& items) {
    json.key(name).begin_array();
    if (!items.empty()) json.json(items);
    json.end_array();
  };
  json.begin_object();
  list("tokens", tokens_);
  list("token_logprobs", logprobs_);
  top_ == 0 ? void(json.key("top_logprobs").null()) : list("top_logprobs", tops_);
  list("text_offset", offsets_);
  json.end_object();
  for (std::string* items : {&tokens_, &logprobs_, &tops_, &offsets_}) items->clear();
}

}  // namespace outrider
