// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "server/api/tool_calls/call_reader.h"

namespace outrider {

// Reads a call of the shape kTagged. A value becomes JSON if the tool's schema gives its key another type
// than string and the text parses as that type. It becomes a JSON string otherwise. A value ends with its
// mark only where the next argument or the end of the call follows, so it may contain the mark.
class TaggedCallReader final : public CallReader {
 public:
  TaggedCallReader(const CallForm& form, SharedTools tools) : form_(form), tools_(std::move(tools)) {}

  ReadState push(char next) override;
  bool finish() override;
  const std::optional<std::string>& name() const override { return name_; }
  std::string_view arguments() const override { return arguments_; }
  std::string ending() const override;
  std::string held() const override { return taken_; }

 private:
  enum class Phase : uint8_t { kName, kBetween, kKey, kGap, kValue };
  enum class Fit : uint8_t { kNone, kBeginning, kArgument, kCall };

  ReadState step();
  ReadState push_name();
  ReadState push_between();
  ReadState push_key();
  ReadState push_gap();
  ReadState push_value();
  ReadState begin_key();
  ReadState end_call();
  void begin_value();
  void end_value();
  Fit fit_marks(std::string_view text) const;
  Fit fit_end(std::string_view text) const;

  const CallForm& form_;
  SharedTools tools_;
  Phase phase_ = Phase::kName;
  std::string taken_;  // text that is not in arguments_ yet
  std::string held_;   // text of the phase; in kValue, the possible beginning of its end
  std::optional<std::string> name_;
  std::string arguments_;
  std::set<std::string> keys_;
  std::string key_;
  std::string kind_;       // the form's word for the kind of the value
  uint8_t kinds_ = 0;      // JSON types of the value, as bits
  bool is_first_ = false;  // the next character is the first of the value
  std::string value_;      // its text so far, if it may have another type than string
};

}  // namespace outrider
