// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "server/api/tool_calls/call_reader.h"

namespace outrider {

// Reads a call of the shape kLiteral: Python's NAME(key=value, ...), or a notation with other marks. Values
// are texts, numbers, constants, lists and dictionaries.
class LiteralCallReader final : public CallReader {
 public:
  explicit LiteralCallReader(const LiteralMarks& marks) : marks_(marks) {}

  ReadState push(char next) override;
  const std::optional<std::string>& name() const override { return name_; }
  std::string_view arguments() const override { return arguments_; }
  std::string ending() const override;
  std::string held() const override { return taken_; }

 private:
  enum class Phase : uint8_t { kName, kKey, kKeyEnd, kValue, kQuote, kText, kEscape, kWord, kNext };
  // An open bracket: of the call, a list or a dictionary.
  struct Level {
    bool is_list = false;
    char assign = ':';
    char closer = '}';
    bool has_value = false;
    std::set<std::string> keys = {};
  };

  bool is_python() const { return marks_.quote.empty(); }
  ReadState step(char next);
  ReadState step_again(char next);
  ReadState push_name(char next);
  ReadState push_key(char next);
  ReadState end_key();
  ReadState push_value(char next);
  ReadState push_quote(char next);
  ReadState push_text(char next);
  ReadState push_escape(char next);
  ReadState push_word(char next);
  ReadState end_word();
  ReadState push_next(char next);
  ReadState open(char next);
  ReadState close();
  void begin_json();
  void begin_text(std::string quote);
  void end_text();
  void take_text(char byte);
  void take_code_point(uint32_t code);
  void drop_half();
  bool may_close_at(char next) const { return may_close_ && held_.empty() && next == levels_.back().closer; }

  const LiteralMarks& marks_;
  Phase phase_ = Phase::kName;
  std::string taken_;  // text that is not in arguments_ yet
  std::string held_;   // text of the phase
  std::optional<std::string> name_;
  std::string arguments_;
  std::vector<Level> levels_;
  bool may_close_ = true;  // the bracket may close where a key or a value is expected
  bool is_key_ = false;    // the text is a key
  std::string key_;
  std::string quote_;  // what ends the text
  char escape_ = 0;    // kEscape: the letter before digits
  uint32_t high_ = 0;  // kText: the first half of a surrogate pair
};

}  // namespace outrider
