// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/api/tool_calls/read_state.h"

namespace outrider {

// The text of a JSON object, checked character by character. text() never has to be taken back: with ending()
// after it, it is a JSON object at any moment.
class JsonObjectText {
 public:
  ReadState push(char next);
  // The checked text. The beginning of a number, a word or an escape waits until it is complete, and so does
  // a comma. Line breaks within strings become escapes.
  const std::string& text() const { return text_; }
  // The text that makes text() a JSON object; empty if it is one.
  std::string ending() const;
  // Characters that were taken and are not in text(). The character that broke the text was not taken.
  const std::string& held() const { return held_; }

 private:
  enum class Phase : uint8_t { kOpen, kFirstKey, kKey, kColon, kValue, kFirstItem, kString, kWord, kNext };

  ReadState push_string(char next);
  ReadState push_escape(char next);
  ReadState push_structure(char next);
  ReadState begin_key(char next);
  ReadState begin_value(char next);
  ReadState push_next(char next);
  ReadState close(char next);
  ReadState end_word();
  ReadState keep();
  bool in_object() const { return nesting_.back() == '{'; }

  std::string text_;
  std::string held_;
  std::string nesting_;  // the open brackets
  Phase phase_ = Phase::kOpen;
  bool is_key_ = false;        // the string is a key
  bool awaits_value_ = false;  // a key is in text_ whose value has not begun there
  size_t word_ = 0;            // kWord: where it begins in held_
  size_t escape_ = 0;          // kString: characters of an escape so far
  bool is_pair_open_ = false;  // kString: the first half of a surrogate pair is held
};

}  // namespace outrider
