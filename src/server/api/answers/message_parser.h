// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api/requests/chat_request.h"
#include "server/api/tool_calls/output_parser.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

// Leaves the control tokens out of a text that mean nothing to the parser. Text that spells one stays.
class ControlFilter {
 public:
  ControlFilter(std::shared_ptr<const Tokenizer> tokenizer, std::vector<TokenId> kept)
      : tokenizer_(std::move(tokenizer)),
        decoder_(tokenizer_, /*skip_special=*/false),
        kept_(std::move(kept)) {}

  // `tokens` are the next ones of the output, and `text` is its next text, which may lag behind.
  std::string push(std::string_view text, std::span<const TokenId> tokens);

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  StreamDecoder decoder_;
  std::vector<TokenId> kept_;
  size_t decoded_ = 0;                               // bytes of all tokens
  size_t given_ = 0;                                 // bytes of all texts
  std::vector<std::pair<size_t, size_t>> left_out_;  // ranges of bytes that are still to come
};

// Splits the text of a chat answer into reasoning, content and calls, as its prompt makes them possible.
class MessageParser {
 public:
  explicit MessageParser(const ChatSpec& spec);

  // `is_last`: the answer ends with this text.
  MessageDelta push(std::string_view text, std::span<const TokenId> tokens, bool is_last);
  // The answer has calls, and all of them are complete.
  bool has_calls() const { return parser_.has_calls(); }

 private:
  std::optional<ControlFilter> filter_;
  OutputParser parser_;
};

}  // namespace outrider
