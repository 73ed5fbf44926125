// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/token_text.h"

#include <algorithm>
#include <cmath>

#include "server/api/json_text.h"

namespace outrider {
namespace {

// The value that clients expect for impossible tokens.
constexpr float kImpossible = -9999.0F;

void append_logprob(std::string& out, float logprob) {
  append_json_number(out, std::isfinite(logprob) ? logprob : kImpossible);
}

// "token":...,"logprob":...,"bytes":[...]
void append_token(std::string& out, std::string_view text, float logprob) {
  out += R"({"token":)";
  append_json_string(out, text);
  out += R"(,"logprob":)";
  append_logprob(out, logprob);
  out += R"(,"bytes":[)";
  for (size_t i = 0; i < text.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(static_cast<unsigned char>(text[i]));
  }
  out += ']';
}

void begin_item(std::string& list) {
  if (!list.empty()) list += ',';
}

int64_t count_code_points(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

}  // namespace

std::string_view shown_token(const Tokenizer& tokenizer, TokenId token) {
  return tokenizer.is_control(token) ? tokenizer.token_piece(token) : tokenizer.token_bytes(token);
}

void append_chat_logprobs(std::string& out, const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                          std::span<const TokenLogprobs> logprobs) {
  for (size_t i = 0; i < logprobs.size(); ++i) {
    if (i > 0) out += ',';
    append_token(out, shown_token(tokenizer, tokens[i]), logprobs[i].logprob);
    out += R"(,"top_logprobs":[)";
    for (const auto& [token, logprob] : logprobs[i].top) {
      if (out.back() != '[') out += ',';
      append_token(out, shown_token(tokenizer, token), logprob);
      out += '}';
    }
    out += "]}";
  }
}

namespace {

void append_ranked(std::string& out, const Tokenizer& tokenizer, TokenId token, float logprob, int64_t rank) {
  if (out.back() != '{') out += ',';
  out.append("\"").append(std::to_string(token)).append("\":{\"logprob\":");
  append_logprob(out, logprob);
  out.append(",\"rank\":").append(std::to_string(rank)).append(",\"decoded_token\":");
  append_json_string(out, shown_token(tokenizer, token));
  out += '}';
}

}  // namespace

void append_prompt_logprobs(std::string& out, const Tokenizer& tokenizer, std::span<const TokenId> tokens,
                            const PromptLogprobs& list) {
  out += "[null";
  for (size_t i = 0; i < list.logprobs.size(); ++i) {
    const TokenLogprobs& one = list.logprobs[i];
    const TokenId token = tokens[i + 1];
    out += ",{";
    append_ranked(out, tokenizer, token, one.logprob, one.rank);
    const size_t max = std::min(one.top.size(), static_cast<size_t>(list.top));
    for (size_t rank = 0; rank < max; ++rank) {
      const auto& [other, logprob] = one.top[rank];
      if (other != token) append_ranked(out, tokenizer, other, logprob, static_cast<int64_t>(rank) + 1);
    }
    out += '}';
  }
  out += ']';
}

void CompletionLogprobs::add_token(TokenId token) {
  begin_item(tokens_);
  append_json_string(tokens_, shown_token(*tokenizer_, token));
  begin_item(offsets_);
  offsets_ += std::to_string(offset_);
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
    begin_item(logprobs_);
    append_logprob(logprobs_, logprobs[i].logprob);
    begin_item(tops_);
    tops_ += '{';
    bool has_token = false;
    const size_t max = std::min(logprobs[i].top.size(), static_cast<size_t>(top_));
    for (const auto& [token, logprob] : std::span(logprobs[i].top).first(max)) {
      if (tops_.back() != '{') tops_ += ',';
      append_json_string(tops_, shown_token(*tokenizer_, token));
      tops_ += ':';
      append_logprob(tops_, logprob);
      has_token = has_token || token == tokens[i];
    }
    if (!has_token) {
      if (tops_.back() != '{') tops_ += ',';
      append_json_string(tops_, shown_token(*tokenizer_, tokens[i]));
      tops_ += ':';
      append_logprob(tops_, logprobs[i].logprob);
    }
    tops_ += '}';
  }
}

void CompletionLogprobs::append_to(std::string& out) {
  out.append(R"({"tokens":[)").append(tokens_).append(R"(],"token_logprobs":[)").append(logprobs_);
  out += R"(],"top_logprobs":)";
  top_ == 0 ? out += "null" : out.append("[").append(tops_).append("]");
  out.append(R"(,"text_offset":[)").append(offsets_).append("]}");
  for (std::string* list : {&tokens_, &logprobs_, &tops_, &offsets_}) list->clear();
}

}  // namespace outrider
