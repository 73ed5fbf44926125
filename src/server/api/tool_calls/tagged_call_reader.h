// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "server/api/tool_calls/call_reader.h"

namespace outrider {

// Reads a call of Qwen3-Coder: NAME>, then for each argument <parameter=KEY>, a text on separate lines and
// </parameter>, and at the end </function>. A text becomes JSON if the tool's schema gives KEY another type
// than string and the text parses as that type. It becomes a JSON string otherwise.
class TaggedCallReader final : public CallReader {
 public:
  explicit TaggedCallReader(SharedTools tools) : tools_(std::move(tools)) {}

  State push(char next) override;
  const std::optional<std::string>& name() const override { return name_; }
  std::string_view arguments() const override { return arguments_; }
  std::optional<std::string> finished_arguments() const override { return arguments_; }

 private:
  enum class Phase : uint8_t { kName, kBetween, kKey, kValue };

  State push_name();
  State push_between();
  State push_key();
  State push_value();
  void end_value();
  uint8_t kinds_of(const std::string& key) const;

  SharedTools tools_;
  Phase phase_ = Phase::kName;
  std::string held_;  // text of the phase; in kValue, the possible beginning of its end tag
  std::optional<std::string> name_;
  std::string arguments_;
  std::set<std::string> keys_;
  uint8_t kinds_ = 0;      // JSON types of the value, as bits
  bool is_first_ = false;  // the next character is the first of the value
  std::string value_;      // its text so far, if it may have another type than string
};

}  // namespace outrider
